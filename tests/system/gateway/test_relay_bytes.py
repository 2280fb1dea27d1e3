"""What the client receives is what the upstream's socket sent, byte for byte, and the exchange is in the store."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import UUID

import aiohttp
import asyncpg
import pytest
import pytest_asyncio
from support.documents.routes import add_route
from support.servers.ports import free_port
from support.servers.product import Product, installation, settings
from support.servers.recording_proxy import RecordingShim, recording_shim
from support.stores.databases import Databases
from support.upstreams.scripted_upstream import ScriptedUpstream, scripted_upstream

pytestmark = pytest.mark.asyncio(loop_scope="module")

STREAMS = [
    "ordinary", "crlf", "comments", "large-event", "large-event:300000", "utf8-split", "utf8-split:3", "tool-calls",
    "one-packet", "usage-with-choices", "close-delimited", "long-stream", "no-done", "after-done", "in-band-error",
]  # fmt: skip
UNARY = ["ordinary", "tool-calls", "gzipped", "bad-request", "status:503", "html-error", "early-hints", "close-idle"]
BREAKING_OFF = {
    "cut-mid-event": "upstream_cut",
    "cut-between-events": "upstream_cut",
    "ended-early": "upstream_cut",
    "reset-mid-stream": "upstream_cut",
    "hang-mid-stream": "idle_timeout",
}
FAILING = [
    ("close-at-once", False, 502, "upstream_reset"),
    ("reset-at-once", True, 502, "upstream_reset"),
    ("not-http", False, 502, "upstream_protocol"),
    ("cut-unary", False, 502, "upstream_cut"),
    ("silence", True, 504, "first_token_timeout"),
    ("silence", False, 504, "total_timeout"),
]


def body(model: str, *, stream: bool) -> bytes:
    # Odd on purpose: key order, spacing, number format and unknown fields must all reach the upstream as they are.
    text = f'{{"temperature": 0.70,  "x_unknown":{{"model":"inner"}},"model":"{model}","stream":{str(stream).lower()}'
    return (
        text + ',"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"h\\u00e9"}]}'
    ).encode()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def upstream() -> AsyncIterator[ScriptedUpstream]:
    async with scripted_upstream() as up:
        yield up


@pytest.fixture(scope="module")
def relaying(
    tmp_path_factory: pytest.TempPathFactory, databases: Databases, upstream: ScriptedUpstream
) -> Iterator[Product]:
    """A gateway of one worker that runs for the whole module; nobody listens behind `refused`."""
    configuration = settings(upstream.url, workers=1)
    add_route(configuration, "refused", f"http://127.0.0.1:{free_port()}/v1")
    with (
        databases.fresh() as url,
        installation(tmp_path_factory.mktemp("relaying"), configuration, url) as product,
        product.running("gateway"),
    ):
        yield product


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shim(upstream: ScriptedUpstream) -> AsyncIterator[RecordingShim]:
    async with recording_shim("127.0.0.1", upstream.port) as made:
        yield made


@pytest.fixture(scope="module")
def impatient(
    tmp_path_factory: pytest.TempPathFactory, databases: Databases, upstream: ScriptedUpstream, shim: RecordingShim
) -> Iterator[Product]:
    """A running gateway that asks once: behind each model that fails with short timeouts, else through the shim."""
    configuration = settings(shim.url, workers=1, retries=0)
    timeouts = {"idle": 0.5, "first_token": 0.5, "total": 1.0}
    for model in {*BREAKING_OFF, *(model for model, *_ in FAILING)}:
        add_route(configuration, model, upstream.url, timeouts=timeouts)
    with (
        databases.fresh() as url,
        installation(tmp_path_factory.mktemp("impatient"), configuration, url) as product,
        product.running("gateway"),
    ):
        yield product


async def test_every_answer_is_relayed_byte_for_byte(
    impatient: Product, shim: RecordingShim, upstream: ScriptedUpstream
) -> None:
    await relays_every_answer(impatient, shim, upstream)


@pytest.mark.slow
async def test_every_answer_is_relayed_byte_for_byte_in_tiny_packets(
    tmp_path: Path, migrated_url: str, upstream: ScriptedUpstream
) -> None:
    async with recording_shim("127.0.0.1", upstream.port, segments=(1, 2, 3, 5, 7), pause=0.0) as shim:
        configuration = settings(shim.url, workers=1, retries=0)
        with installation(tmp_path, configuration, migrated_url) as product, product.running("gateway"):
            await relays_every_answer(product, shim, upstream)


async def relays_every_answer(product: Product, shim: RecordingShim, upstream: ScriptedUpstream) -> None:
    seen: dict[str, bytes] = {}
    async with aiohttp.ClientSession(auto_decompress=False) as client:
        for model, stream in [(m, True) for m in STREAMS] + [(m, False) for m in UNARY]:
            before = len(shim.responses)
            sent = body(model, stream=stream)
            async with client.post(product.url + "/v1/chat/completions", data=sent) as answer:
                received = await answer.read()
                exchange_id = answer.headers["x-biasmeter-exchange-id"]
            (recorded,) = shim.responses[before:]
            assert received == recorded.body, model
            assert answer.status == recorded.status
            assert upstream.requests[-1].body == sent
            seen[exchange_id] = received
    await product.shipped()
    query = "SELECT * FROM exchanges JOIN exchange_content USING (id) WHERE id = ANY($1)"
    rows = await product.rows(query, [UUID(each) for each in seen])
    assert {str(row["id"]) for row in rows} == set(seen)
    for row in rows:
        # Bytes behind [DONE] reach the client, but the exchange has ended by then.
        assert seen[str(row["id"])].startswith(row["response"])
        assert row["inclusion"] == 1.0
        assert row["total_us"] >= row["upstream_us"] > 0


async def test_the_stored_exchange_has_its_facts(relaying: Product, upstream: ScriptedUpstream) -> None:
    before = upstream.received
    ids = []
    async with aiohttp.ClientSession() as client:
        for stream in (False, True):
            payload = {"model": "gpt", "stream": stream, "messages": [], "stream_options": {"include_usage": True}}
            async with client.post(relaying.url + "/v1/chat/completions", json=payload) as answer:
                await answer.read()
                assert answer.headers["x-biasmeter-deployment"] == "alias"
                assert answer.headers["x-biasmeter-attempts"] == "1"
                ids.append(answer.headers["x-biasmeter-exchange-id"])
    unary, streamed = [await stored(relaying, each) for each in ids]
    for row in (unary, streamed):
        assert (row["origin"], row["route"], row["deployment"], row["model"]) == ("client", "gpt", "alias", "gpt")
        assert (row["status"], row["outcome"], row["finish_reason"]) == (200, "complete", "stop")
        assert (row["prompt_tokens"], row["completion_tokens"]) == (11, 6)
        assert row["first_byte_us"] <= row["total_us"]
    assert (unary["stream"], streamed["stream"]) == (False, True)
    # The alias is exchanged in the request, and nowhere else.
    assert json.loads(upstream.requests[before].body)["model"] == "ordinary"


async def test_the_upstream_sees_its_own_key_and_only_declared_headers(
    relaying: Product, upstream: ScriptedUpstream
) -> None:
    before = upstream.received
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    headers = {
        "authorization": "Bearer client-key",
        "x-secret": "canary",
        "x-stainless-os": "Linux",
        "traceparent": trace,
    }
    async with aiohttp.ClientSession() as client:
        url = relaying.url + "/v1/chat/completions"
        async with client.post(url, json={"model": "gpt", "messages": []}, headers=headers) as answer:
            assert answer.status == 200
    (asked,) = upstream.requests[before:]
    assert asked.header("authorization") == "Bearer sk-upstream"
    sent = {name.lower() for name, _ in asked.headers}
    assert not sent & {"x-secret", "x-stainless-os", "cookie"}
    continued = asked.header("traceparent") or ""
    assert continued.split("-")[1] == trace.split("-")[1]
    assert continued.split("-")[2] != trace.split("-")[2]
    row = await stored(relaying, answer.headers["x-biasmeter-exchange-id"])
    assert json.loads(row["tags"]) == {"trace_id": trace.split("-")[1], "parent_span_id": trace.split("-")[2]}


async def stored(product: Product, exchange_id: str) -> asyncpg.Record:
    await product.shipped()
    (row,) = await product.rows("SELECT * FROM exchanges WHERE id = $1", UUID(exchange_id))
    return row


@pytest.mark.parametrize(("model", "error"), BREAKING_OFF.items())
async def test_a_stream_that_breaks_off_ends_with_an_error_and_the_terminator(
    impatient: Product, model: str, error: str
) -> None:
    async with aiohttp.ClientSession() as client:
        payload = {"model": model, "stream": True, "messages": []}
        async with client.post(impatient.url + "/v1/chat/completions", json=payload) as answer:
            assert answer.status == 200
            events = (await answer.read()).split(b"\n\n")
    assert events[-1] == b""
    assert events[-2] == b"data: [DONE]"
    told = json.loads(events[-3].removeprefix(b"data: "))["error"]
    assert set(told) == {"message", "type", "param", "code"}
    assert told["code"] == error
    # Every event that was relayed is whole.
    assert all(json.loads(event.removeprefix(b"data: ")) for event in events[:-3])
    row = await stored(impatient, answer.headers["x-biasmeter-exchange-id"])
    assert (row["outcome"], row["error_type"], row["status"]) == ("cut", error, 200)


@pytest.mark.parametrize(("model", "stream", "status", "code"), FAILING)
async def test_an_upstream_that_fails_before_its_first_byte_is_an_error_status(
    impatient: Product, model: str, stream: bool, status: int, code: str
) -> None:
    async with aiohttp.ClientSession() as client:
        payload = {"model": model, "stream": stream, "messages": []}
        async with client.post(impatient.url + "/v1/chat/completions", json=payload) as answer:
            told = (await answer.json())["error"]
            assert (answer.status, told["code"], told["type"]) == (status, code, "api_error")
    row = await stored(impatient, answer.headers["x-biasmeter-exchange-id"])
    assert (row["status"], row["outcome"], row["error_type"]) == (status, "failed", code)


async def test_an_upstream_that_is_not_there_is_a_502(relaying: Product) -> None:
    async with (
        aiohttp.ClientSession() as client,
        client.post(relaying.url + "/v1/chat/completions", json={"model": "refused"}) as answer,
    ):
        assert answer.status == 502
        assert (await answer.json())["error"]["code"] == "upstream_connect"


async def test_a_kept_connection_that_was_closed_meanwhile_is_replaced(
    relaying: Product, upstream: ScriptedUpstream
) -> None:
    before = upstream.received
    async with aiohttp.ClientSession() as client:
        for _ in range(4):
            async with client.post(relaying.url + "/v1/chat/completions", json={"model": "stale"}) as answer:
                assert answer.status == 200
    assert upstream.received - before > 4


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_leaves_frees_the_upstream_within_a_second(
    relaying: Product, upstream: ScriptedUpstream, stream: bool
) -> None:
    async with aiohttp.ClientSession() as client:
        payload = {"model": "hang-mid-stream" if stream else "silence", "stream": stream}
        asking = asyncio.create_task(client.post(relaying.url + "/v1/chat/completions", json=payload))
        await upstream.until(lambda up: up.hanging == 1)
        if stream:
            answer = await asking
            await answer.content.readany()
            answer.close()
        else:
            asking.cancel()
        await upstream.until(lambda up: up.hanging == 0, timeout_s=1.0)
    query = "SELECT * FROM exchanges WHERE model = $1 AND status = 499"
    (row,) = await relaying.found(query, payload["model"])
    assert row["outcome"] == "client_gone"
