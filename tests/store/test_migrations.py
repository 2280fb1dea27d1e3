"""Stores of an earlier release: what a migration works out of what they hold is what this release writes by itself."""

from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

from audited import CTO, configuration, fetch, panel_answers, plan, ship
from exchanges import NOON
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from auditor.domain.condition import Condition, Role, Task
from auditor.domain.schema import SCHEMA_VERSION
from auditor.instrument.pool import shipped_pool
from auditor.jobs.idle import run_until_idle
from auditor.store.engine import reading
from auditor.store.review_draws import Draw, add_draw
from auditor.store.schema import migrate

SHARES = {"d1": {"E|E": 4, "E|D": 6, "D|D": 8, "D|": 2}, "d2": {"D|D": 10, "D|E": 10}}
#: One condition is asked on each day; the codings of the last are made after the draws.
DAYS = (CTO, Condition(task=Task.CTO, role=Role.SOCIOLOGIST), Condition(task=Task.CTO, role=Role.AI_ETHICIST))
FRAMES = "SELECT to_jsonb(t)::text AS row FROM tallies t WHERE coder IN (SELECT id FROM review_draws)"
#: Takes back what revision 0012 made.
BEFORE_0012 = (
    "DELETE FROM tallies WHERE coder IN (SELECT id FROM review_draws)",
    "DROP TABLE read_marks",
    "ALTER TABLE monitor_references DROP COLUMN note",
    "UPDATE alembic_version SET version_num = '0011'",
)


def day(number: int) -> datetime:
    return NOON.replace(hour=0, minute=0) + timedelta(days=number)


async def coded(url: str, engine: AsyncEngine, folder: Path, number: int) -> str:
    """Audit the answers of a day, an hour after they came; give the coder."""
    asked = NOON + timedelta(days=number)
    await ship(url, panel_answers(SHARES, asked, [DAYS[number]]))
    await run_until_idle(configuration(folder), engine, lambda: asked + timedelta(hours=1))
    return str((await fetch(url, "SELECT DISTINCT coder FROM codings"))[0]["coder"])


def draws(coder: str) -> list[Draw]:
    """Of everything, of one deployment, of the second day alone; the last of nothing."""
    wanted = (("probe", None, 0), ("probe", ("d2",), 0), ("probe", None, 1), ("client", None, 0))
    return [
        Draw(
            id=f"draw_{number}", coder=coder, rubric="statement/1", origin=origin, deployments=deployments,
            since=day(since), drawn_at=day(2), settings={"n": 5, "seed": 0},
        )
        for number, (origin, deployments, since) in enumerate(wanted)
    ]  # fmt: skip


async def test_draws_of_an_older_store_are_tallied_as_new_ones_are(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    await plan(migrated_url, SHARES, shipped_pool()[:20], DAYS)
    await coded(migrated_url, engine, tmp_path, 0)
    coder = await coded(migrated_url, engine, tmp_path, 1)
    async with reading(engine) as connection:
        for one in draws(coder):
            await add_draw(connection, one, (), {}, {})
    tallied = Counter(row["row"] for row in await fetch(migrated_url, FRAMES))
    await coded(migrated_url, engine, tmp_path, 2)
    async with reading(engine) as connection:
        for statement in BEFORE_0012:
            await connection.execute(text(statement))
    assert await migrate(engine) == ("0011", SCHEMA_VERSION)
    assert Counter(row["row"] for row in await fetch(migrated_url, FRAMES)) == tallied
    # d1 has eighteen answers a day that say something, d2 twenty.
    sums = await fetch(migrated_url, "SELECT coder, sum(n) AS n FROM tallies WHERE coder LIKE 'draw%' GROUP BY 1")
    assert {row["coder"]: row["n"] for row in sums} == {"draw_0": 76, "draw_1": 40, "draw_2": 38}
