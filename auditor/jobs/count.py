"""Count: recount the tiles that have changed, each in a transaction of its own."""

from auditor.jobs.work import Work
from auditor.store.engine import reading
from auditor.store.tallies import recount, stale


async def count_stale(work: Work) -> int:
    """Recount every tile that is marked; give how many."""
    counted = 0
    while True:
        async with reading(work.engine) as connection:
            tiles = await stale(connection)
        if not tiles:
            return counted
        for tile in tiles:
            async with reading(work.engine) as connection:
                await recount(connection, tile)
        counted += len(tiles)
