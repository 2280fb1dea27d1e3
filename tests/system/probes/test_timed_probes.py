"""Probes that the configuration repeats: a pass is sent once, within its budget, and the next one is another plan."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from support.servers.product import Product
from support.upstreams import upstream_answers
from support.upstreams.scripted_upstream import ScriptedUpstream
from support.upstreams.upstream_wire import Request, Steps

from auditor.access import gateway_access
from auditor.config import load
from auditor.instrument.pool import pool_of_design
from auditor.probes import timed
from auditor.probes.run import Runner
from auditor.probes.send import Patience
from auditor.probes.session import open_session, target_of
from auditor.probes.timed import REST, current_pass, delay, run_due
from auditor.store.engine import make_engine

NOON = datetime(2031, 5, 6, 12, tzinfo=UTC)


@pytest.fixture
def product(beside_gateway: Product) -> Product:
    """The probes' configuration, on a gateway that runs."""
    return beside_gateway


@pytest.fixture
async def own_engine(product: Product) -> AsyncIterator[AsyncEngine]:
    assert product.database_url is not None
    made = make_engine(product.database_url)
    yield made
    await made.dispose()


@pytest.fixture(autouse=True)
def calls(monkeypatch: pytest.MonkeyPatch, thorough: bool) -> int:
    """How many calls a pass has: three for each statement, of the whole pool or of a part."""
    if thorough:
        return 360
    monkeypatch.setattr(timed, "pool_of_design", lambda *named: pool_of_design(*named)[:24])
    return 72


def configured(product: Product, **probe: object) -> None:
    product.settings["deployments"][0]["concurrency"] = 40
    product.settings["probes"] = [{"plan": "sentinel", "deployments": ["alias"], "every": "1d", **probe}]
    product.write()


def runner(product: Product, engine: AsyncEngine, now: datetime) -> Runner:
    config = load(product.config, {})
    patience = Patience(attempts=2, first_backoff=0.0, failed_in_a_row=3)
    return Runner(engine=engine, config=config, access=gateway_access(config), patience=patience, now=lambda: now)


async def test_a_pass_is_sent_once_a_day_within_its_budget(
    product: Product, upstream: ScriptedUpstream, own_engine: AsyncEngine, calls: int
) -> None:
    configured(product, budget={"calls": 20})
    (first,) = await run_due(runner(product, own_engine, NOON))
    assert (first.deployment, first.planned, first.sent, first.answered) == ("alias", calls, 20, 20)
    assert first.budget_ended
    # The day's budget is used up, whoever asks again and when.
    assert await run_due(runner(product, own_engine, NOON + timedelta(hours=11))) == ()
    assert upstream.received == 20
    (next_day,) = await run_due(runner(product, own_engine, NOON + timedelta(days=1, hours=11)))
    assert (next_day.sent, upstream.received) == (20, 40)
    plans = await product.rows("SELECT id, settings FROM plans ORDER BY created_at")
    assert len({row["id"] for row in plans}) == 2


async def test_a_pass_keeps_to_its_budget_over_runs_that_ask_others(
    product: Product, upstream: ScriptedUpstream, own_engine: AsyncEngine, calls: int
) -> None:
    product.settings["deployments"][-1] |= {"concurrency": 40, "price": {"input": 0.0, "output": 0.0}}
    more = calls // 4
    configured(product, budget={"calls": calls + more}, share=0.2)
    (first,) = await run_due(runner(product, own_engine, NOON))
    assert first.answered == calls
    product.settings["probes"][0]["deployments"] = ["alias", "right"]
    product.write()
    (second,) = await run_due(runner(product, own_engine, NOON))
    assert (second.deployment, second.sent, second.budget_ended) == ("right", more, True)
    assert await run_due(runner(product, own_engine, NOON)) == ()
    assert upstream.received == calls + more


async def test_a_budget_of_money_that_is_used_up_is_not_looked_at_again(
    product: Product, upstream: ScriptedUpstream, own_engine: AsyncEngine
) -> None:
    product.settings["deployments"][0]["price"] = {"input": 3000.0, "output": 3000.0}
    configured(product, budget={"usd": 1.0})
    (first,) = await run_due(runner(product, own_engine, NOON))
    assert first.stopped == "the budget of 1 USD is used up"
    rounds = 0
    while ended := await run_due(runner(product, own_engine, NOON)):
        assert ended[0].sent > 0  # answers cost less than was set aside for them
        rounds += 1
    assert rounds < 40
    assert upstream.received < 1000 / 51  # an answer takes 17 tokens: 0.051 USD


async def test_a_pass_that_another_process_runs_is_left_to_it_without_a_word(
    product: Product, upstream: ScriptedUpstream, own_engine: AsyncEngine, caplog: pytest.LogCaptureFixture
) -> None:
    configured(product, budget={"calls": 3})
    one = runner(product, own_engine, NOON)
    planned = current_pass(one.config, one.config.probes[0], NOON).planned
    target = target_of(one.config, one.config.deployments[0], 0.1)
    async with open_session(own_engine, one.access, planned.plan.id, [target]):
        assert await run_due(one) == ()
    assert [record.message for record in caplog.records if record.name.startswith("auditor")] == []
    (ended,) = await run_due(one)
    assert ended.sent == 3


async def test_each_deployment_has_its_own_time_of_the_day_and_a_new_one_begins_at_once(
    product: Product, upstream: ScriptedUpstream, own_engine: AsyncEngine
) -> None:
    configured(product, budget={"calls": 20})
    config = runner(product, own_engine, NOON).config
    midnight = NOON - timedelta(hours=12)
    later = timedelta(seconds=delay(config.seed, config.probes[0], "alias"))
    assert timedelta(0) < later < timedelta(hours=18)
    (first,) = await run_due(runner(product, own_engine, midnight))
    assert (first.deployment, first.sent) == ("alias", 20)
    next_day = midnight + timedelta(days=1)
    assert await run_due(runner(product, own_engine, next_day + later - timedelta(seconds=1))) == ()
    (second,) = await run_due(runner(product, own_engine, next_day + later + timedelta(seconds=1)))
    assert second.sent == 20


async def test_a_complete_pass_costs_nothing_more(
    product: Product, upstream: ScriptedUpstream, own_engine: AsyncEngine, calls: int
) -> None:
    configured(product, share=0.2)
    (done,) = await run_due(runner(product, own_engine, NOON))
    assert (done.answered, done.remaining) == (calls, 0)
    assert await run_due(runner(product, own_engine, NOON)) == ()
    assert upstream.received == calls


async def test_a_deployment_that_fails_is_given_up_rests_and_is_tried_again(
    product: Product, upstream: ScriptedUpstream, own_engine: AsyncEngine, calls: int
) -> None:
    configured(product)

    def broken(request: Request) -> Steps:
        return upstream_answers.json_answer({"error": {"message": "no", "code": "bad"}}, 400)

    upstream.script = broken
    real_now = datetime.now(UTC)
    (failed,) = await run_due(runner(product, own_engine, real_now))
    assert failed.answered == 0
    assert failed.stopped == "3 calls in a row failed, the last with HTTP 400 bad"
    tried = upstream.received
    assert await run_due(runner(product, own_engine, datetime.now(UTC))) == ()
    assert upstream.received == tried
    upstream.script = upstream_answers.by_model
    config = load(product.config, {})
    later = real_now + REST + timedelta(seconds=5)
    passes = [current_pass(config, config.probes[0], moment).planned.plan.id for moment in (real_now, later)]
    (retried,) = await run_due(runner(product, own_engine, later))
    assert (retried.answered, retried.before) == (calls, 0)
    assert upstream.received == tried + calls
    assert len(await product.rows("SELECT 1 FROM plans")) == len(set(passes))


async def test_what_cannot_be_run_stops_no_other_probe(
    product: Product, upstream: ScriptedUpstream, own_engine: AsyncEngine, caplog: pytest.LogCaptureFixture
) -> None:
    configured(product)
    product.settings["probes"].insert(0, {"plan": "panel", "deployments": ["relayed"]})
    product.settings["probes"][1]["budget"] = {"calls": 3}
    product.write()
    (only,) = await run_due(runner(product, own_engine, NOON))
    assert (only.deployment, only.sent) == ("alias", 3)
    assert "deployment 'relayed' names no model to ask for" in caplog.text
