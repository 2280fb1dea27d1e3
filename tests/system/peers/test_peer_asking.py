"""Asking peers on a real gateway and store: a round is sent once, resumed after a kill, and stays in its budget."""

import asyncio
import json
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
from auditor.errors import AuditError
from auditor.peers.asking import ask_due
from auditor.probes.run import Runner
from auditor.probes.send import Patience
from auditor.store.engine import make_engine

NOON = datetime(2031, 5, 6, 12, tzinfo=UTC)
ROWS = [{"id": f"q{n}", "theme": f"t{n % 3}", "question": f"Who decides on matter {n}?"} for n in range(12)]


@pytest.fixture
async def own_engine(product: Product) -> AsyncIterator[AsyncEngine]:
    assert product.database_url is not None
    made = make_engine(product.database_url)
    yield made
    await made.dispose()


def configured(product: Product, **domain: object) -> None:
    (product.folder / "questions.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    product.settings["judges"] = [{"name": "j", "deployment": "alias"}]
    asked = {"domain": "matters", "questions": "questions.jsonl", "deployments": ["left", "right"], "judges": ["j"]}
    product.settings["peers"] = [asked | domain]
    product.write()


def runner(product: Product, engine: AsyncEngine, now: datetime = NOON) -> Runner:
    config = load(product.config, {})
    patience = Patience(attempts=2, first_backoff=0.0, failed_in_a_row=3)
    return Runner(engine=engine, config=config, access=gateway_access(config), patience=patience, now=lambda: now)


async def test_a_round_is_asked_once_and_the_next_one_is_another(
    product: Product, upstream: ScriptedUpstream, own_engine: AsyncEngine
) -> None:
    configured(product, every="1d")
    done = await ask_due(runner(product, own_engine))
    assert {(one.deployment, one.planned, one.answered) for one in done} == {("left", 12, 12), ("right", 12, 12)}
    assert await ask_due(runner(product, own_engine, NOON + timedelta(hours=11))) == ()
    assert upstream.received == 24
    assert {one.sent for one in await ask_due(runner(product, own_engine, NOON + timedelta(days=1)))} == {12}
    await product.shipped()
    asked = [request.payload["messages"] for request in upstream.requests]
    assert sorted(each[0]["content"] for each in asked) == sorted(row["question"] for row in ROWS * 4)
    rows = await product.rows("SELECT DISTINCT origin, inclusion, capture FROM exchanges")
    assert [tuple(row.values()) for row in rows] == [("probe", 1.0, "full")]
    rounds = await product.rows("SELECT domain, settings FROM peer_rounds ORDER BY created_at")
    assert [(row["domain"], json.loads(row["settings"])["seed"]) for row in rounds] == [("matters", 0)] * 2
    assert await product.rows("SELECT 1 FROM planned_calls") == [], "no coder takes them for a stance's question"


async def test_a_round_that_was_broken_off_is_resumed_and_a_call_is_counted_once(
    product: Product, upstream: ScriptedUpstream, own_engine: AsyncEngine
) -> None:
    configured(product)
    by_model, answered = upstream.script, 0

    def breaks(request: Request) -> Steps:
        nonlocal answered
        answered += 1
        broken = upstream_answers.json_answer({"error": {"message": "no", "code": "bad"}}, 400)
        return by_model(request) if answered <= 7 else broken

    upstream.script = breaks
    first = await ask_due(runner(product, own_engine, datetime.now(UTC)))
    assert sum(one.answered for one in first) == 7
    upstream.script = by_model
    second = await ask_due(runner(product, own_engine, datetime.now(UTC) + timedelta(minutes=11)))
    assert sum(one.sent for one in second) == 24 - 7
    await product.shipped()
    counted = await product.rows(
        "SELECT count(*) AS n, count(DISTINCT exchange_id) AS m FROM peer_calls JOIN planned_instances USING (ref)"
    )
    assert tuple(counted[0].values()) == (24, 24)


async def test_a_block_is_an_answer_and_the_budget_holds_for_the_round(
    product: Product, upstream: ScriptedUpstream, own_engine: AsyncEngine
) -> None:
    configured(product, budget={"calls": 10})

    def censors(request: Request) -> Steps:
        error = {"message": "This was blocked.", "code": "content_filter"}
        return upstream_answers.json_answer({"error": error}, 400)

    upstream.script = censors
    done = await ask_due(runner(product, own_engine))
    assert sum(one.answered for one in done) == sum(one.sent for one in done) == 10
    assert await ask_due(runner(product, own_engine)) == ()
    assert upstream.received == 10


async def test_a_pack_that_is_gone_stops_no_other_domain(
    product: Product, upstream: ScriptedUpstream, own_engine: AsyncEngine
) -> None:
    configured(product)
    gone = {**product.settings["peers"][0], "domain": "gone", "questions": "nowhere.csv"}
    product.settings["peers"].insert(0, gone)
    product.write()
    with pytest.raises(AuditError, match=r"^gone: .*nowhere\.csv"):
        await ask_due(runner(product, own_engine))
    assert upstream.received == 24


async def test_what_another_process_sends_is_left_to_it(
    product: Product, upstream: ScriptedUpstream, own_engine: AsyncEngine
) -> None:
    configured(product)
    done = await asyncio.gather(*(ask_due(runner(product, own_engine)) for _ in range(2)))
    assert upstream.received == 24
    assert sum(len(each) for each in done) == 2, "one of them sent to both deployments, the other to none"
