"""Erase exchanges with everything that was made of each of them, and keep a record that it was done.

Counts over many exchanges stay: tiles that held an erased exchange are counted again without it.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ColumnElement, insert, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from auditor.domain.erasure import END_USER_TAG, ErasureSelector, SelectorKind
from auditor.store.codings import codings, stale_tiles
from auditor.store.engine import transaction
from auditor.store.exchanges import erased_exchanges, erasures, exchange_content, exchanges

#: The column of each table that names the exchange, in the order of removal.
TABLES: Final[Mapping[str, str]] = {
    "exchange_content": "id",
    "answer_words": "exchange_id",
    "votes": "exchange_id",
    "reviews": "exchange_id",
    "review_locks": "exchange_id",
    "review_draw_items": "exchange_id",
    "peer_vectors": "exchange_id",
    "peer_scores": "exchange_id",
    "peer_passed_over": "exchange_id",
    "planned_instances": "exchange_id",
    "codings": "exchange_id",
    "exchanges": "id",
}
_CHUNK: Final = 1000
_LOCK: Final = text("SELECT pg_advisory_xact_lock(hashtext('biasmeter erasure'))")
_NAMES_USER: Final = text("""
    position(CAST('"user"' AS bytea) IN request) > 0 OR position(CAST('"safety_identifier"' AS bytea) IN request) > 0
""")


async def find_selected(engine: AsyncEngine, selector: ErasureSelector, by_user: Collection[str]) -> set[UUID]:
    """Find the stored exchanges that are selected, and those that were made from them: replayed, mirrored, judged.

    Parameters
    ----------
    engine
        Engine of the store.
    selector
        Selector of the exchanges to find.
    by_user
        The audits that cluster by end user: their codings show whose exchange it was after the content is gone.
    """
    async with transaction(engine) as connection:
        selected = await _selected(connection, selector, by_user)
        newest = selected
        while newest:
            children: set[UUID] = set()
            for chunk in _chunks(newest):
                query = select(exchanges.c.id).where(exchanges.c.parent.in_(chunk))
                children.update((await connection.execute(query)).scalars())
            newest = children - selected
            selected = selected | newest
    return selected


async def _selected(connection: AsyncConnection, selector: ErasureSelector, by_user: Collection[str]) -> set[UUID]:
    match selector.kind:
        case SelectorKind.EXCHANGE:
            return {UUID(selector.value)}
        case SelectorKind.KEY:
            return await _where(connection, exchanges.c.key_id == selector.value)
        case SelectorKind.TAG:
            return await _where(connection, exchanges.c.tags[selector.tag].astext == selector.value)
        case SelectorKind.USER:
            return await _of_user(connection, selector, by_user)


async def _where(connection: AsyncConnection, condition: ColumnElement[bool]) -> set[UUID]:
    return set((await connection.execute(select(exchanges.c.id).where(condition))).scalars())


async def _of_user(connection: AsyncConnection, selector: ErasureSelector, by_user: Collection[str]) -> set[UUID]:
    ids = await _where(connection, exchanges.c.tags[END_USER_TAG].astext == selector.user_digest)
    clustered = (codings.c.cluster == selector.user_digest) & codings.c.audit.in_(by_user)
    ids.update((await connection.execute(select(codings.c.exchange_id).where(clustered))).scalars())
    query = select(exchange_content.c.id, exchange_content.c.request).where(_NAMES_USER)
    async for row in await connection.stream(query.execution_options(yield_per=200)):
        if selector.names_user(row.request):
            ids.add(row.id)
    return ids


async def count_selected(engine: AsyncEngine, ids: Collection[UUID]) -> dict[str, int]:
    """Count the rows about these exchanges, by table; tables without any are left out."""
    counted: Counter[str] = Counter()
    async with transaction(engine) as connection:
        for chunk in _chunks(ids):
            for table, column in TABLES.items():
                query = text(f"SELECT count(*) FROM {table} WHERE {column} = ANY(:ids)")  # noqa: S608 -- names of our own
                counted[table] += (await connection.execute(query, {"ids": chunk})).scalar_one()
    return {table: counted[table] for table in TABLES if counted[table]}


async def begin_erasure(
    engine: AsyncEngine, erasure_id: str, selector: ErasureSelector, by: str, now: datetime
) -> None:
    """Record that an erasure has begun."""
    row = {
        "id": erasure_id, "at": now, "by": by, "kind": selector.kind.value, "selector": selector.digest(erasure_id),
        "counts": {}, "complete": False,
    }  # fmt: skip
    async with transaction(engine) as connection:
        await connection.execute(insert(erasures).values(row))


async def erase(engine: AsyncEngine, erasure_id: str, ids: Collection[UUID]) -> dict[str, int]:
    """Erase exchanges, in transactions of 1,000 each, and return the number of removed rows by table.

    Raises
    ------
    StoreUnavailable
        The store does not answer; what has been erased stays erased, and the same call erases the rest.
    """
    removed: Counter[str] = Counter()
    for chunk in _chunks(ids):
        async with transaction(engine) as connection:
            await connection.execute(_LOCK)
            removed.update(await _erase(connection, erasure_id, chunk))
    return {table: removed[table] for table in TABLES if removed[table]}


async def end_erasure(engine: AsyncEngine, erasure_id: str, counts: Mapping[str, int]) -> None:
    """Record that an erasure is complete, with the number of removed rows by table."""
    query = update(erasures).where(erasures.c.id == erasure_id)
    async with transaction(engine) as connection:
        await connection.execute(query.values(counts=dict(counts), complete=True))


async def _erase(connection: AsyncConnection, erasure_id: str, ids: Sequence[UUID]) -> Counter[str]:
    removed: Counter[str] = Counter()
    query = select(codings.c.hour, codings.c.coder).where(codings.c.exchange_id.in_(ids)).distinct()
    tiles: list[dict[str, Any]] = [dict(row) for row in (await connection.execute(query)).mappings()]
    if tiles:
        await connection.execute(insert(stale_tiles), tiles)
    known = select(exchanges.c.id).where(exchanges.c.id.in_(ids))
    there = (await connection.execute(known)).scalars().all()
    if there:
        position = (await connection.execute(text("SELECT coalesce(max(position), 0) FROM chain"))).scalar_one()
        rows = [{"exchange_id": exchange_id, "erasure_id": erasure_id, "position": position} for exchange_id in there]
        await connection.execute(insert(erased_exchanges), rows)
    for table, column in TABLES.items():
        done = await connection.execute(text(f"DELETE FROM {table} WHERE {column} = ANY(:ids)"), {"ids": ids})  # noqa: S608 -- names of our own
        removed[table] += done.rowcount
    return removed


def _chunks(ids: Collection[UUID]) -> Iterator[list[UUID]]:
    ordered = sorted(ids)
    for start in range(0, len(ordered), _CHUNK):
        yield ordered[start : start + _CHUNK]
