"""Probes that the configuration repeats: a pass is sent once, within its budget, and the next one is another plan."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
import upstream_answers
from product import Product
from sqlalchemy.ext.asyncio import AsyncEngine
from upstream import ScriptedUpstream
from upstream_wire import Request, Steps

from auditor.access import gateway_access
from auditor.config import load
from auditor.probes.run import Runner
from auditor.probes.send import Patience
from auditor.probes.timed import REST, current_passes, run_due
from auditor.store.engine import make_engine

NOON = datetime(2031, 5, 6, 12, tzinfo=UTC)


@pytest.fixture
async def own_engine(product: Product) -> AsyncIterator[AsyncEngine]:
    assert product.database_url is not None
    made = make_engine(product.database_url)
    yield made
    await made.dispose()


def configured(product: Product, **probe: object) -> None:
    product.settings["deployments"][0]["concurrency"] = 40
    product.settings["probes"] = [{"plan": "sentinel", "deployments": ["alias"], "every": "1d", **probe}]
    product.write()


def runner(product: Product, engine: AsyncEngine, now: datetime) -> Runner:
    config = load(product.config, {})
    patience = Patience(attempts=2, first_backoff=0.0, failed_in_a_row=3)
    return Runner(engine=engine, config=config, access=gateway_access(config), patience=patience, now=lambda: now)


async def test_a_pass_is_sent_once_a_day_within_its_budget(
    product: Product, upstream: ScriptedUpstream, own_engine: AsyncEngine
) -> None:
    configured(product, budget={"calls": 20})
    with product.running("gateway"):
        (first,) = await run_due(runner(product, own_engine, NOON))
        assert (first.deployment, first.planned, first.sent, first.answered) == ("alias", 300, 20, 20)
        assert first.budget_ended
        # The day's budget is used up, whoever asks again and when.
        assert await run_due(runner(product, own_engine, NOON + timedelta(hours=11))) == ()
        assert upstream.received == 20
        (next_day,) = await run_due(runner(product, own_engine, NOON + timedelta(days=1)))
        assert (next_day.sent, upstream.received) == (20, 40)
    plans = await product.rows("SELECT id, settings FROM plans ORDER BY created_at")
    assert len({row["id"] for row in plans}) == 2


async def test_a_complete_pass_costs_nothing_more(
    product: Product, upstream: ScriptedUpstream, own_engine: AsyncEngine
) -> None:
    configured(product, share=0.2)
    with product.running("gateway"):
        (done,) = await run_due(runner(product, own_engine, NOON))
        assert (done.answered, done.remaining) == (300, 0)
        assert await run_due(runner(product, own_engine, NOON)) == ()
    assert upstream.received == 300


async def test_a_deployment_that_fails_is_given_up_rests_and_is_tried_again(
    product: Product, upstream: ScriptedUpstream, own_engine: AsyncEngine
) -> None:
    configured(product)

    def broken(request: Request) -> Steps:
        return upstream_answers.json_answer({"error": {"message": "no", "code": "bad"}}, 400)

    upstream.script = broken
    with product.running("gateway"):
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
        same_pass = (
            current_passes(config, later)[0].planned.plan.id == current_passes(config, real_now)[0].planned.plan.id
        )
        (retried,) = await run_due(runner(product, own_engine, later))
        assert (retried.answered, retried.before) == (300, 0)
    assert upstream.received == tried + 300
    assert len(await product.rows("SELECT 1 FROM plans")) == (1 if same_pass else 2)


async def test_what_cannot_be_run_stops_no_other_probe(
    product: Product, upstream: ScriptedUpstream, own_engine: AsyncEngine, caplog: pytest.LogCaptureFixture
) -> None:
    configured(product)
    product.settings["probes"].insert(0, {"plan": "panel", "deployments": ["relayed"]})
    product.settings["probes"][1]["budget"] = {"calls": 3}
    product.write()
    with product.running("gateway"):
        (only,) = await run_due(runner(product, own_engine, NOON))
    assert (only.deployment, only.sent) == ("alias", 3)
    assert "deployment 'relayed' names no model to ask for" in caplog.text
