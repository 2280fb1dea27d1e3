"""Find and count exchanges that a coder has not coded yet.

A first coding, a coding by a new coder, a late row and a lost job are the same question to the store: which exchanges
have no coding? Nothing is enqueued when an exchange arrives. So that a search does not read everything that was coded
before, each scope has a mark: the oldest exchange that may lack a coding. A trigger records the oldest id of every
insertion into ``exchanges`` in ``arrivals``; a search begins by moving the marks back to these. Ids begin with a time,
so rows of a long outage only move the mark back as far as the outage.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    Column,
    DateTime,
    Select,
    Table,
    Text,
    Uuid,
    delete,
    exists,
    func,
    not_,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.store.codings import codings
from auditor.store.engine import metadata
from auditor.store.exchanges import arrivals, exchanges, planned_instances
from auditor.store.plans import planned_calls

coding_marks = Table(
    "coding_marks",
    metadata,
    Column("coder", Text, primary_key=True),
    Column("routes", ARRAY(Text), primary_key=True),
    Column("since", Uuid, nullable=False),
    Column("searched_all_at", DateTime(timezone=True), nullable=False),
)


#: Endpoints whose answers are text.
READABLE: Final = ("chat/completions", "completions", "responses")


_PLANNED: Final = ("probe", "replay")


#: Now and then a search ignores its mark: it also finds what somebody changed in the store by hand.
_SEARCH_ALL_EVERY: Final = timedelta(days=1)


#: Searches follow one another: two at once could overwrite a mark that the other has moved back.
_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtext('biasmeter search'))"


@dataclass(frozen=True, kw_only=True, slots=True)
class CodingScope:
    """What one coder codes: planned calls, or with ``routes`` the clients' traffic of those routes.

    Only ids from ``since`` on are searched: older content has been deleted.
    """

    coder: str
    since: UUID
    routes: tuple[str, ...] | None = None


async def begin_search(connection: AsyncConnection) -> None:
    """Move every mark back to the oldest exchange that arrived since the last search.

    The transaction holds a lock until it ends; searches of other processes wait for it.
    """
    await connection.execute(text(_LOCK))
    arrived = (await connection.execute(delete(arrivals).returning(arrivals.c.since))).scalars().all()
    if arrived:
        oldest = min(arrived)
        await connection.execute(update(coding_marks).where(coding_marks.c.since > oldest).values(since=oldest))


async def find_uncoded(
    connection: AsyncConnection, scope: CodingScope, limit: int, held: Collection[UUID] = ()
) -> list[UUID]:
    """Find exchanges that ``scope.coder`` has not coded, the oldest first, and move the scope's mark forward.

    Parameters
    ----------
    connection
        Connection of a transaction that called ``begin_search``.
    scope
        Exchanges that the coder codes.
    limit
        The greatest number of exchanges to find.
    held
        Exchanges that somebody is about to code: they are not found, and the mark stays before them.
    """
    # A search in the future was made by a clock that was wrong.
    fresh = coding_marks.c.searched_all_at.between(func.now() - _SEARCH_ALL_EVERY, func.now())
    mark = await _mark(connection, scope, fresh)
    begun = scope.since if mark is None else max(scope.since, mark)
    newest = await connection.scalar(select(exchanges.c.id).order_by(exchanges.c.id.desc()).limit(1))
    query = _uncoded(scope, begun, exchanges.c.id).order_by(exchanges.c.id).limit(limit)
    if held:
        query = query.where(exchanges.c.id != func.all(list(held)))
    uncoded = list((await connection.execute(query)).scalars())
    oldest = min((*uncoded[:1], *(each for each in held if each >= begun)), default=newest)
    if oldest is not None:
        values = {"coder": scope.coder, "routes": list(scope.routes or ()), "since": oldest}
        new = insert(coding_marks).values(**values, searched_all_at=func.now())
        moved = {"since": new.excluded.since} | ({"searched_all_at": func.now()} if mark is None else {})
        await connection.execute(new.on_conflict_do_update(index_elements=["coder", "routes"], set_=moved))
    return uncoded


async def oldest_uncoded(connection: AsyncConnection, scope: CodingScope) -> UUID | None:
    """Return the oldest exchange that ``scope.coder`` has not coded."""
    query = _uncoded(scope, await _begin(connection, scope), exchanges.c.id).order_by(exchanges.c.id).limit(1)
    oldest: UUID | None = await connection.scalar(query)
    return oldest


async def count_uncoded(connection: AsyncConnection, scope: CodingScope) -> dict[tuple[str, str], int]:
    """Count what ``scope.coder`` has not coded, by deployment and origin."""
    keys = (exchanges.c.deployment, exchanges.c.origin)
    query = _uncoded(scope, await _begin(connection, scope), *keys, func.count()).group_by(*keys).order_by(*keys)
    return {(row[0], row[1]): row[2] for row in await connection.execute(query)}


async def _begin(connection: AsyncConnection, scope: CodingScope) -> UUID:
    """Return where reading has to begin: no exchange of the scope before it lacks a coding."""
    mark = await _mark(connection, scope)
    arrived: UUID | None = await connection.scalar(select(arrivals.c.since).order_by(arrivals.c.since).limit(1))
    if mark is None or arrived is None:
        return scope.since if mark is None else max(scope.since, mark)
    return max(scope.since, min(mark, arrived))


async def _mark(connection: AsyncConnection, scope: CodingScope, *conditions: Any) -> UUID | None:
    query = select(coding_marks.c.since).where(
        coding_marks.c.coder == scope.coder, coding_marks.c.routes == list(scope.routes or ()), *conditions
    )
    mark: UUID | None = await connection.scalar(query)
    return mark


def _uncoded(scope: CodingScope, since: UUID, *columns: Any) -> Select[Any]:
    coded = exists().where(
        codings.c.exchange_id == exchanges.c.id, codings.c.coder == scope.coder, codings.c.exchange_id >= since
    )
    query = select(*columns).where(exchanges.c.id >= since, exchanges.c.endpoint.in_(READABLE), not_(coded))
    if scope.routes is not None:
        complete = exchanges.c.outcome == "complete"
        return query.where(exchanges.c.origin == "client", exchanges.c.route.in_(scope.routes), complete)
    # Of all that was sent for a planned call, the first complete exchange counts.
    counts = exists().where(
        planned_instances.c.ref == exchanges.c.ref, planned_instances.c.exchange_id == exchanges.c.id
    )
    planned = exists().where(planned_calls.c.ref == exchanges.c.ref)
    return query.where(exchanges.c.origin.in_(_PLANNED), exchanges.c.ref.is_not(None), counts, planned)


async def read_pending(
    connection: AsyncConnection, scope: CodingScope, low: UUID, high: UUID | None, limit: int
) -> list[UUID]:
    """Read exchanges with ids in [low, high) that ``scope.coder`` has not coded, the oldest first. Moves no mark."""
    query = _uncoded(scope, low, exchanges.c.id).order_by(exchanges.c.id).limit(limit)
    if high is not None:
        query = query.where(exchanges.c.id < high)
    return list((await connection.execute(query)).scalars())
