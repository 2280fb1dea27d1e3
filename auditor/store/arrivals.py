"""Exchanges that did not come through this installation's gateway, written beside those that did.

The gateway's shipper has its own way into the same tables: it may not see SQLAlchemy. Both make days' partitions under
one lock, and for both a row that is there stays as it is.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from sqlalchemy import insert
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from auditor.domain.exchange import Exchange
from auditor.domain.ids import id_time
from auditor.store.engine import reading
from auditor.store.partitions import make_days
from auditor.store.tables import exchange_content, exchanges

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TABLES: Final = ("exchanges", "exchange_content")
#: Fields of an exchange that are columns under their own names.
_FACTS: Final = tuple(name for name in Exchange._fields if name in exchanges.columns)


async def add_exchanges(engine: AsyncEngine, arrived: Sequence[Exchange]) -> int:
    """Store exchanges, with their content where they have any; give how many were not there yet.

    Raises
    ------
    StoreUnavailable
        PostgreSQL does not answer; then none of these is stored.
    """
    if not arrived:
        return 0
    async with reading(engine) as connection:
        days = {id_time(one.id).date() for one in arrived}
        await make_days(connection, _TABLES, days, "tiltmeter partitions")
    async with reading(engine) as connection:
        new = await _add_facts(connection, arrived)
        content = [one for one in arrived if one.id in new and one.request is not None]
        # An id that is there twice in one batch is one row: the first.
        rows = {one.id: {"id": one.id, "request": one.request, "response": one.response} for one in reversed(content)}
        if rows:
            await connection.execute(insert(exchange_content), list(rows.values()))
    return len(new)


async def _add_facts(connection: AsyncConnection, arrived: Sequence[Exchange]) -> set[UUID]:
    query = upsert(exchanges).on_conflict_do_nothing().returning(exchanges.c.id)
    return set((await connection.execute(query, [_row(one) for one in arrived])).scalars())


def _row(one: Exchange) -> dict[str, Any]:
    facts = {name: getattr(one, name) for name in _FACTS}
    return facts | {"at": _EPOCH + timedelta(microseconds=one.at_us), "tags": one.tags or None}
