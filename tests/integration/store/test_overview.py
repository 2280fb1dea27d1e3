"""The counts that triggers keep are those that counting gives, whatever is added and removed."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
from sqlalchemy.ext.asyncio import AsyncEngine
from support.stores.aged_store import add_day, open_store
from support.stores.audited_store import CTO, answered, fetch, plan, ship
from support.stores.exchanges import NOON, exchange

from auditor.domain.erasure import ErasureSelector, SelectorKind
from auditor.domain.exchange import Outcome
from auditor.instrument.pool import shipped_pool
from auditor.store.engine import transaction
from auditor.store.erasure import begin_erasure, erase
from auditor.store.overview import ExchangeCounts, PlanCounts, count_planned, count_seen
from auditor.store.retention import RetentionBounds, remove_expired

COUNTED = """
    SELECT deployment, origin, count(*) AS stored, count(*) FILTER (WHERE outcome = 'complete') AS complete,
        count(*) FILTER (WHERE capture = 'full') AS with_content, max(at) AS last_at
    FROM exchanges GROUP BY 1, 2
"""


async def counted(url: str) -> Mapping[tuple[str, str], dict[str, Any]]:
    rows = [dict(row) for row in await fetch(url, COUNTED)]
    return {(row.pop("deployment"), row.pop("origin")): row for row in rows}


async def kept(engine: AsyncEngine) -> Mapping[tuple[str, str], ExchangeCounts]:
    async with transaction(engine) as connection:
        return await count_seen(connection, (NOON - timedelta(days=400)).date())


def numbers(found: Mapping[tuple[str, str], ExchangeCounts]) -> Mapping[tuple[str, str], dict[str, Any]]:
    names = ("stored", "complete", "with_content", "last_at")
    return {key: {name: getattr(one, name) for name in names} for key, one in found.items()}


async def erased(engine: AsyncEngine, ids: list[UUID]) -> None:
    selector = ErasureSelector(kind=SelectorKind.EXCHANGE, value=str(ids[0]))
    await begin_erasure(engine, "e1", selector, "person", NOON)
    await erase(engine, "e1", ids)


async def test_exchanges_are_counted_once_and_until_they_are_removed(migrated_url: str, engine: AsyncEngine) -> None:
    midnight = NOON.replace(hour=0, minute=0)
    made = [
        exchange(midnight + timedelta(hours=hour), deployment=f"d{hour % 3}", outcome=outcome)
        for hour in range(-9, 9)
        for outcome in (Outcome.COMPLETE, Outcome.CUT)
    ]
    await ship(migrated_url, made)
    await ship(migrated_url, made[:7])  # the same again
    before = numbers(await kept(engine))
    assert before == await counted(migrated_url)
    assert sum(one["stored"] for one in before.values()) == len(made)
    days = await fetch(migrated_url, "SELECT day, sum(stored) AS n FROM exchange_counts GROUP BY day ORDER BY day")
    assert [(row["day"], row["n"]) for row in days] == [
        (midnight.date() - timedelta(days=1), 18),
        (midnight.date(), 18),
    ]
    await erased(engine, [one.id for one in made[::2]])
    after = numbers(await kept(engine))
    assert [one["stored"] for one in after.values()] == [
        one["stored"] for one in (await counted(migrated_url)).values()
    ]
    assert sum(one["complete"] for one in after.values()) == 0


async def test_calls_of_a_plan_are_counted_until_they_are_removed(migrated_url: str, engine: AsyncEngine) -> None:
    statements = shipped_pool()[:6]
    await plan(migrated_url, ["d1", "d2"], statements, [CTO])
    made = [answered("d1", statement, CTO, "A") for statement in statements[:4]]
    await ship(migrated_url, [*made, answered("d1", statements[0], CTO, "B", NOON + timedelta(minutes=1))])
    async with transaction(engine) as connection:
        found = await count_planned(connection)
    assert found == {"d1": PlanCounts(planned=6, answered=4), "d2": PlanCounts(planned=6, answered=0)}
    await erased(engine, [made[0].id])
    async with transaction(engine) as connection:
        assert (await count_planned(connection))["d1"] == PlanCounts(planned=6, answered=3)


async def test_retention_removes_counts_with_what_they_count(migrated_url: str, engine: AsyncEngine) -> None:
    connection = await asyncpg.connect(migrated_url)
    store = await open_store(connection)
    for age in (0, 3):
        await add_day(store, (NOON - timedelta(days=age)).date())
    await connection.close()
    bounds = RetentionBounds.at(datetime.combine(NOON.date(), NOON.timetz(), UTC), 86_400, 86_400)
    await remove_expired(engine, bounds)
    assert numbers(await kept(engine)) == await counted(migrated_url)
    async with transaction(engine) as opened:
        assert await count_planned(opened) == {"coder-1": PlanCounts(planned=3, answered=2)}
