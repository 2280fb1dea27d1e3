"""Behaviours 17 to 25: answers in one piece, and what happens when there is none."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from support.clients.sdk_clients import Failure, Sdk
from support.documents.routes import add_route
from support.servers.certificates import make_authority
from support.servers.ports import free_port
from support.servers.product import Product, settings
from support.upstreams import upstream_payloads as payloads
from support.upstreams.scripted_upstream import ScriptedUpstream, scripted_upstream
from support.upstreams.upstream_answers import brief_failure, by_model, in_turn, json_answer, ordinary, reset_at_once
from support.upstreams.upstream_wire import Outcome, Request, Steps
from support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

NAMES = ("python", "node")
REFUSALS = ("bad-request", "unknown-model", "status:422")
TRIED_AGAIN = (408, 409, 429, 500, 502, 503)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def untrusted(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ScriptedUpstream]:
    """An upstream whose certificate nobody has reason to accept."""
    certificate = make_authority(tmp_path_factory.mktemp("authority"), "nobody").serving("upstream", "IP:127.0.0.1")
    async with scripted_upstream(tls=certificate) as up:
        yield up


@pytest.fixture(scope="module")
def configuration(upstream: ScriptedUpstream, untrusted: ScriptedUpstream) -> dict[str, Any]:
    """No route takes the rest, and what fails has a route for each SDK."""
    made = settings(upstream.url)
    made["routes"].pop()
    for answer in ("ordinary", "odd-json", "gzipped", "silence", *REFUSALS):
        add_route(made, answer, upstream.url)
    for name in NAMES:
        add_route(made, f"limited-{name}", upstream.url, answer="rate-limited:0.05")
        add_route(made, f"limited-for-long-{name}", upstream.url, answer="rate-limited:2")
        add_route(made, f"recovering-{name}", upstream.url, answer="ordinary")
        add_route(made, f"broken-{name}", upstream.url, answer="brief-failure:500")
        add_route(made, f"refused-{name}", f"http://127.0.0.1:{free_port()}/v1")
        # Where no resolver answers at all, the wait for one is a wait to connect.
        add_route(made, f"no-address-{name}", "http://nowhere.invalid/v1", timeouts={"connect": 0.3})
        add_route(made, f"untrusted-{name}", untrusted.url)
        add_route(made, f"silent-{name}", upstream.url, answer="silence", timeouts={"total": 0.3})
    return made


async def failed(sdk: Sdk, model: str, **options: Any) -> Failure:
    failure = (await sdk.chat(model, **options)).failure
    assert failure is not None
    return failure


async def raw(url: str, model: str, headers: dict[str, str]) -> tuple[int, str | None, bytes]:
    async with (
        aiohttp.ClientSession(auto_decompress=False, headers=headers) as client,
        client.post(url + "/chat/completions", json={"model": model, "messages": []}) as answer,
    ):
        return answer.status, answer.headers.get("content-type"), await answer.read()


@pytest.mark.parametrize("model", ["ordinary", "odd-json", "gzipped"])
async def test_17_an_answer_arrives_byte_for_byte_under_its_own_content_type(
    gateway: Product, upstream: ScriptedUpstream, raw_headers: dict[str, str], model: str
) -> None:
    headers = raw_headers | {"x-request-id": "one-17"}  # the scripted answer tells it
    assert await raw(gateway.url + "/v1", model, headers) == await raw(upstream.url, model, headers)


async def test_18_an_unknown_model_is_404_and_no_deployment_is_asked(sdk: Sdk, upstream: ScriptedUpstream) -> None:
    before = upstream.received
    for stream in (False, True):
        failure = await failed(sdk, "gpt-of-another-world", stream=stream)
        assert (failure.kind, failure.status) == ("NotFoundError", 404)
        assert (failure.body["code"], failure.body["param"]) == ("model_not_found", "model")
        assert failure.headers["x-should-retry"] == "false"
    assert upstream.received == before


@pytest.mark.parametrize("model", REFUSALS)
async def test_19_a_deployments_refusal_is_relayed_as_it_is_and_not_tried_again(
    sdk: Sdk, upstream: ScriptedUpstream, model: str
) -> None:
    direct = await failed(sdk.to(upstream.url), model)
    before = upstream.received
    through = await failed(sdk, model, retries=2)
    assert upstream.received == before + 1
    assert (through.kind, through.status, through.body) == (direct.kind, direct.status, direct.body)
    assert through.headers["x-biasmeter-attempts"] == "1"
    assert through.headers["x-should-retry"] == "false"


async def test_20_a_deployments_429_is_relayed_with_its_headers_once_the_retries_are_used_up(
    sdk: Sdk, upstream: ScriptedUpstream
) -> None:
    before = upstream.received
    through = await failed(sdk, f"limited-{sdk.name}")
    assert upstream.received == before + 3
    direct = await failed(sdk.to(upstream.url), "rate-limited:0.05")
    assert (through.kind, through.status, through.body) == ("RateLimitError", 429, direct.body)
    told = ("retry-after", "retry-after-ms", "x-ratelimit-limit-requests", "x-ratelimit-remaining-requests")
    assert {name: through.headers[name] for name in told} == {name: direct.headers[name] for name in told}
    assert through.headers["x-biasmeter-attempts"] == "3"


async def test_21_a_deployment_out_of_reach_is_502_and_one_that_is_silent_504(sdk: Sdk) -> None:
    expected = {"refused": 502, "no-address": 502, "untrusted": 502, "silent": 504}
    failures = await asyncio.gather(*(failed(sdk, f"{model}-{sdk.name}") for model in expected))
    assert [failure.status for failure in failures] == list(expected.values())
    for failure in failures:
        assert (failure.kind, failure.body["type"]) == ("InternalServerError", "api_error")
        assert set(failure.body) == {"message", "type", "param", "code"}


async def test_22_a_wait_beyond_the_clients_deadline_is_not_begun(sdk: Sdk, upstream: ScriptedUpstream) -> None:
    """The deployment asks for two seconds; an SDK says how long it waits."""
    before = upstream.received
    failure = await failed(sdk, f"limited-for-long-{sdk.name}", patience=1.5)
    assert (failure.status, failure.headers["retry-after"]) == (429, "2")
    assert upstream.received == before + 1
    assert failure.headers["x-biasmeter-attempts"] == "1"


@pytest.fixture
def script(upstream: ScriptedUpstream) -> Iterator[Callable[[Callable[[Request], Steps]], None]]:
    """Change the upstream's script for one test."""

    def change(to: Callable[[Request], Steps]) -> None:
        upstream.script = to

    yield change
    upstream.script = by_model


@pytest.mark.parametrize("code", TRIED_AGAIN)
async def test_23_what_may_pass_is_tried_again_and_the_attempts_are_told(
    sdk: Sdk, script: Callable[..., None], code: int
) -> None:
    script(in_turn(partial(brief_failure, code=str(code)), ordinary))
    heard = await sdk.chat(f"recovering-{sdk.name}")
    assert heard.failure is None
    assert heard.headers["x-biasmeter-attempts"] == "2"


async def test_23_a_connection_that_is_reset_is_made_again(
    sdk: Sdk, upstream: ScriptedUpstream, script: Callable[..., None]
) -> None:
    before = len(upstream.requests)
    script(in_turn(reset_at_once, reset_at_once, ordinary))
    heard = await sdk.chat(f"recovering-{sdk.name}")
    assert heard.failure is None
    *resets, answered = upstream.requests[before:]
    assert len(resets) == 2
    # A kept connection may have been closed at that moment, and is replaced within the attempt; a new one counts.
    counted = [request for request in resets if request.nth == 0]
    assert heard.headers["x-biasmeter-attempts"] == str(len(counted) + 1)
    assert answered.outcome is Outcome.SENT


async def test_23_a_deployments_retry_after_is_honoured(
    sdk: Sdk, upstream: ScriptedUpstream, script: Callable[..., None]
) -> None:
    asked_at: list[float] = []

    def later(request: Request) -> Steps:
        asked_at.append(time.monotonic())
        if len(asked_at) > 2:
            return ordinary(request)
        return json_answer(payloads.error("later"), 503, [("retry-after", "30"), ("retry-after-ms", "700")])

    script(later)
    heard = await sdk.chat(f"recovering-{sdk.name}")
    assert heard.failure is None
    assert all(second - first >= 0.7 for first, second in pairwise(asked_at))


@pytest.mark.parametrize("code", [400, 401, 403, 404, 410, 413, 415, 422])
async def test_23_what_cannot_pass_is_not_tried_again(
    sdk: Sdk, upstream: ScriptedUpstream, script: Callable[..., None], code: int
) -> None:
    script(partial(brief_failure, code=str(code)))
    before = upstream.received
    assert (await failed(sdk, "ordinary")).status == code
    assert upstream.received == before + 1


async def test_24_with_every_circuit_open_it_is_503_until_the_soonest_is_tried(
    sdk: Sdk, upstream: ScriptedUpstream
) -> None:
    model = f"broken-{sdk.name}"
    # However often a request is tried, it counts once; the fifth in a row opens the circuit.
    await asyncio.gather(*(failed(sdk, model) for _ in range(5)))
    before = upstream.received
    failures = [await failed(sdk, model) for _ in range(6)]
    assert upstream.received == before
    for failure in failures:
        assert (failure.kind, failure.status, failure.body["type"]) == ("InternalServerError", 503, "api_error")
        assert 1 <= int(failure.headers["retry-after"]) <= 10


async def test_25_a_client_that_gives_up_frees_the_deployment_within_a_second_and_is_recorded(
    sdk: Sdk, gateway: Product, upstream: ScriptedUpstream
) -> None:
    name = f"gives-up-{sdk.name}"
    asking = asyncio.create_task(sdk.with_headers(x_request_id=name).chat("silence", patience=0.7))
    await upstream.until(lambda up: up.hanging == 1)
    heard = await asking
    await upstream.until(lambda up: up.requests[-1].outcome is Outcome.CLIENT_GONE, timeout_s=1.0)
    assert heard.failure is not None
    assert heard.failure.kind in {"APITimeoutError", "APIConnectionTimeoutError"}
    rows: list[Any] = []

    async def recorded() -> bool:
        rows[:] = await gateway.rows("SELECT * FROM exchanges WHERE request_id = $1", name)
        return bool(rows)

    await eventually(recorded)
    (row,) = rows
    assert (row["status"], row["outcome"], row["error_type"]) == (499, "client_gone", "client_gone")
