"""Tallies: the joint table by hour tile. A tile that changed is counted anew as a whole, whatever changed in it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import delete, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.store.coding_tables import stale_tiles
from auditor.store.window_tables import OUTCOME, SUBJECT
from auditor.store.windows import recount_tile

_KEY: Final = ", ".join((*SUBJECT, *OUTCOME))
#: How a tile is counted, by its table.
_COUNTED: Final = {
    "tallies": f"""
        SELECT hour, coder, {_KEY}, count(*) FROM codings
        WHERE hour = :hour AND coder = :coder GROUP BY hour, coder, {_KEY}
    """,  # noqa: S608 -- column names of our own
    "ballots": """
        SELECT hour, coder, deployment, origin, rubric, votes, count(*)
        FROM (
            SELECT c.hour, c.coder, c.deployment, c.origin, c.rubric,
                   jsonb_agg(jsonb_build_array(v.judge, v.label) ORDER BY v.judge) AS votes
            FROM codings c JOIN votes v USING (exchange_id, coder)
            WHERE c.hour = :hour AND c.coder = :coder
            GROUP BY c.exchange_id, c.hour, c.coder, c.deployment, c.origin, c.rubric
        ) AS cast_votes
        GROUP BY hour, coder, deployment, origin, rubric, votes
    """,
}


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
    marks = delete(stale_tiles).where(stale_tiles.c.hour == tile.hour, stale_tiles.c.coder == tile.coder)
    await connection.execute(marks)
    await recount_tile(connection, tile.coder, tile.hour, _COUNTED)
