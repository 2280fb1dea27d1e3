"""A store of which a share is coded: clients' exchanges written in bulk, and what a search for uncoded ones costs."""

import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import asyncpg
from sqlalchemy.ext.asyncio import AsyncEngine
from support.stores.audited_store import TRAFFIC, configuration, fetch, ship, verdict
from support.stores.exchanges import NOON
from support.stores.window_reads import rows_read

from auditor.jobs.code import MOST_WAITING
from auditor.jobs.run_once import run_once
from auditor.store.engine import make_engine, transaction
from auditor.store.partitions import make_days
from auditor.store.uncoded import CodingScope, begin_search, find_uncoded
from auditor.work import open_work

DAYS = 10
LATER = NOON + timedelta(hours=1)

#: Copies of the first exchange, evenly over the days before it.
_EXCHANGES = """
    INSERT INTO exchanges
    SELECT made.* FROM generate_series(1, $1::bigint) AS i,
    LATERAL (SELECT $2::timestamptz - $3 * interval '1 day' * (1 - i::float8 / $1) - interval '1 hour' AS at) AS moment,
    LATERAL (
        SELECT lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '70008' || lpad(to_hex(i), 15, '0')
        AS id
    ) AS named,
    (SELECT * FROM exchanges ORDER BY id DESC LIMIT 1) AS e,
    LATERAL jsonb_populate_record(e::exchanges, jsonb_build_object('id', named.id, 'at', moment.at)) AS made
"""
#: Copies of the first coding, for a share of them: the oldest, or with $3 evenly over all.
_CODINGS = """
    INSERT INTO codings
    SELECT made.* FROM (SELECT id, at, row_number() OVER (ORDER BY id) AS i FROM exchanges) AS x,
    (SELECT * FROM codings ORDER BY exchange_id DESC LIMIT 1) AS c,
    LATERAL jsonb_populate_record(c::codings, jsonb_build_object('exchange_id', x.id, 'hour', date_trunc('hour', x.at)))
        AS made
    WHERE CASE WHEN $3 THEN i % 1000 < $2::float8 * 1000 ELSE i <= $1::float8 * $2::float8 END
    ON CONFLICT DO NOTHING
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Search:
    """What one search found and took."""

    found: int
    rows: int
    seconds: float


async def scope_of(engine: AsyncEngine, folder: Path) -> CodingScope:
    """The scope of the coder of one audit's traffic."""
    async with open_work(engine, configuration(folder, TRAFFIC), lambda: LATER) as work:
        return next(scope for scope in work.scopes() if scope.routes is not None and "desk" in scope.routes)


async def write_exchanges(url: str, engine: AsyncEngine, folder: Path, count: int) -> None:
    """Write exchanges of which one is coded."""
    await ship(url, [verdict("E", "D", 0)])
    await run_once(configuration(folder, TRAFFIC), engine, lambda: LATER)
    async with transaction(engine) as connection:
        days = {(NOON - timedelta(days=day)).date() for day in range(DAYS + 2)}
        await make_days(connection, ("exchanges", "exchange_content", "codings", "votes"), days, "days of a test")
    await _execute(url, _EXCHANGES, count, NOON, DAYS)
    await engine.dispose()  # `rows_read` waits until no session is left


async def code_share(url: str, count: int, share: float, *, scattered: bool = False) -> None:
    """Have a share of the exchanges coded: the oldest, or every so many of all."""
    await _execute(url, _CODINGS, count, share, scattered)


async def search(url: str, scope: CodingScope) -> Search:
    """Search once, as the job does, and measure it."""
    await fetch(url, "ANALYZE")  # so that every run plans its queries alike
    before = await rows_read(url)
    engine = make_engine(url)
    async with transaction(engine) as connection:
        began = time.perf_counter()
        await begin_search(connection)
        found = await find_uncoded(connection, scope, MOST_WAITING)
        seconds = time.perf_counter() - began
    await engine.dispose()
    return Search(found=len(found), rows=await rows_read(url) - before, seconds=seconds)


async def _execute(url: str, query: str, *arguments: object) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(query, *arguments, timeout=900)
    finally:
        await connection.close()
