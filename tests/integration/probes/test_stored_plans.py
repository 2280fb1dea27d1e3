"""Plans in a real store: copied as they are made, once whoever repeats it; and what answers took so far."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from support.stores.audited_store import fetch, ship
from support.stores.exchanges import NOON, exchange

from auditor.domain.condition import Task
from auditor.domain.exchange import Exchange, Origin, Outcome
from auditor.domain.plan import PlannedCall
from auditor.errors import InputError, StoreUnavailable
from auditor.instrument.designs import Design
from auditor.instrument.pool import SHIPPED_POOLS, record_of, shipped_pool
from auditor.probes.plan import Planned, PlanSpec, make_plan
from auditor.store.engine import transaction
from auditor.store.plans import (
    AnswerStats,
    Count,
    Spent,
    add_plan,
    answered_positions,
    count_calls,
    read_answer_stats,
    read_spent,
)

PLANNED = make_plan(PlanSpec(design=Design.SENTINEL, statements=shipped_pool()[:5], draws=2))
EACH = 5 * 3 * 2


async def store(engine: AsyncEngine, planned: Planned, *calls: PlannedCall) -> None:
    records = {one.id: record_of(one) for one in planned.statements}
    async with transaction(engine) as connection:
        await add_plan(connection, planned.plan, records, iter(calls), datetime.now(UTC))


def answer(call: PlannedCall, number: int, **changed: object) -> Exchange:
    usual = {"origin": Origin.PROBE, "deployment": call.deployment, "ref": call.ref}
    return exchange(NOON + timedelta(seconds=number), **(usual | changed))


async def test_calls_are_stored_as_they_were_made_and_once(engine: AsyncEngine, migrated_url: str) -> None:
    await store(engine, PLANNED, *PLANNED.calls("left"))
    await store(engine, PLANNED, *PLANNED.calls("left"), *PLANNED.calls("right"))
    rows = await fetch(migrated_url, "SELECT * FROM planned_calls ORDER BY deployment, position")
    made = [*PLANNED.calls("left"), *PLANNED.calls("right")]
    assert [tuple(row) for row in rows] == [
        (
            call.ref, PLANNED.plan.id, call.deployment, call.statement_id, call.condition.task,
            call.condition.perspective, call.condition.role, call.condition.sentiment, call.template_id, call.draw,
            call.position, call.invites_reason,
        )
        for call in made
    ]  # fmt: skip
    assert len(rows) == 2 * EACH


async def test_a_plan_that_cannot_be_stored_leaves_nothing(engine: AsyncEngine, migrated_url: str) -> None:
    good, bad = list(PLANNED.calls("left")), next(PLANNED.calls("\0"))
    with pytest.raises(StoreUnavailable, match=r"^the store does not take the plan: invalid byte sequence"):
        await store(engine, PLANNED, *good, bad)
    assert await fetch(migrated_url, "SELECT 1 FROM plans UNION ALL SELECT 1 FROM planned_calls") == []


async def test_both_versions_of_the_pool_are_asked_in_one_store_and_a_changed_wording_is_refused(
    engine: AsyncEngine,
) -> None:
    plans = [make_plan(PlanSpec(design=Design.PANEL, statements=shipped_pool(name))) for name in SHIPPED_POOLS]
    for planned in (*plans, plans[0]):
        await store(engine, planned)
    first = replace(shipped_pool()[0], context="Two people met.")
    with pytest.raises(InputError, match="statement 'gender-01' is stored with other words"):
        await store(engine, make_plan(PlanSpec(design=Design.PANEL, statements=(first,))))


async def test_what_is_answered_is_known_by_deployment_and_position(engine: AsyncEngine, migrated_url: str) -> None:
    left, right = list(PLANNED.calls("left")), list(PLANNED.calls("right"))
    await store(engine, PLANNED, *left, *right)
    await ship(migrated_url, [answer(call, number) for number, call in enumerate((*left[3:7], right[0]))])
    async with transaction(engine) as connection:
        assert await count_calls(connection, PLANNED.plan.id) == {
            "left": Count(planned=EACH, answered=4),
            "right": Count(planned=EACH, answered=1),
        }
        assert await answered_positions(connection, PLANNED.plan.id, "left") == {3, 4, 5, 6}
        assert await answered_positions(connection, PLANNED.plan.id, "neither") == set()


async def test_habits_are_means_over_the_answers_that_count(engine: AsyncEngine, migrated_url: str) -> None:
    calls = [call for call in PLANNED.calls("left") if call.condition.task is Task.BJ]
    await store(engine, PLANNED, *PLANNED.calls("left"))
    await ship(
        migrated_url,
        [
            answer(calls[0], 0, completion_tokens=40, total_us=1_000_000),
            answer(calls[0], 1, completion_tokens=999, total_us=9_000_000),  # the first answer counts
            answer(calls[1], 2, completion_tokens=45, total_us=2_000_000),
            answer(calls[2], 3, completion_tokens=None),
        ],
    )
    async with transaction(engine) as connection:
        assert await read_answer_stats(connection) == {
            ("left", (Task.BJ, True)): AnswerStats(answers=2, completion_tokens=42.5, seconds=1.5)
        }


async def test_what_a_plan_has_used_counts_repeated_failed_and_removed_calls(
    engine: AsyncEngine, migrated_url: str
) -> None:
    other = make_plan(PlanSpec(design=Design.SENTINEL, statements=shipped_pool()[5:10]))
    left, foreign = list(PLANNED.calls("left")), next(iter(other.calls("left")))
    await store(engine, PLANNED, *left)
    await store(engine, other, foreign)
    used = {"prompt_tokens": 10, "completion_tokens": 20}
    batches = [
        [answer(left[0], 0, **used), answer(left[1], 1, **used), answer(foreign, 2, **used)],
        [answer(left[0], 3, **used), exchange(NOON, **used), answer(left[2], 4, outcome=Outcome.FAILED, status=502)],
    ]
    for batch in batches:
        await ship(migrated_url, batch)
    wanted = {
        "left": Spent(
            calls=4,
            prompt_tokens=30,
            completion_tokens=60,
            last_at=NOON + timedelta(seconds=4),
            last_complete=False,
        )
    }
    async with transaction(engine) as connection:
        assert await read_spent(connection, PLANNED.plan.id) == wanted
    await ship(migrated_url, batches[1])  # a shipper that died before its mark ships again
    await fetch(migrated_url, "DELETE FROM exchanges")
    async with transaction(engine) as connection:
        assert await read_spent(connection, PLANNED.plan.id) == wanted
    await ship(migrated_url, [answer(left[2], 5)])
    async with transaction(engine) as connection:
        assert (await read_spent(connection, PLANNED.plan.id))["left"].last_complete
