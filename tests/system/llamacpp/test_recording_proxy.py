"""The shim changes nothing, records everything, and its parser reads keep-alive connections apart."""

import asyncio
import json

import httpx2
import pytest
from support.servers.recording_proxy import RecordingShim, recording_shim, split_requests, split_responses
from support.upstreams.scripted_upstream import ScriptedUpstream, scripted_upstream
from support.upstreams.upstream_answers import events_of, unary
from support.upstreams.upstream_wire import Outcome


@pytest.fixture
async def up():
    async with scripted_upstream() as running:
        yield running


async def ask(client: httpx2.AsyncClient, shim: RecordingShim, model: str = "ordinary", **extra) -> httpx2.Response:
    body = {"model": model, "messages": [{"role": "user", "content": "Is it level?"}]} | extra
    return await client.post(f"{shim.url}/chat/completions", json=body)


def test_split_responses_by_hand() -> None:
    first = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab"
    second = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: 1\r\n\r\n1\r\nc\r\n2;e=1\r\nde\r\n0\r\n\r\n"
    third = b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"
    last = b"HTTP/1.1 200 OK\r\n\r\nto the end"
    messages = split_responses(first + second + third + last)
    assert [(m.status, m.body, m.complete) for m in messages] == [
        (200, b"ab", True),
        (200, b"cde", True),
        (204, b"", True),
        (200, b"to the end", True),
    ]
    assert [m.raw for m in messages] == [first, second, third, last]
    assert messages[1].header("X-A") == "1"


@pytest.mark.parametrize(
    ("stream", "body"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", b"ab"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", b"ab"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", b"ab"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\nxyz", b"ab"),
    ],
)
def test_split_responses_tells_cut_ones(stream: bytes, body: bytes) -> None:
    (message,) = split_responses(stream)
    assert (message.body, message.complete, message.raw) == (body, False, stream)


def test_split_knows_methods_and_non_http() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"
    answers = split_responses(head + head, [b"HEAD", b"HEAD"])
    assert [(m.body, m.complete) for m in answers] == [(b"", True)] * 2
    assert split_responses(b"SSH-2.0-OpenSSH\r\n\r\n") == []
    assert split_requests(b"") == []
    asked = split_requests(
        b"GET /a HTTP/1.1\r\nHost: h\r\n\r\nPUT /b HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx"
    )
    assert [(m.start, m.body) for m in asked] == [(b"GET /a", b""), (b"PUT /b", b"x")]


@pytest.mark.parametrize("segments", [None, [1], [3, 1, 7, 2]])
async def test_forwards_unchanged_on_one_kept_connection(up: ScriptedUpstream, segments: list[int] | None) -> None:
    async with recording_shim("127.0.0.1", up.port, segments=segments) as shim, httpx2.AsyncClient() as client:
        answers = [await ask(client, shim), await ask(client, shim, stream=True), await ask(client, shim, "status:404")]
    (exchange,) = shim.exchanges
    assert [message.body for message in exchange.responses()] == [answer.content for answer in answers]
    assert [message.status for message in exchange.responses()] == [200, 200, 404]
    assert [message.body for message in exchange.requests()] == [request.body for request in up.requests]
    assert exchange.requests()[0].start == b"POST /v1/chat/completions"
    plain, stream, _ = up.requests
    assert exchange.responses()[0].raw == unary(plain)[0]
    assert shim.responses[1].body == b"".join(events_of(stream))


async def test_segments_split_characters(up: ScriptedUpstream) -> None:
    pieces = []
    async with (
        recording_shim("127.0.0.1", up.port, segments=[1, 2], pause=0.001) as shim,
        httpx2.AsyncClient() as client,
    ):
        body = {"model": "utf8-split:1000000", "stream": True}
        async with client.stream("POST", f"{shim.url}/chat/completions", json=body) as answer:
            pieces = [piece async for piece in answer.aiter_raw()]
    assert len(pieces) > sum(map(len, pieces)) / 4
    assert "الأرض" in b"".join(pieces).decode()


async def test_cut_and_reset_pass_as_they_are(up: ScriptedUpstream) -> None:
    async with recording_shim("127.0.0.1", up.port) as shim, httpx2.AsyncClient() as client:
        with pytest.raises(httpx2.RemoteProtocolError):
            await ask(client, shim, "cut-mid-event", stream=True)
        with pytest.raises(httpx2.ReadError):
            await ask(client, shim, "reset-mid-stream", stream=True)
    cut, reset = shim.exchanges
    assert (cut.closed_by, cut.reset, cut.responses()[0].complete) == ("server", False, False)
    assert (reset.closed_by, reset.reset) == ("server", True)
    assert reset.responses()[0].body.count(b"data: ") == 3


async def test_a_leaving_client_is_passed_on(up: ScriptedUpstream) -> None:
    async with recording_shim("127.0.0.1", up.port) as shim:
        async with httpx2.AsyncClient() as client:
            asking = asyncio.create_task(ask(client, shim, "hang-mid-stream", stream=True))
            await up.until(lambda up: up.hanging == 1)
            asking.cancel()
            await up.until(lambda up: up.requests[0].outcome is Outcome.CLIENT_GONE)
        await asyncio.wait_for(shim.exchanges[0].done.wait(), 5)
        assert shim.exchanges[0].closed_by == "client"


async def test_unreachable_target_resets(up: ScriptedUpstream) -> None:
    await up.stop()
    async with recording_shim("127.0.0.1", up.port) as shim, httpx2.AsyncClient() as client:
        with pytest.raises(httpx2.ReadError):
            await ask(client, shim)
    assert (shim.exchanges[0].closed_by, shim.exchanges[0].reset) == ("server", True)


async def test_many_connections_at_once(up: ScriptedUpstream) -> None:
    async with recording_shim("127.0.0.1", up.port, segments=[50]) as shim, httpx2.AsyncClient() as client:
        answers = await asyncio.gather(*(ask(client, shim, stream=bool(n % 2), user=f"u{n}") for n in range(30)))
    for number, answer in enumerate(answers):
        assert f"chatcmpl-u{number}" in answer.text
    sent = {
        json.loads(r.body)["user"]: a.body
        for e in shim.exchanges
        for r, a in zip(e.requests(), e.responses(), strict=True)
    }
    assert sent == {f"u{number}": answer.content for number, answer in enumerate(answers)}
