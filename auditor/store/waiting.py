"""What waits to be coded, counted from the oldest exchange on that may wait, however many were read before it.

A coder's mark stands where it was when it was last looked at: everything before had been read. What comes later than
that with an earlier id is found like all work, and while it waits in the queue counting begins with it.
"""

from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.store.coding_tables import read_marks
from auditor.store.codings import Scope, count_uncoded, find_uncoded
from auditor.store.tables import exchanges


async def count_waiting(
    connection: AsyncConnection, scope: Scope, held: UUID | None = None
) -> Mapping[tuple[str, str], int]:
    """Count what waits, by deployment and origin, and move the mark on.

    Parameters
    ----------
    connection
        Of a transaction: count and mark belong together.
    scope
        What the coder reads.
    held
        The oldest exchange that waits for it in the queue.
    """
    newest = (await connection.execute(select(exchanges.c.id).order_by(exchanges.c.id.desc()).limit(1))).scalar()
    begun = replace(scope, since=max(scope.since, await _since(connection, scope, held)))
    waiting = await count_uncoded(connection, begun)
    oldest = (await find_uncoded(connection, begun, 1))[0] if waiting else newest
    if oldest is not None:
        new = insert(read_marks).values(coder=scope.coder, since=oldest)
        moved = new.on_conflict_do_update(index_elements=["coder"], set_={"since": new.excluded.since})
        await connection.execute(moved)
    return waiting


async def _since(connection: AsyncConnection, scope: Scope, held: UUID | None) -> UUID:
    query = select(read_marks.c.since).where(read_marks.c.coder == scope.coder)
    mark: UUID = (await connection.execute(query)).scalar() or scope.since
    return mark if held is None else min(mark, held)
