"""Verify the chain of stored facts: every batch of exchanges extends it by a digest, in the transaction of the batch.

An entry of a batch is the id of an exchange (16 bytes) and the SHA-256 of its facts (32 bytes). The digest of a batch
is the SHA-256 of the digest before it and of its entries. A trigger on ``exchanges`` writes the batches.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from sqlalchemy import BigInteger, CheckConstraint, Column, LargeBinary, SmallInteger, Table, Uuid, select, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from auditor.store.engine import metadata, transaction
from auditor.store.exchanges import erased_exchanges

chain = Table(
    "chain",
    metadata,
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("entries", LargeBinary, nullable=False),
    Column("newest", Uuid, nullable=False),  #: the newest exchange of the batch
    Column("digest", LargeBinary, nullable=False),
)


#: One row: the batch before the oldest that is kept, and the first exchange that retention keeps.
chain_base = Table(
    "chain_base",
    metadata,
    Column("single", SmallInteger, CheckConstraint("single = 1"), primary_key=True, autoincrement=False),
    Column("position", BigInteger, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("expired_before", Uuid, nullable=False),
)


_ID_BYTES: Final = 16
_ENTRY_BYTES: Final = 48
#: The columns of exchanges that the chain covers, in the order of the digest, whatever their order in the table is.
#: The trigger names the same. A column that a later migration adds is therefore not covered and disturbs no digest; a
#: release that wants to cover it needs a second list, and the batch from which it holds.
COVERED: Final = (
    "id", "at", "origin", "endpoint", "route", "deployment", "model", "status", "outcome", "stream", "attempts",
    "capture", "inclusion", "config_hash", "request_id", "key_id", "ref", "parent", "tags", "error_type",
    "finish_reason", "prompt_tokens", "completion_tokens", "total_us", "upstream_us", "first_byte_us",
    "request_bytes", "response_bytes", "truncated", "content_encoding", "request_hash", "response_hash", "redacted",
)  # fmt: skip
#: In PostgreSQL's binary format, which no setting changes.
_FACTS_DIGEST: Final = f"sha256(record_send(ROW({', '.join(COVERED)})))"
_UNLISTED: Final = text(f"""
    SELECT e.id FROM exchanges e WHERE NOT EXISTS (
        SELECT FROM (
            SELECT encode(substring(c.entries FROM place FOR {_ID_BYTES}), 'hex')::uuid AS id
            FROM chain c, generate_series(1, length(c.entries), {_ENTRY_BYTES}) AS place
        ) AS listed WHERE listed.id = e.id
    ) ORDER BY e.id LIMIT 1
""")  # noqa: S608 -- constants


@dataclass(frozen=True, kw_only=True, slots=True)
class ChainFault:
    """The first place where the store and the chain differ."""

    what: str  #: ``altered``, ``missing``, ``inserted`` or ``broken``
    position: int | None  #: position of the batch
    exchange_id: UUID | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ChainState:
    """The result of a verification."""

    batches: int  #: batches that are kept
    length: int  #: batches since the store was made
    rows: int  #: rows that are stored as they were shipped
    erased: int  #: rows that are gone by a record of their erasure
    expired: int  #: rows of kept batches that retention has removed
    expired_before: UUID  #: id before which exchanges may be gone, by the store's own record
    head: bytes  #: digest of the newest batch
    begin: int  #: the batch before the oldest that is kept
    wanted_digest: bytes | None  #: digest of the batch that the caller wants; None if the chain does not have it
    fault: ChainFault | None


@dataclass(slots=True)
class _Counts:
    batches: int = 0
    rows: int = 0
    erased: int = 0
    expired: int = 0


async def verify_chain(engine: AsyncEngine, wanted_position: int | None = None) -> ChainState:
    """Compare every stored exchange with the chain, and the chain with itself, in one snapshot of the store.

    Parameters
    ----------
    engine
        The store.
    wanted_position
        Position of the batch whose digest is wanted.

    Raises
    ------
    StoreUnavailable
        The store does not answer.
    """
    async with transaction(engine) as connection:
        await connection.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"))
        base = (await connection.execute(select(chain_base))).one()
        counts, position, digest = _Counts(), base.position, base.digest
        fault, wanted_digest = None, digest if wanted_position == position else None
        batches = await connection.stream(select(chain).order_by(chain.c.position).execution_options(yield_per=20))
        async for batch in batches:
            fault = _broken(batch, position, digest) or await _differing(connection, batch, base.expired_before, counts)
            if fault is not None:
                break
            counts.batches += 1
            position, digest = batch.position, batch.digest
            wanted_digest = digest if wanted_position == position else wanted_digest
        if fault is None:
            inserted = await connection.scalar(_UNLISTED)
            fault = ChainFault(what="inserted", position=None, exchange_id=inserted) if inserted is not None else None
    return ChainState(
        batches=counts.batches, length=position, rows=counts.rows, erased=counts.erased, expired=counts.expired,
        expired_before=base.expired_before, head=digest, begin=base.position, wanted_digest=wanted_digest, fault=fault,
    )  # fmt: skip


def _broken(batch: Any, position: int, digest: bytes) -> ChainFault | None:
    follows = batch.position == position + 1 and len(batch.entries) % _ENTRY_BYTES == 0
    if follows and hashlib.sha256(digest + batch.entries).digest() == batch.digest:
        return None
    return ChainFault(what="broken", position=position + 1, exchange_id=None)


async def _differing(
    connection: AsyncConnection, batch: Any, expired_before: UUID, counts: _Counts
) -> ChainFault | None:
    entries = [
        (UUID(bytes=batch.entries[start : start + _ID_BYTES]), batch.entries[start + _ID_BYTES : start + _ENTRY_BYTES])
        for start in range(0, len(batch.entries), _ENTRY_BYTES)
    ]
    stored, erased = await _read(connection, [each for each, _ in entries], batch.position)
    for exchange_id, digest in entries:
        if stored.get(exchange_id) == digest:
            counts.rows += 1
        elif exchange_id in erased:
            counts.erased += 1
        elif exchange_id in stored:
            return ChainFault(what="altered", position=batch.position, exchange_id=exchange_id)
        elif exchange_id < expired_before:
            counts.expired += 1
        else:
            return ChainFault(what="missing", position=batch.position, exchange_id=exchange_id)
    return None


async def _read(connection: AsyncConnection, ids: Sequence[UUID], position: int) -> tuple[dict[UUID, bytes], set[UUID]]:
    """Read the digests of the stored rows, and which rows were erased after this batch."""
    query = text(f"SELECT id, {_FACTS_DIGEST} AS digest FROM exchanges WHERE id = ANY(:ids)")  # noqa: S608 -- constants
    stored = {row.id: row.digest for row in await connection.execute(query, {"ids": list(ids)})}
    gone = select(erased_exchanges.c.exchange_id).where(
        erased_exchanges.c.exchange_id.in_(ids), erased_exchanges.c.position >= position
    )
    return stored, set((await connection.execute(gone)).scalars())


async def expire_facts(connection: AsyncConnection, before: UUID) -> None:
    """Record, before they are removed, that exchanges older than an id expire."""
    query = "UPDATE chain_base SET expired_before = :before WHERE expired_before < :before"
    await connection.execute(text(query), {"before": before})


async def forget_batches(connection: AsyncConnection, before: UUID) -> int:
    """Remove the oldest batches of which all exchanges have expired; the chain then begins behind them."""
    await connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('biasmeter chain'))"))
    await connection.execute(
        text("""
            UPDATE chain_base SET position = last.position, digest = last.digest
            FROM (
                SELECT position, digest FROM chain
                WHERE position < ALL (SELECT position FROM chain WHERE newest >= :before ORDER BY position LIMIT 1)
                ORDER BY position DESC LIMIT 1
            ) AS last
        """),
        {"before": before},
    )
    removal = "DELETE FROM chain c USING chain_base b WHERE c.position <= b.position"
    return (await connection.execute(text(removal))).rowcount
