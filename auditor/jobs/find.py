"""Find: which exchanges has a coder of this configuration not read yet?"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.jobs.work import Work
from auditor.store.codings import find_uncoded
from auditor.store.queue import Chunk

#: Exchanges a job: few enough that processes share even a small plan.
CHUNK: Final = 64
#: Chunks that may wait at once: what is held is left out of the next search by its ids.
MOST_CHUNKS: Final = 256


async def find_chunks(
    connection: AsyncConnection, work: Work, held: Sequence[Chunk] = (), within: timedelta | None = None
) -> list[Chunk]:
    """Find chunks of work that nobody holds, the oldest exchanges of each coder first.

    A look at a few days (``within``) costs little; without it everything that may still be read is looked at.
    """
    taken: dict[str, set[UUID]] = {}
    for chunk in held:
        taken.setdefault(chunk.coder, set()).update(chunk.ids)
    found: list[Chunk] = []
    for scope in work.scopes(within):
        room = MOST_CHUNKS - len(held) - len(found)
        if room <= 0:
            break
        ids = await find_uncoded(connection, scope, room * CHUNK, taken.get(scope.coder, ()))
        found += [
            Chunk(coder=scope.coder, ids=tuple(ids[start : start + CHUNK])) for start in range(0, len(ids), CHUNK)
        ]
    return found
