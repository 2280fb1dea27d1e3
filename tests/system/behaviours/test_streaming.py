"""Behaviours 26 to 38: streams, whole and broken, and clients that read slowly or leave."""

import json
import mmap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import aiohttp
import asyncpg
import pytest
from support.clients.scrape import parsed, scrape
from support.clients.sdk_clients import Failure, Heard, Sdk
from support.clients.sdk_exercise import lasting
from support.documents.routes import add_route
from support.servers.product import Product, marked_pids, settings
from support.upstreams import upstream_payloads as payloads
from support.upstreams.scripted_upstream import ScriptedUpstream
from support.upstreams.upstream_answers import DONE, by_model, event, sse
from support.upstreams.upstream_wire import FLUSH, HANG, Outcome, Request, Steps
from support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

NAMES = ("python", "node")
CAPTURE_LIMIT = 1 << 16
#: how long a deployment may be silent where a test waits for it
HASTY_S = 0.3
#: every way a stream may be written; all of them are whole
WHOLE = [
    "ordinary", "crlf", "comments", "lines-of-data", "large-event", "utf8-split:7", "tool-calls",
    "tool-call-in-one-delta", "one-packet", "usage-with-choices", "close-delimited", "no-done", "after-done",
]  # fmt: skip
CUT = ["cut-mid-event", "cut-between-events", "ended-early", "reset-mid-stream"]


@pytest.fixture(scope="module")
def configuration(upstream: ScriptedUpstream, thorough: bool) -> dict[str, Any]:
    made = settings(upstream.url, workers=2 if thorough else 1, capture_limit=CAPTURE_LIMIT)
    for name in NAMES:
        # What breaks has a circuit of its own, for each SDK.
        for answer in (*CUT, "in-band-error", "bad-request", "status:500", "rate-limited:0.01"):
            add_route(made, f"{answer}/{name}", upstream.url, answer=answer)
        hasty = {"timeouts": {"idle": HASTY_S, "first_token": HASTY_S}}
        add_route(made, f"idle/{name}", upstream.url, answer="hang-mid-stream", **hasty)
        add_route(made, f"silent/{name}", upstream.url, answer="silence", **hasty)
        add_route(made, f"replaced/{name}", upstream.url, answer="silence", fallbacks=["gpt"], **hasty)
    add_route(made, "hasty", upstream.url, answer="ordinary", timeouts={"idle": HASTY_S})
    return made


@pytest.fixture
def script(upstream: ScriptedUpstream) -> Iterator[Callable[[Callable[[Request], Steps]], None]]:
    """Change the upstream's script for one test."""

    def change(to: Callable[[Request], Steps]) -> None:
        upstream.script = to

    yield change
    upstream.script = by_model


async def stored(gateway: Product, exchange_id: str) -> asyncpg.Record:
    """Wait for an exchange's row: where the client left, the exchange ends a little later."""
    rows: list[asyncpg.Record] = []

    async def there() -> bool:
        rows[:] = await gateway.rows("SELECT * FROM exchanges WHERE id = $1", UUID(exchange_id))
        return bool(rows)

    await eventually(there)
    return rows[0]


async def failed(sdk: Sdk, model: str) -> tuple[Heard, Failure]:
    heard = await sdk.chat(model, stream=True)
    assert heard.failure is not None
    return heard, heard.failure


def post(client: aiohttp.ClientSession, url: str, model: str, **more: Any) -> Any:
    return client.post(url + "/v1/chat/completions", json={"model": model, "stream": True, "messages": [], **more})


@pytest.mark.parametrize(
    ("model", "content_type"),
    [("ordinary", "text/event-stream"), ("untyped", "text/event-stream; charset=utf-8")],
)
async def test_26_a_streams_headers_keep_proxies_from_holding_it(
    gateway: Product, raw_headers: dict[str, str], model: str, content_type: str
) -> None:
    async with aiohttp.ClientSession(headers=raw_headers) as client, post(client, gateway.url, model) as answer:
        assert (await answer.read()).endswith(DONE)
    told = {name.lower(): value for name, value in answer.headers.items()}
    assert (told["content-type"], told["cache-control"], told["x-accel-buffering"]) == (content_type, "no-cache", "no")
    assert "content-length" not in told


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("bad-request", "BadRequestError"),
        ("rate-limited:0.01", "RateLimitError"),
        ("status:500", "InternalServerError"),
    ],
)
async def test_27_an_error_before_the_first_byte_is_a_status_and_not_a_stream(
    sdk: Sdk, upstream: ScriptedUpstream, answer: str, kind: str
) -> None:
    heard, failure = await failed(sdk, f"{answer}/{sdk.name}")
    _, direct = await failed(sdk.to(upstream.url), answer)
    assert heard.events == []
    assert (failure.kind, failure.status, failure.body) == (kind, direct.status, direct.body)


@pytest.mark.parametrize("model", WHOLE)
async def test_28_the_bytes_of_a_stream_are_the_deployments(
    gateway: Product, upstream: ScriptedUpstream, raw_headers: dict[str, str], model: str
) -> None:
    headers = raw_headers | {"x-request-id": "one-28"}  # the scripted answer tells it
    asked = {"stream_options": {"include_usage": True}}  # so that nothing needs to be put in and taken out
    received = []
    for url in (gateway.url, upstream.url.removesuffix("/v1")):
        async with aiohttp.ClientSession(headers=headers) as client, post(client, url, model, **asked) as answer:
            received.append(await answer.read())
    assert received[0] == received[1]


@pytest.mark.parametrize("model", WHOLE)
async def test_28_an_sdk_reads_through_the_gateway_what_it_reads_without(
    sdk: Sdk, upstream: ScriptedUpstream, model: str
) -> None:
    through = await sdk.chat(model, stream=True)
    direct = await sdk.to(upstream.url).chat(model, stream=True)
    assert through.events
    assert lasting(through.events) == lasting(direct.events)
    # The one for Python takes a comment for an event once there was an `id`; through the gateway as well.
    assert (through.failure and through.failure.kind) == (direct.failure and direct.failure.kind)
    assert through.failure is None or (sdk.name, model) == ("python", "comments")


@pytest.mark.parametrize("size", [1, 3])
async def test_29_characters_and_events_cut_anywhere_arrive_whole(sdk: Sdk, size: int) -> None:
    assert (await sdk.chat(f"utf8-split:{size}", stream=True)).text == "é水平🌍الأرض"


async def test_30_every_delta_is_passed_on_at_once_and_before_the_next_comes(
    gateway: Product, upstream: ScriptedUpstream, raw_headers: dict[str, str], script: Callable[..., None]
) -> None:
    sent_at, pieces, took = [0.0], [], []

    def in_lockstep(request: Request) -> Steps:
        for step in sse([*(event(payloads.chunk(request, f" {number}")) for number in range(128)), DONE]):
            sent_at[0] = time.perf_counter()
            yield step
            if step is FLUSH:
                yield HANG

    script(in_lockstep)
    async with aiohttp.ClientSession(headers=raw_headers) as client, post(client, gateway.url, "ordinary") as answer:
        async for piece in answer.content.iter_any():
            took.append(time.perf_counter() - sent_at[0])
            pieces.append(piece)
            await upstream.until(lambda up: up.hanging == 1)
            upstream.release()
            await upstream.until(lambda up: up.hanging == 0)
    assert len(pieces) == 129
    assert all(piece.startswith(b"data: ") and piece.endswith(b"\n\n") for piece in pieces)
    # Nothing waits on purpose; how often something has to wait is the machine's affair.
    assert min(took) <= 0.005


async def test_30_as_many_deltas_reach_an_sdk_as_were_sent(sdk: Sdk) -> None:
    heard = await sdk.chat("long-stream:128", stream=True)
    said = [choice["delta"].get("content") for one in heard.events for choice in one["choices"]]
    assert [text for text in said if text] == [f" {number}" for number in range(128)]


async def test_31_usage_that_was_asked_for_comes_once_and_last(sdk: Sdk) -> None:
    heard = await sdk.chat("ordinary", stream=True, stream_options={"include_usage": True})
    *before, last = heard.events
    assert (last["choices"], last["usage"]["total_tokens"]) == ([], 17)
    assert all(one["choices"] and one["usage"] is None for one in before)


@pytest.mark.parametrize("options", [{}, {"stream_options": {"include_usage": False}}], ids=["not-asked", "refused"])
async def test_32_usage_that_was_not_asked_for_is_recorded_and_not_shown(
    sdk: Sdk, gateway: Product, upstream: ScriptedUpstream, options: dict[str, Any]
) -> None:
    heard = await sdk.chat("ordinary", stream=True, **options)
    asked = upstream.requests[-1]
    assert all(one["choices"] and "usage" not in one for one in heard.events)
    row = await stored(gateway, heard.exchange_id)
    if options:
        assert not asked.include_usage
        assert row["prompt_tokens"] is None
    else:
        assert asked.include_usage
        assert (row["prompt_tokens"], row["completion_tokens"]) == (11, 6)


async def test_33_tool_calls_keep_their_ids_names_and_arguments(sdk: Sdk) -> None:
    def calls(heard: Heard) -> list[dict[str, Any]]:
        deltas = (choice["delta"] for one in heard.events for choice in one["choices"])
        return [call for delta in deltas for call in delta.get("tool_calls") or ()]

    first, *rest = calls(await sdk.chat("tool-calls", stream=True))
    function = {"name": "read_level", "arguments": ""}
    assert first == {"index": 0, "id": "call_0", "type": "function", "function": function}
    assert [call["index"] for call in rest] == [0, 0, 1, 1]
    assert "".join(call["function"]["arguments"] for call in rest if call["index"] == 1) == '{"axis": "east"}'
    (whole,) = calls(await sdk.chat("tool-call-in-one-delta", stream=True))
    function = {"name": "read_level", "arguments": '{"axis": "north"}'}
    assert whole == {"index": 0, "id": "call_0", "type": "function", "function": function}


async def test_34_an_error_inside_a_stream_is_raised_by_the_sdk_and_recorded(sdk: Sdk, gateway: Product) -> None:
    heard, failure = await failed(sdk, f"in-band-error/{sdk.name}")
    assert (len(heard.events), failure.kind) == (3, "APIError")
    assert failure.body["type"] == "server_error"
    row = await stored(gateway, heard.exchange_id)
    assert (row["outcome"], row["error_type"], row["status"]) == ("failed", "in_band", 200)


@pytest.mark.parametrize("answer", CUT)
async def test_35_a_stream_that_breaks_off_raises_and_is_not_asked_for_again(
    sdk: Sdk, gateway: Product, upstream: ScriptedUpstream, answer: str
) -> None:
    before = upstream.received
    heard, failure = await failed(sdk, f"{answer}/{sdk.name}")
    assert upstream.received == before + 1
    assert (failure.kind, failure.body["code"]) == ("APIError", "upstream_cut")
    assert heard.text == "Level ground"  # what came whole
    row = await stored(gateway, heard.exchange_id)
    assert (row["outcome"], row["error_type"], row["attempts"]) == ("cut", "upstream_cut", 1)


@pytest.mark.parametrize("answer", CUT)
async def test_35_a_stream_that_breaks_off_still_ends_with_its_terminator(
    gateway: Product, raw_headers: dict[str, str], answer: str
) -> None:
    async with (
        aiohttp.ClientSession(headers=raw_headers) as client,
        post(client, gateway.url, f"{answer}/python") as got,
    ):
        *_, error, done, rest = (await got.read()).split(b"\n\n")
    assert (done, rest) == (b"data: [DONE]", b"")
    assert set(json.loads(error.removeprefix(b"data: "))["error"]) == {"message", "type", "param", "code"}


async def test_36_a_deployment_that_falls_silent_is_an_error_inside_the_stream(sdk: Sdk, gateway: Product) -> None:
    heard, failure = await failed(sdk, f"idle/{sdk.name}")
    assert (failure.kind, failure.body["code"]) == ("APIError", "idle_timeout")
    assert heard.text == "Level"
    assert (await stored(gateway, heard.exchange_id))["outcome"] == "cut"


async def test_36_one_that_is_silent_from_the_start_is_replaced_where_there_is_a_fallback(
    sdk: Sdk, upstream: ScriptedUpstream
) -> None:
    _, failure = await failed(sdk, f"silent/{sdk.name}")
    assert (failure.kind, failure.status, failure.body["type"]) == ("InternalServerError", 504, "api_error")
    heard = await sdk.chat(f"replaced/{sdk.name}", stream=True)
    assert (heard.failure, heard.text) == (None, "Level ground, as far as we see.")
    assert heard.headers["x-biasmeter-deployment"] == "alias"
    assert upstream.requests[-1].model == "ordinary"


def resident(pids: list[int]) -> int:
    """Give the memory of some processes, in bytes."""
    return sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids) * mmap.PAGESIZE


async def test_37_a_slow_reader_costs_bounded_memory_and_is_not_taken_for_a_silent_deployment(
    gateway: Product, raw_headers: dict[str, str], script: Callable[..., None], thorough: bool
) -> None:
    taken_at: list[float] = []
    events = 1000 if thorough else 500

    def large(request: Request) -> Steps:
        for step in sse([event(payloads.chunk(request, "x" * (1 << 16)))] * events + [DONE], packets=False):
            taken_at.append(time.monotonic())
            yield step

    script(large)
    processes = marked_pids(gateway.mark)
    before = resident(processes)
    async with aiohttp.ClientSession(headers=raw_headers) as client, post(client, gateway.url, "hasty") as answer:
        await eventually(lambda: time.monotonic() - taken_at[-1] > 3 * HASTY_S)
        assert len(taken_at) < events // 2  # the rest is still the deployment's
        assert resident(processes) - before < 16 << 20
        received = await answer.read()
    assert received.count(b"data: ") == events + 1
    assert received.endswith(DONE)
    row = await stored(gateway, answer.headers["x-biasmeter-exchange-id"])
    assert (row["outcome"], row["truncated"], row["response_bytes"]) == ("complete", True, len(received))
    (content,) = await gateway.rows("SELECT response FROM exchange_content WHERE id = $1", row["id"])
    assert content["response"] == received[:CAPTURE_LIMIT]


async def test_38_a_client_that_leaves_frees_the_deployment_within_a_second_and_is_recorded(
    sdk: Sdk, gateway: Product, upstream: ScriptedUpstream
) -> None:
    heard = await sdk.chat("hang-mid-stream", stream=True, take=2)
    assert len(heard.events) == 2
    await upstream.until(lambda up: up.requests[-1].outcome is Outcome.CLIENT_GONE, timeout_s=1.0)
    row = await stored(gateway, heard.exchange_id)
    assert (row["status"], row["outcome"]) == (499, "client_gone")
    (content,) = await gateway.rows("SELECT response FROM exchange_content WHERE id = $1", row["id"])
    assert content["response"].count(b"data: ") == 2

    async def nothing_in_flight() -> bool:
        return parsed(await scrape(gateway.url))["biasmeter_in_flight", (("origin", "client"),)] == 0

    await eventually(nothing_in_flight)
