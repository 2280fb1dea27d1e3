"""Tallies: the joint table by hour tile. A tile that changed is counted anew as a whole, whatever changed in it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import delete, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.store.coding_tables import ballots, stale_tiles, tallies

#: The columns of a tally's key, hour and n apart.
_KEY: Final = tuple(column.name for column in tallies.columns if column.name not in {"hour", "n"})
_COUNT: Final = f"""
    INSERT INTO tallies (hour, {", ".join(_KEY)}, n)
    SELECT hour, {", ".join(_KEY)}, count(*) FROM codings
    WHERE hour = :hour AND coder = :coder GROUP BY hour, {", ".join(_KEY)}
"""  # noqa: S608 -- column names of our own
_BALLOTS: Final = """
    INSERT INTO ballots (hour, coder, deployment, origin, rubric, votes, n)
    SELECT hour, coder, deployment, origin, rubric, votes, count(*)
    FROM (
        SELECT c.hour, c.coder, c.deployment, c.origin, c.rubric,
               jsonb_agg(jsonb_build_array(v.judge, v.label) ORDER BY v.judge) AS votes
        FROM codings c JOIN votes v USING (exchange_id, coder)
        WHERE c.hour = :hour AND c.coder = :coder
        GROUP BY c.exchange_id, c.hour, c.coder, c.deployment, c.origin, c.rubric
    ) AS cast_votes
    GROUP BY hour, coder, deployment, origin, rubric, votes
"""


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Tile:
    """One hour of one coder."""

    hour: datetime
    coder: str


async def stale(connection: AsyncConnection, limit: int = 1000) -> list[Tile]:
    """Name the tiles that have changed since they were counted, the oldest first."""
    query = (
        select(stale_tiles.c.hour, stale_tiles.c.coder)
        .distinct()
        .order_by(stale_tiles.c.hour, stale_tiles.c.coder)
        .limit(limit)
    )
    return [Tile(hour=row.hour, coder=row.coder) for row in await connection.execute(query)]


async def recount(connection: AsyncConnection, tile: Tile) -> None:
    """Count one tile anew. It must be a transaction of its own, at the level READ COMMITTED.

    The marks go first: whoever adds codings after this has counted adds a mark that stays.
    """
    lock = text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))")
    await connection.execute(lock, {"name": f"tiltmeter tile {tile.hour.isoformat()} {tile.coder}"})
    for table in (stale_tiles, tallies, ballots):
        await connection.execute(delete(table).where(table.c.hour == tile.hour, table.c.coder == tile.coder))
    for statement in (_COUNT, _BALLOTS):
        await connection.execute(text(statement), {"hour": tile.hour, "coder": tile.coder})


async def read_tallies(
    connection: AsyncConnection, coder: str, since: datetime, until: datetime | None = None
) -> list[Mapping[str, Any]]:
    """Read a coder's tallies of the hours that begin in [since, until), added up over the hours."""
    names = ", ".join(_KEY)
    bound = "" if until is None else "AND hour < :until"
    query = f"""
        SELECT {names}, sum(n)::bigint AS n FROM tallies
        WHERE coder = :coder AND hour >= :since {bound} GROUP BY {names}
    """  # noqa: S608 -- column names of our own
    given = {"coder": coder, "since": since} | ({"until": until} if until is not None else {})
    return [dict(row) for row in (await connection.execute(text(query), given)).mappings()]


async def read_ballots(
    connection: AsyncConnection, coder: str, since: datetime, until: datetime | None = None
) -> list[Mapping[str, Any]]:
    """Read a coder's ballots of the hours that begin in [since, until), added up over the hours."""
    bound = "" if until is None else "AND hour < :until"
    query = f"""
        SELECT deployment, origin, rubric, votes, sum(n)::bigint AS n FROM ballots
        WHERE coder = :coder AND hour >= :since {bound} GROUP BY deployment, origin, rubric, votes
    """  # noqa: S608 -- a constant
    given = {"coder": coder, "since": since} | ({"until": until} if until is not None else {})
    return [dict(row) for row in (await connection.execute(text(query), given)).mappings()]
