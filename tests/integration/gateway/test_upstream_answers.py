"""What comes of every kind of answer, right or wrong: to the gateway's own client and the reference, on either loop."""

import asyncio

import pytest
from support.upstreams.scripted_upstream import scripted_upstream
from support.upstreams.upstream_requests import IMPLEMENTATIONS, asking
from support.upstreams.upstream_wire import CLOSE, FLUSH, HANG, RESET, Request, Step
from support.waiting import PATIENCE

pytestmark = pytest.mark.asyncio(loop_factories=["asyncio", "uvloop"])

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"transfer-encoding: chunked\r\n\r\n"
COUNTED = OK + b"content-length: 5\r\n\r\n"
FIELDS = b"".join(b"x-%d: y\r\n" % number for number in range(200))

#: Answers that are whole: steps, status, body, and whether the connection can be used again.
WHOLE: dict[str, tuple[list[Step], int, bytes, bool]] = {
    "counted": ([COUNTED + b"hello"], 200, b"hello", True),
    "counted-in-pieces": ([COUNTED[:20], FLUSH, COUNTED[20:] + b"he", FLUSH, b"llo"], 200, b"hello", True),
    "empty": ([OK + b"content-length: 0\r\n\r\n"], 200, b"", True),
    "chunked": ([CHUNKED + b"2\r\nhe\r\n", FLUSH, b"3\r\nllo\r\n0\r\n\r\n"], 200, b"hello", True),
    "chunk-extensions": ([CHUNKED + b"5;a=b;c\r\nhello\r\n0;d\r\n\r\n"], 200, b"hello", True),
    "leading-zeros": ([CHUNKED + b"0005\r\nhello\r\n000\r\n\r\n"], 200, b"hello", True),
    "trailers": ([CHUNKED + b"5\r\nhello\r\n0\r\nx-sum: 1\r\nx-more: 2\r\n\r\n"], 200, b"hello", True),
    "to-the-end": ([OK + b"\r\nhe", FLUSH, b"llo", CLOSE], 200, b"hello", False),
    "to-the-end-of-1.0": ([b"HTTP/1.0 200 OK\r\n\r\nhello", CLOSE], 200, b"hello", False),
    "counted-in-1.0": ([b"HTTP/1.0 200 OK\r\ncontent-length: 5\r\n\r\nhello"], 200, b"hello", False),
    "kept-in-1.0": (
        [b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 5\r\n\r\nhello"], 200, b"hello", True
    ),
    "last": ([OK + b"connection: close\r\ncontent-length: 5\r\n\r\nhello"], 200, b"hello", False),
    "no-content": ([b"HTTP/1.1 204 No Content\r\n\r\n"], 204, b"", True),
    "not-modified": ([b"HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n"], 304, b"", True),
    "interim": (
        [b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nlink: x\r\n\r\n", FLUSH, COUNTED + b"hello"],
        200, b"hello", True,
    ),
    "no-reason": ([b"HTTP/1.1 200\r\ncontent-length: 5\r\n\r\nhello"], 200, b"hello", True),
    "unknown-status": ([b"HTTP/1.1 599 What\r\ncontent-length: 5\r\n\r\nhello"], 599, b"hello", True),
    "line-feeds": ([b"HTTP/1.1 200 OK\ncontent-length: 5\n\nhello"], 200, b"hello", True),
    "junk-behind": ([COUNTED + b"hellojunk"], 200, b"hello", False),
    "junk-behind-chunks": ([CHUNKED + b"5\r\nhello\r\n0\r\n\r\njunk"], 200, b"hello", False),
    "second-answer": ([COUNTED + b"hello" + COUNTED + b"again"], 200, b"hello", False),
    "body-of-204": ([b"HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\nhello"], 204, b"", False),
    "long-field": (
        [OK + b"x-policy: " + b"p" * 60_000 + b"\r\ncontent-length: 5\r\n\r\nhello"], 200, b"hello", True
    ),
}  # fmt: skip

#: Answers that are none, or not whole: steps, and the error's code. Those that hang must be given up without more.
BROKEN: dict[str, tuple[list[Step], str]] = {
    "closed": ([CLOSE], "upstream_reset"),
    "reset": ([RESET], "upstream_reset"),
    "closed-in-the-head": ([OK + b"content-le", FLUSH, CLOSE], "upstream_reset"),
    "closed-after-interim": ([b"HTTP/1.1 103 Early\r\n\r\n", FLUSH, CLOSE], "upstream_reset"),
    "not-http": ([b"SSH-2.0-OpenSSH_9.6\r\n", HANG], "upstream_protocol"),
    "request-for-an-answer": ([b"GET / HTTP/1.1\r\n\r\n", HANG], "upstream_protocol"),
    "field-without-colon": ([OK + b"what\r\n\r\n", HANG], "upstream_protocol"),
    "field-with-nul": ([OK + b"x: a\0b\r\ncontent-length: 0\r\n\r\n", HANG], "upstream_protocol"),
    "length-of-letters": ([OK + b"content-length: five\r\n\r\nhello", HANG], "upstream_protocol"),
    "negative-length": ([OK + b"content-length: -5\r\n\r\nhello", HANG], "upstream_protocol"),
    "two-lengths": ([OK + b"content-length: 5\r\ncontent-length: 6\r\n\r\nhello!", HANG], "upstream_protocol"),
    "length-and-chunks": (
        [OK + b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", HANG], "upstream_protocol"
    ),
    "too-many-fields": ([OK + FIELDS + b"\r\n", HANG], "upstream_protocol"),
    "field-too-long": ([OK + b"x: " + b"y" * 70_000 + b"\r\n\r\n", HANG], "upstream_protocol"),
    "field-without-end": ([OK + b"x: ", *[b"y" * 1000] * 200, HANG], "upstream_protocol"),
    "closed-in-the-body": ([COUNTED + b"hell", FLUSH, CLOSE], "upstream_cut"),
    "reset-in-the-body": ([COUNTED + b"hell", FLUSH, RESET], "upstream_cut"),
    "closed-in-a-chunk": ([CHUNKED + b"5\r\nhe", FLUSH, CLOSE], "upstream_cut"),
    "closed-before-the-last-chunk": ([CHUNKED + b"5\r\nhello\r\n", FLUSH, CLOSE], "upstream_cut"),
    "closed-in-the-trailers": ([CHUNKED + b"5\r\nhello\r\n0\r\nx-s", FLUSH, CLOSE], "upstream_cut"),
}  # fmt: skip

#: Answers on which the reference would wait for ever: it does not hear of a chunk that is none, nor of an end that
#: never comes. In the gateway its timeouts end them.
ENDLESS: dict[str, tuple[list[Step], str]] = {
    "chunk-size-of-letters": ([CHUNKED, FLUSH, b"xyz\r\nhello\r\n0\r\n\r\n", HANG], "upstream_cut"),
    "negative-chunk-size": ([CHUNKED, FLUSH, b"-5\r\nhello\r\n0\r\n\r\n", HANG], "upstream_cut"),
    "huge-chunk-size": ([CHUNKED, FLUSH, b"fffffffffffffffff\r\nhello\r\n", HANG], "upstream_cut"),
    "chunk-longer-than-said": ([CHUNKED, FLUSH, b"3\r\nhello\r\n0\r\n\r\n", HANG], "upstream_cut"),
    "interim-without-end": ([*[b"HTTP/1.1 103\r\nx: %s\r\n\r\n" % (b"y" * 1000)] * 200, HANG], "upstream_protocol"),
    "chunk-extension-without-end": ([CHUNKED, FLUSH, b"5;", *[b"y" * 1000] * 400, HANG], "upstream_cut"),
    "trailer-without-end": ([CHUNKED + b"5\r\nhello\r\n0\r\nx: ", FLUSH, *[b"y" * 1000] * 400, HANG], "upstream_cut"),
}  # fmt: skip

#: Answers that the reference takes, though who reads on may see another end of the body than it did.
GUESSED: dict[str, bytes] = {
    "blank-before-the-colon": OK + b"content-length : 5\r\n\r\nhello",
    "encoding-that-names-none": OK + b"transfer-encoding:\n\n chunked\r\n\r\n0\r\n\r\n",
    "tab-behind-an-encoding": OK + b"transfer-encoding: chunked\t\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
}

#: The reference takes what stands behind an answer for a fault of the answer.
STRICTER = {"junk-behind", "junk-behind-chunks", "body-of-204"}


@pytest.fixture(params=IMPLEMENTATIONS)
def implementation(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("name", WHOLE)
async def test_a_whole_answer_is_given_whole_and_its_connection_kept_if_it_can_be(
    implementation: str, name: str
) -> None:
    steps, status, body, is_kept = WHOLE[name]
    async with scripted_upstream(lambda _: steps) as up, asking(implementation, up.url) as client:
        for _ in range(2):
            told = await client.ask()
            if implementation == "reference" and name in STRICTER:
                assert told.failure == "upstream_protocol"
                return
            assert (told.status, told.body, told.failure) == (status, body, None)
    assert [request.nth for request in up.requests] == ([0, 1] if is_kept else [0, 0])


@pytest.mark.parametrize("name", BROKEN)
async def test_an_answer_that_is_none_or_not_whole_fails_and_its_connection_ends(
    implementation: str, name: str
) -> None:
    await check_failure(implementation, *BROKEN[name])


@pytest.mark.parametrize("name", ENDLESS)
async def test_an_answer_that_would_never_end_fails(name: str) -> None:
    await check_failure("own", *ENDLESS[name])


@pytest.mark.parametrize("name", GUESSED)
async def test_an_answer_whose_end_would_be_a_guess_fails(name: str) -> None:
    await check_failure("own", [GUESSED[name], CLOSE], "upstream_protocol")


async def check_failure(implementation: str, steps: list[Step], code: str) -> None:
    async with scripted_upstream(lambda _: steps) as up, asking(implementation, up.url) as client:
        async with asyncio.timeout(PATIENCE):
            told = await client.ask()
        assert told.failure == code
        await up.until(lambda up: not up.connections)
    assert len(up.requests) == 1


async def test_fields_of_the_head_come_as_they_are(implementation: str) -> None:
    head = (
        OK
        + b"Content-Length: 0\r\nX-MS-One:  a b \t\r\nSet-Cookie: 1\r\nOpenAI-Odd: \xff\xc3\xa9\r\nx-ms-one: c\r\n\r\n"
    )
    async with scripted_upstream(lambda _: [head]) as up, asking(implementation, up.url) as client:
        answer = await client.ask()
    assert answer.fields == b"\r\nx-ms-one: c\r\nopenai-odd: \xff\xc3\xa9"


async def test_what_has_arrived_can_be_read_before_the_rest_comes(implementation: str) -> None:
    steps: list[Step] = [CHUNKED + b"2\r\nhe\r\n", HANG, b"3\r\nllo\r\n0\r\n\r\n"]
    async with scripted_upstream(lambda _: steps) as up, asking(implementation, up.url) as client:
        answer = await client.upstream.send(client.request())
        assert await answer.read() == b"he"
        up.release()
        assert await answer.read() == b"llo"
        assert await answer.read() == b""
        assert await answer.read() == b""
        answer.close()


def said(request: Request) -> list[Step]:
    """Answer with the request itself."""
    lines = [f"{request.method} {request.path}", *(f"{name.lower()}: {value}" for name, value in request.headers)]
    body = "\n".join(lines).encode("utf-8", "surrogateescape") + b"\n" + request.body
    return [OK + b"content-length: %d\r\n\r\n" % len(body) + body]


@pytest.mark.parametrize(
    ("method", "body", "length"), [("POST", b"abc", "3"), ("POST", b"", "0"), ("GET", b"", None), ("GET", b"a", "1")]
)
async def test_a_request_is_written_with_its_host_and_length(
    implementation: str, method: str, body: bytes, length: str | None
) -> None:
    async with scripted_upstream(said) as up, asking(implementation, up.url) as client:
        headers = {"accept": "*/*", "x-request-id": "r", "content-type": "application/json"}
        await client.ask(client.request(method=method, body=body, headers=headers))
    (request,) = up.requests
    assert (request.method, request.path, request.body) == (method, "/v1/chat/completions", body)
    host = {"host": up.url.removeprefix("http://").removesuffix("/v1")}
    counted = {"content-length": length} if length else {}
    assert {name.lower(): value for name, value in request.headers} == host | headers | counted


@pytest.mark.parametrize("value", ["a\r\nx-injected: 1", "a\nb", "a\rb", "a\0b"])
async def test_a_header_that_would_begin_another_is_not_sent(implementation: str, value: str) -> None:
    async with scripted_upstream() as up, asking(implementation, up.url) as client:
        for headers in ({"x-note": value}, {value: "x"}):
            assert (await client.ask(client.request(headers=headers))).failure == "upstream_protocol"
    assert not up.requests


@pytest.mark.parametrize("size", [100_000, 3_000_000])
@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
async def test_a_large_body_arrives(implementation: str, size: int) -> None:
    body = bytes(range(256)) * (size // 256)
    async with scripted_upstream(lambda _: [COUNTED + b"hello"]) as up, asking(implementation, up.url) as client:
        for _ in range(2):
            assert (await client.ask(client.request(body=body))).body == b"hello"
    assert [request.body == body for request in up.requests] == [True, True]
    assert up.requests[1].nth == 1
