"""What an update of the windows reads, with so many responses in the past: tiles are written, and rows are counted."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import asyncpg
from support.stores.audited_store import configuration, fetch, panel_answers, plan, ship
from support.stores.exchanges import NOON
from support.waiting import eventually

from auditor.domain.condition import Condition, Role, Task
from auditor.instrument.pool import shipped_pool
from auditor.jobs.code import code_chunk, find_chunks
from auditor.jobs.estimate import count_stale, estimate_all
from auditor.store.engine import make_engine, transaction
from auditor.work import open_work

SHARES = {"d1": {"E|E": 30, "E|D": 20, "D|D": 40, "D|": 8, "R|": 2}, "d2": {"D|D": 60, "D|E": 40}}
CONDITIONS = [Condition(task=Task.CTO, role=role) for role in list(Role)[:5]]

_TILES = """
    INSERT INTO tallies (hour, coder, deployment, origin, rubric, task, perspective, role, sentiment, category, cluster,
                         inclusion, invites_reason, sel, elab, n)
    SELECT $2::timestamptz - (1 + hash % $4) * interval '1 hour', $1, 'd' || (1 + i % 2), 'probe', 'statement', 'CTO',
           'self', ($5::text[])[1 + (i / 2) % 5], 'neutral', s.category, s.id, 1, true,
           CASE WHEN hash % 3 = 0 THEN 'E' ELSE 'D' END, CASE WHEN hash % 7 < 2 THEN 'E' ELSE 'D' END, count(*)
    FROM (SELECT i, abs(hashint8(i)::bigint) AS hash FROM generate_series(1, $3::bigint) AS i) AS listed
    JOIN unnest($6::text[], $7::text[]) WITH ORDINALITY AS s (id, category, place) ON s.place = 1 + (i / 10) % 100
    GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """What one update read, and what there was."""

    rows_read: int
    tile_rows: int


async def cost_of_an_update(url: str, folder: Path, past: int, hours: int) -> Cost:
    """Write past responses as tiles of the last hours, estimate, add 1,000 new ones, and count what updating reads."""
    pool = shipped_pool()[:100]
    engine = make_engine(url)
    config = configuration(folder)
    later = NOON + timedelta(minutes=30)
    async with open_work(engine, config, lambda: later) as work:
        coder = next(scope.coder for scope in work.scopes() if scope.routes is None)
        await _write_tiles(url, coder, past, hours)
        await estimate_all(work)
        await plan(url, SHARES, pool, CONDITIONS)
        await ship(url, panel_answers(SHARES, conditions=CONDITIONS))
        async with transaction(engine) as connection:
            chunks = await find_chunks(connection, work, ())
        assert sum([await code_chunk(work, chunk) for chunk in chunks]) == 1000
    await engine.dispose()
    await fetch(url, "ANALYZE")  # so that every run plans its queries alike
    before = await rows_read(url)
    engine = make_engine(url)
    async with open_work(engine, config, lambda: later) as work:
        await count_stale(work)
        await estimate_all(work)
    await engine.dispose()
    after = await rows_read(url)
    ((tile_rows,),) = await fetch(url, "SELECT count(*) FROM tallies")
    return Cost(rows_read=after - before, tile_rows=tile_rows)


async def _write_tiles(url: str, coder: str, past: int, hours: int) -> None:
    pool = shipped_pool()[:100]
    newest: datetime = NOON.replace(minute=0)
    connection = await asyncpg.connect(url)
    roles = [condition.role.value for condition in CONDITIONS]
    ids, categories = [one.id for one in pool], [one.category for one in pool]
    await connection.execute(_TILES, coder, newest, past, hours, roles, ids, categories, timeout=600)
    await connection.execute("ANALYZE")
    await connection.close()


async def rows_read(url: str) -> int:
    """Add up what all tables' statistics say, once all other sessions have ended: a session tells all it read then."""
    others = (
        "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'"
        " AND pid <> pg_backend_pid()"
    )

    async def have_ended() -> bool:
        return not await fetch(url, others)

    await eventually(have_ended)
    query = "SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::bigint AS n FROM pg_stat_user_tables"
    ((found,),) = await fetch(url, query)
    return int(found)
