"""Stored exchanges: one by id, and pages of them, newest first."""

import zlib
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.store.tables import exchange_content, exchanges

MAX_PAGE = 1000
_GZIP_OR_ZLIB = 47
_MAX_DECODED = 16 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class ExchangeSummary:
    """One line of a page."""

    id: UUID
    at: datetime
    origin: str
    route: str
    deployment: str
    status: int
    complete: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredExchange:
    """One exchange with all that is kept of it; ``request`` and ``response`` only where captured in full."""

    facts: dict[str, Any]
    request: bytes | None
    response: bytes | None


async def read_page(connection: AsyncConnection, limit: int, after: UUID | None) -> list[ExchangeSummary]:
    """Read at most ``limit`` exchanges that began before ``after``, newest first. Ids sort by time."""
    columns = exchanges.c
    query = (
        select(
            columns.id, columns.at, columns.origin, columns.route, columns.deployment, columns.status, columns.outcome
        )
        .order_by(columns.id.desc())
        .limit(min(limit, MAX_PAGE))
    )
    if after is not None:
        query = query.where(columns.id < after)
    return [
        ExchangeSummary(
            id=row.id,
            at=row.at,
            origin=row.origin,
            route=row.route,
            deployment=row.deployment,
            status=row.status,
            complete=row.outcome == "complete",
        )
        for row in await connection.execute(query)
    ]


async def read_exchange(connection: AsyncConnection, exchange_id: UUID) -> StoredExchange | None:
    """Read one exchange, or ``None`` if there is none of that id."""
    found = (await connection.execute(select(exchanges).where(exchanges.c.id == exchange_id))).mappings().first()
    if found is None:
        return None
    facts = dict(found)
    query = select(exchange_content).where(exchange_content.c.id == exchange_id)
    content = (await connection.execute(query)).mappings().first()
    return StoredExchange(
        facts=facts,
        request=content["request"] if content else None,
        response=decode_body(content["response"], facts["content_encoding"]) if content else None,
    )


def decode_body(body: bytes | None, encoding: str | None) -> bytes | None:
    """Undo an upstream's compression, as far as it goes; a body that is not what it says stays as it is."""
    if body is None or encoding not in {"gzip", "deflate"}:
        return body
    try:
        return zlib.decompressobj(_GZIP_OR_ZLIB).decompress(body, _MAX_DECODED)
    except zlib.error:
        return body
