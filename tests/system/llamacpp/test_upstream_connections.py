"""The scripted upstream does what its answers say, seen from raw sockets and an ordinary HTTP client."""

import asyncio
import json
import socket
from pathlib import Path

import httpx2
import pytest
from support.clients.sdk_exercise import (
    async_sdk_client,
    chat_text,
    exercise_streaming_async,
    exercise_unary_async,
    usages,
)
from support.upstreams.scripted_upstream import ScriptedUpstream, read_log, scripted_upstream, upstream_process
from support.upstreams.upstream_answers import ANSWERS, in_turn, json_answer, status, unary
from support.upstreams.upstream_payloads import PIECES, usage
from support.upstreams.upstream_wire import HANG, Message, Outcome, Request, RequestParser

TEXT = "".join(PIECES)


@pytest.fixture
async def up():
    async with scripted_upstream() as running:
        yield running


def chat(model: str = "ordinary", **extra) -> dict:
    return {"model": model, "messages": [{"role": "user", "content": "Is it level?"}]} | extra


async def ask(up: ScriptedUpstream, model: str = "ordinary", **extra) -> httpx2.Response:
    async with httpx2.AsyncClient(timeout=5) as client:
        return await client.post(f"{up.url}/chat/completions", json=chat(model, **extra))


def chunks_of(response: httpx2.Response) -> list[dict]:
    lines = [line.removeprefix("data:").strip() for line in response.text.splitlines() if line.startswith("data:")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def text_of(chunks: list[dict]) -> str:
    return "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_parser_cuts_requests_wherever_packets_end(size: int) -> None:
    first = b"POST /v1/a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc"
    second = b"POST /b HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nab\r\nA\r\n0123456789\r\n0\r\n\r\n"
    third = b"GET /c HTTP/1.1\r\nX-A:  v \r\n\r\n"
    whole = first + second + third
    parser = RequestParser()
    messages: list[Message] = []
    for at in range(0, len(whole), size):
        messages += parser.feed(whole[at : at + size])
    assert [(m.method, m.path, m.body) for m in messages] == [
        ("POST", "/v1/a", b"abc"),
        ("POST", "/b", b"ab0123456789"),
        ("GET", "/c", b""),
    ]
    assert messages[2].headers == [("X-A", "v")]


async def test_unary_has_usage_and_the_callers_id(up: ScriptedUpstream) -> None:
    answer = await ask(up, user="u-7")
    assert answer.json()["choices"][0]["message"]["content"] == TEXT
    assert answer.json()["usage"] == usage()
    assert answer.json()["id"] == "chatcmpl-u-7"
    assert up.requests[0].payload == chat(user="u-7")
    assert up.requests[0].header("CONTENT-TYPE") == "application/json"
    await up.until(lambda up: up.requests[0].outcome is Outcome.SENT)


async def test_stream_ends_with_usage_only_where_asked(up: ScriptedUpstream) -> None:
    bare = await ask(up, stream=True)
    full = await ask(up, stream=True, stream_options={"include_usage": True})
    assert bare.text.endswith("data: [DONE]\n\n")
    assert text_of(chunks_of(bare)) == text_of(chunks_of(full)) == TEXT
    assert all("usage" not in chunk for chunk in chunks_of(bare))
    *before, last = chunks_of(full)
    assert {chunk["usage"] for chunk in before} == {None}
    assert (last["choices"], last["usage"]) == ([], usage())


async def test_other_endpoints(up: ScriptedUpstream) -> None:
    async with httpx2.AsyncClient(base_url=up.url) as client:
        text = (await client.post("/completions", json={"model": "m", "prompt": "p"})).json()
        vectors = (await client.post("/embeddings", json={"model": "m", "input": ["a", "b"]})).json()
        stream = await client.post("/responses", json={"model": "m", "input": "i", "stream": True})
        names = (await client.get("/models")).json()
        missing = await client.get("/models/nobody")
    assert text["choices"][0]["text"] == TEXT
    assert [row["index"] for row in vectors["data"]] == [0, 1]
    assert stream.text.startswith("event: response.created\ndata: {")
    assert "[DONE]" not in stream.text
    assert {row["id"] for row in names["data"]} == set(ANSWERS)
    assert missing.status_code == 404
    assert missing.json()["error"]["code"] == "model_not_found"


@pytest.mark.parametrize(
    "model",
    ["crlf", "comments", "one-packet", "close-delimited", "slow-first-token:0.01", "slow-head:0.01", "slow-tokens:0",
     "no-done", "after-done", "usage-with-choices", "early-hints", "close-idle"],
)  # fmt: skip
async def test_odd_streams_carry_the_whole_text(up: ScriptedUpstream, model: str) -> None:
    answer = await ask(up, model, stream=True)
    assert text_of(chunks_of(answer)) == TEXT
    assert ("[DONE]" in answer.text) == (model != "no-done")
    assert ("\r\n" in answer.text) == (model == "crlf")
    assert (": keep-alive" in answer.text) == (model == "comments")


async def test_large_event_and_split_characters(up: ScriptedUpstream) -> None:
    large = await ask(up, "large-event", stream=True)
    split = await ask(up, "utf8-split:3", stream=True)
    assert max(map(len, large.text.splitlines())) > 65536
    assert text_of(chunks_of(split)) == "é水平🌍الأرض"


async def test_split_characters_really_arrive_in_pieces(up: ScriptedUpstream) -> None:
    pieces = []
    async with httpx2.AsyncClient() as client:
        body = chat("utf8-split:1", stream=True)
        async with client.stream("POST", f"{up.url}/chat/completions", json=body) as answer:
            pieces = [piece async for piece in answer.aiter_raw()]
    # Some may be read together on a busy machine; the test is that the answer did not leave in one.
    assert len(pieces) > sum(map(len, pieces)) / 10


async def test_tool_calls_are_deltas(up: ScriptedUpstream) -> None:
    chunks = chunks_of(await ask(up, "tool-calls", stream=True))
    calls = [call for chunk in chunks for choice in chunk["choices"] for call in choice["delta"].get("tool_calls", ())]
    arguments = {i: "".join(c["function"]["arguments"] for c in calls if c["index"] == i) for i in (0, 1)}
    assert arguments == {0: '{"axis": "north"}', 1: '{"axis": "east"}'}
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


@pytest.mark.parametrize(
    ("model", "error"),
    [
        ("cut-mid-event", httpx2.RemoteProtocolError),
        ("cut-between-events", httpx2.RemoteProtocolError),
        ("reset-mid-stream", httpx2.ReadError),
        ("close-at-once", httpx2.RemoteProtocolError),
        ("reset-at-once", httpx2.ReadError),
        ("cut-unary", httpx2.RemoteProtocolError),
        ("not-http", httpx2.RemoteProtocolError),
    ],
)
async def test_breaking_answers_break(up: ScriptedUpstream, model: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        await ask(up, model, stream=True)
    ended = Outcome.RESET if "reset" in model else Outcome.CLOSED
    await up.until(lambda up: up.requests[0].outcome is ended)


async def test_a_stream_can_end_early_though_properly_framed(up: ScriptedUpstream) -> None:
    answer = await ask(up, "ended-early", stream=True)
    assert not answer.text.endswith("\n\n")
    in_band = await ask(up, "in-band-error", stream=True)
    assert chunks_of(in_band)[-1]["error"]["type"] == "server_error"


@pytest.mark.parametrize(("model", "code"), [("bad-request", 400), ("rate-limited:2", 429), ("status:503", 503)])
async def test_refusals_have_the_error_shape(up: ScriptedUpstream, model: str, code: int) -> None:
    answer = await ask(up, model)
    assert answer.status_code == code
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
    if code == 429:
        assert (answer.headers["retry-after"], answer.headers["retry-after-ms"]) == ("2", "2000")


async def test_the_sdk_reads_every_endpoint(up: ScriptedUpstream) -> None:
    async with async_sdk_client(up.url) as client:
        whole = await exercise_unary_async(client, "ordinary")
        streamed = await exercise_streaming_async(client, "ordinary")
    assert whole.text == chat_text(streamed.chat) == TEXT
    assert usages(streamed.chat) == usages(streamed.completion) == []
    assert usages(streamed.chat_with_usage) == usages(streamed.completion_with_usage) == [whole.chat["usage"]]
    assert streamed.response[-1]["response"] == whole.response


async def test_silence_lasts_until_released(up: ScriptedUpstream) -> None:
    asking = asyncio.create_task(ask(up, "silence"))
    await up.until(lambda up: up.hanging == 1)
    assert not asking.done()
    up.release()
    with pytest.raises(httpx2.RemoteProtocolError):
        await asking


async def test_a_client_that_leaves_is_noticed(up: ScriptedUpstream) -> None:
    asking = asyncio.create_task(ask(up, "hang-mid-stream", stream=True))
    await up.until(lambda up: up.hanging == 1)
    asking.cancel()
    await up.until(lambda up: up.requests[0].outcome is Outcome.CLIENT_GONE and not up.connections)


async def test_keep_alive_race(up: ScriptedUpstream) -> None:
    async with httpx2.AsyncClient() as client:
        first = await client.post(f"{up.url}/chat/completions", json=chat("stale"))
        with pytest.raises(httpx2.ReadError):
            await client.post(f"{up.url}/chat/completions", json=chat("stale"))
    assert first.status_code == 200
    assert [(r.connection, r.nth) for r in up.requests] == [(0, 0), (0, 1)]


async def test_script_may_be_any_function_and_its_errors_are_told() -> None:
    async with scripted_upstream(in_turn(status, unary)) as up:
        assert [(await ask(up)).status_code for _ in range(3)] == [500, 200, 200]
        up.script = lambda request: json_answer({"was": request.path}, 418)
        assert (await ask(up)).json() == {"was": "/v1/chat/completions"}

    def broken(_request: Request) -> list:
        raise LookupError

    async def meet_it() -> None:
        async with scripted_upstream(broken) as up:
            with pytest.raises(httpx2.ReadError):
                await ask(up)

    with pytest.raises(ExceptionGroup, match="the script raised"):
        await meet_it()


async def test_stopped_refuses_and_starts_again_on_its_port(up: ScriptedUpstream) -> None:
    port = up.port
    up.script = lambda _request: [HANG]
    asking = asyncio.create_task(ask(up))
    await up.until(lambda up: up.hanging == 1)
    await up.stop()
    with pytest.raises(httpx2.ReadError):
        await asking
    with pytest.raises(httpx2.ConnectError):
        await ask(up)
    await up.start()
    up.script = unary
    assert (await ask(up)).status_code == 200
    assert up.port == port


def test_process_logs_what_it_sent_in_full(tmp_path: Path) -> None:
    log = tmp_path / "sent.jsonl"
    with upstream_process(log=log) as (url, child):
        with httpx2.Client() as client:
            client.post(f"{url}/chat/completions", json=chat(), headers={"x-request-id": "a"}).raise_for_status()
            client.post(f"{url}/chat/completions", json=chat(stream=True, user="b")).raise_for_status()
            with pytest.raises(httpx2.RemoteProtocolError):
                client.post(f"{url}/chat/completions", json=chat("cut-unary", user="c"))
        assert child.process.poll() is None
    assert [(row["id"], row["outcome"]) for row in read_log(log)] == [("a", "sent"), ("b", "sent"), ("c", "closed")]
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", child.hello["port"])) != 0


def test_child_process_dies_with_its_parent() -> None:
    with upstream_process() as (_, child):
        assert child.process.stdin is not None
        child.process.stdin.close()  # what the kernel does when the parent is killed
        assert child.process.wait(5) == 0
