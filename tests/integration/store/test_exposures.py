"""What replays came to, in the store: each says it once, and says it again only where it says something else."""

from dataclasses import replace
from datetime import timedelta

from sqlalchemy.ext.asyncio import AsyncEngine
from support.stores.exchanges import NOON

from auditor.store.engine import transaction
from auditor.store.exposures import (
    ExposureRow,
    latest_exposures,
    newest_exposure,
    read_exposures,
    replace_exposures,
)

ROW = ExposureRow(
    replay_id="rpl-1", concluded_at=NOON, selection="all", deployment="d1", origin="probe", route=None, task="BJ",
    rubric="statement", claim=None, metric="ir", exposure={"range": 0.25, "low": 0.1, "high": 0.4},
)  # fmt: skip
LATER = NOON + timedelta(hours=1)


async def keep(engine: AsyncEngine, *rows: ExposureRow) -> bool:
    async with transaction(engine) as connection:
        return await replace_exposures(connection, rows[0].replay_id, rows)


async def test_a_replay_that_says_the_same_again_keeps_its_moment(engine: AsyncEngine) -> None:
    other = replace(ROW, metric="dni", exposure={"missing": "3 statements"})
    assert await keep(engine, ROW, other)
    assert not await keep(engine, replace(other, concluded_at=LATER), replace(ROW, concluded_at=LATER))
    async with transaction(engine) as connection:
        assert await latest_exposures(connection) == [other, ROW]
        assert await newest_exposure(connection) == NOON


async def test_a_replay_that_says_something_else_says_only_that(engine: AsyncEngine) -> None:
    await keep(engine, ROW, replace(ROW, metric="dni"), replace(ROW, deployment="d2"))
    told = replace(ROW, concluded_at=LATER, exposure={"range": 0.5})
    assert await keep(engine, told)
    async with transaction(engine) as connection:
        assert await latest_exposures(connection) == [told]


async def test_the_latest_replay_is_shown_of_each_group_and_measure(engine: AsyncEngine) -> None:
    client = replace(ROW, origin="client", route="app", task=None, rubric="proposition", claim="stereotype")
    await keep(engine, ROW, client)
    newer = replace(ROW, replay_id="rpl-0", concluded_at=LATER)
    await keep(engine, newer, replace(newer, metric="dni"), replace(newer, task="CTO"))
    async with transaction(engine) as connection:
        shown = {(row.origin, row.task, row.metric): row.replay_id for row in await latest_exposures(connection)}
    assert shown == {
        ("client", None, "ir"): "rpl-1",
        ("probe", "BJ", "ir"): "rpl-0",
        ("probe", "BJ", "dni"): "rpl-0",
        ("probe", "CTO", "ir"): "rpl-0",
    }


async def test_a_period_has_the_replays_that_were_concluded_in_it_and_by_then(engine: AsyncEngine) -> None:
    newer = replace(ROW, replay_id="rpl-2", concluded_at=LATER)
    await keep(engine, newer)
    await keep(engine, ROW)
    end = LATER + timedelta(hours=1)
    async with transaction(engine) as connection:
        assert await read_exposures(connection, NOON, end, end) == [ROW, newer]
        assert await read_exposures(connection, NOON, LATER, end) == [ROW]
        assert await read_exposures(connection, NOON, end, NOON) == [ROW]
        assert await newest_exposure(connection, NOON, LATER) == NOON
        assert await newest_exposure(connection, end, end) is None
