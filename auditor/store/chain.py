"""Verify the chain of stored facts: every batch of exchanges extends it by a digest, in the transaction of the batch.

An entry of a batch is the id of an exchange (16 bytes) and the SHA-256 of its facts (32 bytes). The digest of a batch
is the SHA-256 of the digest and the newest exchange before it and of its entries, so that it still shows how new the
exchanges of batches were that are gone. A trigger on ``exchanges`` writes the batches.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, NamedTuple
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
    Column("newest", Uuid, nullable=False),  #: the newest exchange of this batch and of all before it
    Column("digest", LargeBinary, nullable=False),
)


#: One row: the batch before the oldest that is kept, and the first exchange that retention keeps.
chain_base = Table(
    "chain_base",
    metadata,
    Column("single", SmallInteger, CheckConstraint("single = 1"), primary_key=True, autoincrement=False),
    Column("position", BigInteger, nullable=False),
    Column("newest", Uuid, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("expired_before", Uuid, nullable=False),
)


#: The ids of a batch, each with its digest.
Entries = Sequence[tuple[UUID, bytes]]

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


class ChainFaultKind(StrEnum):
    """What differs between the store and the chain."""

    ALTERED = "altered"  #: a row is not as it was stored
    MISSING = "missing"  #: a row is gone without an erasure or an expiry
    INSERTED = "inserted"  #: no batch lists a row
    BROKEN = "broken"  #: a batch does not follow from the one before it
    EARLY = "early"  #: rows have expired, by the store's record, that retention still keeps
    FORGOTTEN = "forgotten"  #: batches are gone with exchanges that have not expired


@dataclass(frozen=True, kw_only=True, slots=True)
class ChainFault:
    """The first place where the store and the chain differ."""

    kind: ChainFaultKind
    position: int | None  #: position of the batch
    exchange_id: UUID | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ChainPoint:
    """The chain up to one of its batches: what its head is, and what is gone of the batches that are kept."""

    digest: bytes
    newest: UUID  #: the newest exchange
    erased: int  #: rows that are gone by a record of their erasure
    expired: int  #: rows that retention has removed


@dataclass(frozen=True, kw_only=True, slots=True)
class ChainState:
    """The result of a verification."""

    batches: int  #: batches that are kept
    length: int  #: batches since the store was made
    rows: int  #: rows that are stored as they were shipped
    head: ChainPoint  #: the chain up to its newest batch
    expired_before: UUID  #: id before which exchanges may be gone, by the store's own record
    begin: int  #: the batch before the oldest that is kept
    wanted: ChainPoint | None  #: the chain up to the batch that the caller wants; None if the chain does not have it
    fault: ChainFault | None


class _Base(NamedTuple):
    position: int
    newest: UUID
    digest: bytes
    expired_before: UUID


#: Of a store from which nothing has expired.
_NEW_BASE: Final = _Base(position=0, newest=UUID(int=0), digest=bytes(32), expired_before=UUID(int=0))


@dataclass(slots=True)
class _Verification:
    """What has been read of the chain so far."""

    expired_before: UUID
    position: int
    newest: UUID
    digest: bytes
    batches: int = 0
    rows: int = 0
    erased: int = 0
    expired: int = 0
    #: Rows that are there although they were erased: a later batch must list them, or else the fault holds.
    erased_but_stored: dict[UUID, ChainFault | None] = field(default_factory=dict)

    def point(self) -> ChainPoint:
        return ChainPoint(digest=self.digest, newest=self.newest, erased=self.erased, expired=self.expired)

    def follow(self, batch: Any, entries: Entries) -> ChainFault | None:
        """Go on to the next batch, unless it does not follow from what was read."""
        digest = hashlib.sha256(self.digest + self.newest.bytes + batch.entries).digest()
        newest = max((exchange_id for exchange_id, _ in entries), default=self.newest)
        after = (self.position + 1, digest, max(self.newest, newest), len(entries) * _ENTRY_BYTES)
        if after != (batch.position, batch.digest, batch.newest, len(batch.entries)):
            return ChainFault(kind=ChainFaultKind.BROKEN, position=self.position + 1, exchange_id=None)
        self.batches += 1
        self.position, self.digest, self.newest = batch.position, batch.digest, batch.newest
        return None

    def compare(self, entries: Entries, stored: Mapping[UUID, bytes], erased: Collection[UUID]) -> ChainFault | None:
        """Compare the entries of the batch with the digests of the rows that are stored."""
        for exchange_id, digest in entries:
            present = stored.get(exchange_id)
            fault = ChainFault(kind=ChainFaultKind.ALTERED, position=self.position, exchange_id=exchange_id)
            if exchange_id in erased:
                self.erased += 1
                if present is not None:
                    self.erased_but_stored[exchange_id] = None if present == digest else fault
            elif present == digest:
                self.rows += 1
                self.erased_but_stored.pop(exchange_id, None)
            elif present is not None:
                return fault
            elif exchange_id < self.expired_before:
                self.expired += 1
            else:
                return replace(fault, kind=ChainFaultKind.MISSING)
        return None

    def settle(self) -> ChainFault | None:
        """Return the first row that is there although it was erased, and that no later batch lists as it is."""
        faults = [fault for fault in self.erased_but_stored.values() if fault is not None]
        unchanged = len(self.erased_but_stored) - len(faults)  # the record of an erasure that never was
        self.erased -= unchanged
        self.rows += unchanged
        return faults[0] if faults else None


async def verify_chain(engine: AsyncEngine, kept_from: UUID, wanted_position: int | None = None) -> ChainState:
    """Compare every stored exchange with the chain, and the chain with itself, in one snapshot of the store.

    Parameters
    ----------
    engine
        The store.
    kept_from
        Id of the first exchange that retention keeps now: no expiry explains that a newer one is gone.
    wanted_position
        Position of the batch up to which the chain is wanted.

    Raises
    ------
    StoreUnavailable
        The store does not answer.
    """
    async with transaction(engine) as connection:
        await connection.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"))
        base = (await connection.execute(select(chain_base))).one_or_none() or _NEW_BASE
        done = _Verification(base.expired_before, base.position, base.newest, base.digest)
        fault, wanted = _unexplained(base, kept_from), done.point() if wanted_position == base.position else None
        batches = await connection.stream(select(chain).order_by(chain.c.position).execution_options(yield_per=20))
        async for batch in batches:
            entries = _entries(batch.entries)
            fault = fault or done.follow(batch, entries)
            fault = fault or done.compare(entries, *await _read(connection, entries, batch.position))
            if fault is not None:
                break
            wanted = done.point() if wanted_position == batch.position else wanted
        fault = fault or done.settle()
        if fault is None:
            inserted = await connection.scalar(_UNLISTED)
            if inserted is not None:
                fault = ChainFault(kind=ChainFaultKind.INSERTED, position=None, exchange_id=inserted)
    return ChainState(
        batches=done.batches, length=done.position, rows=done.rows, head=done.point(),
        expired_before=base.expired_before, begin=base.position, wanted=wanted, fault=fault,
    )  # fmt: skip


def _unexplained(base: Any, kept_from: UUID) -> ChainFault | None:
    """Compare the record of what has expired with what retention keeps, and with the batches that are gone."""
    if base.expired_before > kept_from:
        return ChainFault(kind=ChainFaultKind.EARLY, position=None, exchange_id=base.expired_before)
    if base.position and base.newest >= base.expired_before:
        return ChainFault(kind=ChainFaultKind.FORGOTTEN, position=base.position, exchange_id=base.newest)
    return None


def _entries(listed: bytes) -> Entries:
    """Return the ids of a batch, each with its digest."""
    return [
        (UUID(bytes=entry[:_ID_BYTES]), entry[_ID_BYTES:])
        for entry in (listed[end - _ENTRY_BYTES : end] for end in range(_ENTRY_BYTES, len(listed) + 1, _ENTRY_BYTES))
    ]


async def _read(connection: AsyncConnection, entries: Entries, position: int) -> tuple[dict[UUID, bytes], set[UUID]]:
    """Read the digests of the rows of a batch that are stored, and which of its rows were erased after it."""
    ids = [exchange_id for exchange_id, _ in entries]
    query = text(f"SELECT id, {_FACTS_DIGEST} AS digest FROM exchanges WHERE id = ANY(:ids)")  # noqa: S608 -- constants
    stored = {row.id: row.digest for row in await connection.execute(query, {"ids": ids})}
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
    move = """
        UPDATE chain_base SET position = last.position, newest = last.newest, digest = last.digest
        FROM (SELECT * FROM chain WHERE newest < :before ORDER BY position DESC LIMIT 1) AS last
    """
    await connection.execute(text(move), {"before": before})
    removal = "DELETE FROM chain c USING chain_base b WHERE c.position <= b.position"
    return (await connection.execute(text(removal))).rowcount
