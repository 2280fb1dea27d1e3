"""Store exchanges and read them: one by id, or pages of them, newest first.

The gateway's shipper writes the same tables on its own, because it may not import SQLAlchemy. Both create a day's
partitions under one lock, and neither changes a row that exists.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Double,
    ForeignKey,
    Identity,
    LargeBinary,
    SmallInteger,
    Table,
    Text,
    Uuid,
    func,
    or_,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from auditor.domain.exchange import Exchange
from auditor.domain.ids import id_time
from auditor.store.engine import metadata, transaction
from auditor.store.partitions import make_days
from auditor.trials.assignment import ARM_TAG, CONTROL, UNASSIGNED, UNTOUCHED_TAG

exchanges = Table(
    "exchanges",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("at", DateTime(timezone=True), nullable=False),
    Column("origin", Text, nullable=False),
    Column("endpoint", Text, nullable=False),
    Column("route", Text, nullable=False),
    Column("deployment", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("status", SmallInteger, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("stream", Boolean, nullable=False),
    Column("attempts", SmallInteger, nullable=False),
    Column("capture", Text, nullable=False),
    Column("inclusion", Double, nullable=False),
    Column("config_hash", Text, nullable=False),
    Column("request_id", Text, nullable=False),
    Column("key_id", Text),
    Column("ref", Text),
    Column("parent", Uuid),
    Column("tags", JSONB),
    Column("error_type", Text),
    Column("finish_reason", Text),
    Column("prompt_tokens", BigInteger),
    Column("completion_tokens", BigInteger),
    Column("total_us", BigInteger, nullable=False),
    Column("upstream_us", BigInteger, nullable=False),
    Column("first_byte_us", BigInteger),
    Column("request_bytes", BigInteger, nullable=False),
    Column("response_bytes", BigInteger, nullable=False),
    Column("truncated", Boolean, nullable=False),
    Column("redacted", Boolean, nullable=False),
    Column("content_encoding", Text),
    Column("request_hash", LargeBinary),
    Column("response_hash", LargeBinary),
)

#: The deployment got what the client had asked: no instruction of a trial was added.
ASKED_AS_SENT: Final = or_(
    func.coalesce(exchanges.c.tags[ARM_TAG].astext, CONTROL).in_((CONTROL, UNASSIGNED)),
    exchanges.c.tags[UNTOUCHED_TAG].astext.is_not(None),
)


exchange_content = Table(
    "exchange_content",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("request", LargeBinary),
    Column("response", LargeBinary),
)


planned_instances = Table(
    "planned_instances",
    metadata,
    Column("ref", Text, primary_key=True),
    Column("exchange_id", Uuid, nullable=False),
)


arrivals = Table(
    "arrivals",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("since", Uuid, nullable=False),
)


erasures = Table(
    "erasures",
    metadata,
    Column("id", Text, primary_key=True),
    Column("at", DateTime(timezone=True), nullable=False),
    Column("by", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("selector", Text, nullable=False),  #: a digest, salted with the id
    Column("counts", JSONB, nullable=False),
    Column("complete", Boolean, nullable=False),
)


erased_exchanges = Table(
    "erased_exchanges",
    metadata,
    Column("exchange_id", Uuid, primary_key=True),
    Column("erasure_id", Text, ForeignKey(erasures.c.id), primary_key=True),
    Column("position", BigInteger, nullable=False),  #: the newest batch of the chain at that time
)


MAX_PAGE = 1000


_GZIP_OR_ZLIB = 47


_MAX_DECODED = 16 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class ExchangeSummary:
    """One exchange in a list."""

    id: UUID
    at: datetime
    origin: str
    route: str
    deployment: str
    status: int
    complete: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredExchange:
    """One exchange with everything stored; ``request`` and ``response`` only if captured in full."""

    facts: dict[str, Any]
    request: bytes | None
    response: bytes | None


_SUMMARIES = select(*(exchanges.c[name] for name in ("id", "at", "origin", "route", "deployment", "status", "outcome")))


#: The columns by which lists of exchanges can be filtered.
FILTERS = ("deployment", "origin", "route")


async def read_page(connection: AsyncConnection, limit: int, after: UUID | None, **equal: str) -> list[ExchangeSummary]:
    """Read at most ``limit`` exchanges that began before ``after``, newest first. Ids sort by time.

    ``equal`` has the wanted values of columns of ``FILTERS``.
    """
    query = _SUMMARIES.order_by(exchanges.c.id.desc()).limit(min(limit, MAX_PAGE))
    query = query.where(*(exchanges.c[name] == value for name, value in equal.items()))
    if after is not None:
        query = query.where(exchanges.c.id < after)
    return [_summary(row) for row in await connection.execute(query)]


def _summary(row: Any) -> ExchangeSummary:
    return ExchangeSummary(
        id=row.id,
        at=row.at,
        origin=row.origin,
        route=row.route,
        deployment=row.deployment,
        status=row.status,
        complete=row.outcome == "complete",
    )


async def read_exchange(connection: AsyncConnection, exchange_id: UUID) -> StoredExchange | None:
    """Read one exchange, or ``None`` if there is none of that id."""
    row = (await connection.execute(select(exchanges).where(exchanges.c.id == exchange_id))).mappings().first()
    if row is None:
        return None
    facts = dict(row)
    query = select(exchange_content).where(exchange_content.c.id == exchange_id)
    content = (await connection.execute(query)).mappings().first()
    return StoredExchange(
        facts=facts,
        request=content["request"] if content else None,
        response=decode_body(content["response"], facts["content_encoding"]) if content else None,
    )


async def read_related(connection: AsyncConnection, exchange_id: UUID, parent: UUID | None) -> list[ExchangeSummary]:
    """Read the exchange that this one repeats, and the replays and mirrored prompts of this one, oldest first."""
    columns = exchanges.c
    related = columns.parent == exchange_id
    if parent is not None:
        related = or_(related, columns.id == parent)
    return [
        _summary(row)
        for row in await connection.execute(_SUMMARIES.where(related).order_by(columns.id).limit(MAX_PAGE))
    ]


def decode_body(body: bytes | None, encoding: str | None) -> bytes | None:
    """Decompress a body up to a limit; a body that does not match its encoding is returned unchanged."""
    if body is None or encoding not in {"gzip", "deflate"}:
        return body
    try:
        return zlib.decompressobj(_GZIP_OR_ZLIB).decompress(body, _MAX_DECODED)
    except zlib.error:
        return body


async def erased_among(connection: AsyncConnection, ids: Sequence[UUID]) -> set[UUID]:
    """Return the exchanges that have been erased; no other is erased before this transaction ends.

    Whoever stores something made of an exchange asks first, because it may have been erased in the meantime.
    """
    await connection.execute(text("SELECT pg_advisory_xact_lock_shared(hashtext('biasmeter erasure'))"))
    query = select(erased_exchanges.c.exchange_id).where(erased_exchanges.c.exchange_id.in_(ids))
    return set((await connection.execute(query)).scalars())


async def announce(connection: AsyncConnection, exchange_id: UUID) -> None:
    """Have the next search find a stored exchange, which counts for a planned call only now."""
    await connection.execute(insert(arrivals).values(since=exchange_id))


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


_TABLES: Final = ("exchanges", "exchange_content")


#: Fields of an exchange that are columns of the same name.
_FACTS: Final = tuple(name for name in Exchange._fields if name in exchanges.columns)


async def add_exchanges(engine: AsyncEngine, new_exchanges: Sequence[Exchange]) -> int:
    """Store exchanges with their content, if any, and return how many are new.

    Raises
    ------
    StoreUnavailable
        PostgreSQL does not answer; none of the exchanges is stored.
    """
    if not new_exchanges:
        return 0
    async with transaction(engine) as connection:
        days = {id_time(exchange.id).date() for exchange in new_exchanges}
        await make_days(connection, _TABLES, days, "biasmeter partitions")
    async with transaction(engine) as connection:
        new = await _add_facts(connection, new_exchanges)
        content = [exchange for exchange in new_exchanges if exchange.id in new and exchange.request is not None]
        # If an id occurs twice in one batch, the first counts.
        rows = {
            exchange.id: {"id": exchange.id, "request": exchange.request, "response": exchange.response}
            for exchange in reversed(content)
        }
        if rows:
            await connection.execute(insert(exchange_content), list(rows.values()))
    return len(new)


async def _add_facts(connection: AsyncConnection, new_exchanges: Sequence[Exchange]) -> set[UUID]:
    query = insert(exchanges).on_conflict_do_nothing().returning(exchanges.c.id)
    return set((await connection.execute(query, [_row(exchange) for exchange in new_exchanges])).scalars())


def _row(exchange: Exchange) -> dict[str, Any]:
    facts = {name: getattr(exchange, name) for name in _FACTS}
    return facts | {"at": _EPOCH + timedelta(microseconds=exchange.at_us), "tags": exchange.tags or None}
