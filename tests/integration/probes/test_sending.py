"""Sending to a gateway that answers as it is told: pauses, repeats, giving up, budgets."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from types import SimpleNamespace
from uuid import UUID

import httpx2
import pytest
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from auditor.access import GatewayAccess
from auditor.domain.question import Message
from auditor.errors import AuditError, StoreUnavailable, UsageError
from auditor.probes import send as send_module
from auditor.probes.send import CallTarget, Outgoing, Patience, RunBudget, Sender, Tally
from auditor.probes.session import Session, wait_until_shipped
from auditor.store.engine import make_engine, transaction
from auditor.store.exchanges import planned_instances

ACCESS = GatewayAccess(url="http://gateway/v1", key="secret")
EXCHANGE = "0190b7a0-0000-7000-8000-000000000000"
QUICK = Patience(first_backoff=0.0, first_pause=0.05)
Handler = Callable[[httpx2.Request], httpx2.Response]


@dataclass
class Clock:
    """The time that a sender sees, which passes only while it sleeps."""

    now: float = 0.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    passing = Clock()
    yield_to_others = asyncio.sleep

    async def sleep(seconds: float) -> None:
        passing.now += seconds
        await yield_to_others(0)

    monkeypatch.setattr(send_module, "time", SimpleNamespace(monotonic=lambda: passing.now))
    monkeypatch.setattr(asyncio, "sleep", sleep)
    return passing


def calls(count: int, usd: float = 0.0) -> list[Outgoing]:
    message = Message(role="user", content="Do you agree?")
    return [Outgoing(ref=f"plan.{number}", messages=(message,), usd=usd) for number in range(count)]


def answer(prompt: int = 10, completion: int = 5) -> httpx2.Response:
    usage = {"prompt_tokens": prompt, "completion_tokens": completion}
    return httpx2.Response(200, json={"choices": [{"message": {"content": "No."}}], "usage": usage})


def failure(status: int, code: str | None = None, **headers: str) -> httpx2.Response:
    body = {"error": {"message": "no", "type": "api_error", "param": None, "code": code}}
    return httpx2.Response(status, json=body, headers={"x-biasmeter-exchange-id": EXCHANGE, **headers})


async def send(
    handler: Handler,
    outgoing: list[Outgoing],
    budget: RunBudget | None = None,
    in_flight: int = 2,
    patience: Patience = QUICK,
) -> Tally:
    async with httpx2.AsyncClient(transport=httpx2.MockTransport(handler)) as client:
        return await Sender(client, ACCESS, target(in_flight), budget or RunBudget(), patience=patience).send(outgoing)


def target(in_flight: int = 2) -> CallTarget:
    return CallTarget(deployment="d", model="gpt", in_flight=in_flight, timeout=5.0, price=lambda p, c: (p + c) / 1000)


async def test_a_call_names_its_origin_its_ref_and_its_deployment() -> None:
    seen: list[httpx2.Request] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return answer()

    tally = await send(handler, calls(3))
    assert (tally.sent, tally.answered, tally.stopped) == (3, 3, None)
    assert sorted(one.headers["x-biasmeter-ref"] for one in seen) == ["plan.0", "plan.1", "plan.2"]
    for one in seen:
        assert one.url == "http://gateway/v1/chat/completions"
        assert one.headers["x-biasmeter-origin"] == "probe"
        assert one.headers["x-biasmeter-deployment"] == "d"
        assert one.headers["authorization"] == "Bearer secret"
        assert one.read() == b'{"model":"gpt","messages":[{"role":"user","content":"Do you agree?"}]}'


async def test_never_more_at_once_than_allowed() -> None:
    under_way, most = 0, 0

    async def handler(request: httpx2.Request) -> httpx2.Response:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        for _ in range(100):  # turns of the event loop in which another call could begin
            await asyncio.sleep(0)
        under_way -= 1
        return answer()

    tally = await send(handler, calls(20), in_flight=3)  # type: ignore[arg-type]
    assert (tally.answered, most) == (20, 3)


async def test_429_pauses_every_call_to_the_deployment_for_as_long_as_is_asked(clock: Clock) -> None:
    at: list[float] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        at.append(clock.now)
        return failure(429, **{"retry-after-ms": "150", "retry-after": "9"}) if len(at) == 3 else answer()

    tally = await send(handler, calls(8), in_flight=1)
    assert (tally.sent, tally.answered) == (9, 8)
    assert [later - earlier for earlier, later in pairwise(at)] == pytest.approx([0, 0, 0.15, 0, 0, 0, 0, 0])


async def test_429_without_end_gives_the_deployment_up() -> None:
    tally = await send(lambda _: failure(429, **{"retry-after": "0"}), calls(8), patience=Patience(pauses_in_a_row=3))
    assert tally.answered == 0
    assert tally.sent <= 12
    assert tally.stopped == "HTTP 429 after 3 pauses in a row"


async def test_a_pause_without_a_time_doubles(clock: Clock) -> None:
    at: list[float] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        at.append(clock.now)
        return failure(429) if len(at) <= 3 else answer()

    await send(handler, calls(1))
    assert [later - earlier for earlier, later in pairwise(at)] == pytest.approx([0.05, 0.1, 0.2])


@pytest.mark.parametrize("status", [500, 502, 503, 504])
async def test_what_may_pass_is_tried_again(status: int) -> None:
    left = [failure(status), httpx2.ConnectError("refused"), failure(status)]

    def handler(request: httpx2.Request) -> httpx2.Response:
        if not left:
            return answer()
        one = left.pop()
        if isinstance(one, Exception):
            raise one
        return one

    tally = await send(handler, calls(1))
    assert (tally.sent, tally.answered, dict(tally.failed)) == (4, 1, {})


async def test_tries_are_bounded_and_what_failed_is_told() -> None:
    tally = await send(
        lambda _: failure(502, "upstream_reset"), calls(2), patience=Patience(attempts=3, first_backoff=0)
    )
    assert (tally.sent, tally.answered) == (6, 0)
    assert dict(tally.failed) == {"HTTP 502 upstream_reset": 2}


async def test_what_cannot_pass_is_not_tried_again_and_a_row_of_it_stops() -> None:
    tally = await send(lambda _: failure(400, "bad_request"), calls(40), in_flight=2)
    assert tally.sent <= 12
    assert dict(tally.failed) == {"HTTP 400 bad_request": 10}
    assert tally.stopped == "10 calls in a row failed, the last with HTTP 400 bad_request"


async def test_failures_between_answers_do_not_stop() -> None:
    def handler(request: httpx2.Request) -> httpx2.Response:
        return failure(400) if int(request.headers["x-biasmeter-ref"].split(".")[1]) % 5 else answer()

    tally = await send(handler, calls(40), in_flight=1)
    assert (tally.answered, tally.failed.total(), tally.stopped) == (8, 32, None)


@pytest.mark.parametrize(
    "error",
    [
        {"code": "content_filter", "message": "blocked"},
        {"code": "invalid_prompt", "innererror": {"code": "ResponsibleAIPolicyViolation"}},
        {"code": None, "type": "content_policy_violation"},
    ],
)
async def test_a_providers_block_is_an_answer(error: dict[str, object]) -> None:
    headers = {"x-biasmeter-exchange-id": EXCHANGE}
    tally = await send(lambda _: httpx2.Response(400, json={"error": error}, headers=headers), calls(1))
    assert {ref: str(exchange) for ref, exchange in tally.blocked.items()} == {"plan.0": EXCHANGE}
    assert not tally.failed


async def test_a_block_counts_at_once(engine: AsyncEngine) -> None:
    """A run that is ended in its middle must not ask again what was blocked before."""
    reached = asyncio.Event()

    async def handler(request: httpx2.Request) -> httpx2.Response:
        if request.headers["x-biasmeter-ref"] == "plan.3":
            reached.set()
            await asyncio.Event().wait()
        return failure(400, "content_filter")

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(handler)) as client:  # type: ignore[arg-type]
        session = Session(engine=engine, access=ACCESS, client=client)
        sending = asyncio.create_task(session.send([(target(in_flight=1), calls(9))], RunBudget()))
        await reached.wait()
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
    async with transaction(engine) as connection:
        counted = await connection.execute(select(planned_instances).order_by(planned_instances.c.ref))
    assert [tuple(row) for row in counted] == [(f"plan.{number}", UUID(EXCHANGE)) for number in range(3)]


async def test_a_block_that_cannot_be_counted_ends_the_run_in_one_line() -> None:
    async with httpx2.AsyncClient(transport=httpx2.MockTransport(lambda _: failure(400, "content_filter"))) as client:
        engine = make_engine("postgresql://nobody@127.0.0.1:1/nothing")
        session = Session(engine=engine, access=ACCESS, client=client)
        with pytest.raises(StoreUnavailable, match="the store does not answer"):
            await session.send([(target(), calls(20))], RunBudget())
        await engine.dispose()


async def test_a_gateway_that_refuses_probes_is_told_in_one_line() -> None:
    def handler(request: httpx2.Request) -> httpx2.Response:
        body = {"error": {"message": "The header x-biasmeter-origin needs a key with the right 'origin'."}}
        return httpx2.Response(403, json=body)

    with pytest.raises(UsageError) as caught:
        await send(handler, calls(20))
    assert str(caught.value) == (
        "the gateway at http://gateway/v1 refuses probes: "
        "The header x-biasmeter-origin needs a key with the right 'origin'."
    )


async def test_a_budget_of_calls_is_never_passed() -> None:
    tally = await send(lambda _: answer(), calls(20), RunBudget(calls_limit=7), in_flight=4)
    assert (tally.sent, tally.budget_ended) == (7, True)
    assert tally.stopped == "the budget of 7 calls is used up"


async def test_a_budget_of_money_counts_what_was_used_and_what_is_under_way() -> None:
    # Expected .02 each, really .05 (30 + 20 tokens): .05, .10, .15, and .15 + .02 > .16.
    budget = RunBudget(usd_limit=0.16)
    tally = await send(lambda _: answer(30, 20), calls(20, usd=0.02), budget, in_flight=1)
    assert tally.sent == 3
    assert budget.usd == pytest.approx(0.15)
    assert tally.stopped == "the budget of 0.16 USD is used up"
    # With eight at once the calls under way are set aside: at most eight can cost more than expected.
    budget = RunBudget(usd_limit=0.16)
    tally = await send(lambda _: answer(30, 20), calls(20, usd=0.02), budget, in_flight=8)
    assert tally.sent <= 8


async def test_a_failed_call_costs_nothing() -> None:
    budget = RunBudget(usd_limit=1.0)
    await send(lambda _: failure(400), calls(5, usd=0.2), budget, in_flight=1)
    assert (budget.calls, budget.usd) == (5, 0.0)


# -- waiting for the spool -----------------------------------------------------------------------------------------


async def shipped(*states: str | int, patience: float = 60.0, step: float = 1.0) -> int:
    """Wait on a gateway whose spool is in these states, one a look; how many looks it took."""
    looks = 0
    now = 0.0

    def handler(request: httpx2.Request) -> httpx2.Response:
        nonlocal looks
        state = states[min(looks, len(states) - 1)]
        looks += 1
        return httpx2.Response(state) if isinstance(state, int) else httpx2.Response(200, text=state)

    def clock() -> float:
        nonlocal now
        now += step
        return now

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(handler)) as client:
        await wait_until_shipped(client, ACCESS, patience, clock)
    return looks


def spool(size: int, oldest: float | None = None) -> str:
    lines = ["# TYPE biasmeter_spool_bytes gauge", f"biasmeter_spool_bytes {float(size)}"]
    return "\n".join(lines + ([f"biasmeter_spool_oldest_seconds {oldest}"] if oldest is not None else [])) + "\n"


async def test_an_empty_spool_is_shipped() -> None:
    assert await shipped(spool(0)) == 1
    assert await shipped(spool(5, 9.0), spool(5, 9.0), spool(0)) == 3


async def test_records_younger_than_the_wait_do_not_count() -> None:
    """Clients go on: at the third look three seconds have passed, and the oldest record is two seconds old."""
    assert await shipped(spool(5, 9.0), spool(5, 2.0), spool(5, 2.0), spool(5, 2.0)) == 3


async def test_a_spool_that_does_not_empty_is_an_error() -> None:
    with pytest.raises(StoreUnavailable, match="5 bytes wait in the spool of the gateway at http://gateway/v1"):
        await shipped(spool(5, 100.0), patience=3.0)


async def test_a_gateway_that_is_away_or_something_else() -> None:
    with pytest.raises(AuditError, match="the gateway at http://gateway/v1 does not answer"):
        await shipped(502)
    with pytest.raises(AuditError, match="is this a biasmeter gateway"):
        await shipped("hello")
