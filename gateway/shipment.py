"""One batch from the spool into the store: read, COPY, mark. The shipper (`gateway.ship`) repeats it.

A batch is one transaction, and is marked as shipped only after its commit. If the process dies between the two, the
next one ships the batch again, and its rows are found to be there already.
"""

import json
import logging
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from uuid import UUID

import asyncpg

from auditor.domain.exchange import Exchange
from auditor.domain.ids import day_bounds, id_time
from gateway import record, spool
from gateway.counters import Counters
from gateway.spool import Damage, Frame, Segment

log = logging.getLogger(__name__)

#: A batch is read in windows of this size; one record larger than it widens the window.
_WINDOW = 4 << 20

_FACTS = (
    "id", "at", "origin", "endpoint", "route", "deployment", "model", "status", "outcome", "stream", "attempts",
    "capture", "inclusion", "config_hash", "request_id", "key_id", "ref", "parent", "tags", "error_type",
    "finish_reason", "prompt_tokens", "completion_tokens", "total_us", "upstream_us", "first_byte_us",
    "request_bytes", "response_bytes", "truncated", "content_encoding", "request_hash", "response_hash",
)  # fmt: skip
_CONTENT = ("id", "request", "response")
_TABLES = {"exchanges": _FACTS, "exchange_content": _CONTENT}


@dataclass(slots=True)
class Store:
    """The store as the shipper uses it: one connection, and the days it knows to have partitions."""

    connection: asyncpg.Connection
    days: set[date] = field(default_factory=set)

    async def prepare(self) -> None:
        """Make the tables into which batches are copied: this connection's own, and empty between batches."""
        for table in _TABLES:
            await self.connection.execute(
                f"CREATE TEMP TABLE incoming_{table} (LIKE {table} INCLUDING DEFAULTS) ON COMMIT DELETE ROWS"
            )

    async def write(self, exchanges: list[Exchange]) -> None:
        """Write a batch in one transaction; rows that are there already stay as they are."""
        for day in {id_time(exchange.id).date() for exchange in exchanges} - self.days:
            await self._make_day(day)
        content = [e for e in exchanges if e.request is not None]
        planned = [(e.ref, e.id) for e in exchanges if e.ref is not None and e.complete]
        async with self.connection.transaction():
            await self._copy("exchanges", [_facts(exchange) for exchange in exchanges])
            if content:
                await self._copy("exchange_content", [(e.id, e.request, e.response) for e in content])
            if planned:
                # The first complete row of a planned instance is the one that counts.
                await self.connection.executemany(
                    "INSERT INTO planned_instances (ref, exchange_id) VALUES ($1, $2) ON CONFLICT DO NOTHING", planned
                )

    async def _copy(self, table: str, rows: list[tuple[object, ...]]) -> None:
        columns = _TABLES[table]
        await self.connection.copy_records_to_table(f"incoming_{table}", records=rows, columns=columns)
        names = ", ".join(columns)
        await self.connection.execute(
            f"INSERT INTO {table} ({names}) SELECT {names} FROM incoming_{table} ON CONFLICT DO NOTHING"  # noqa: S608 -- constants
        )

    async def _make_day(self, day: date) -> None:
        low, high = day_bounds(day)
        async with self.connection.transaction():
            # Shippers of several hosts may meet here; CREATE ... IF NOT EXISTS alone does not stand that.
            await self.connection.execute("SELECT pg_advisory_xact_lock(hashtext('tiltmeter partitions'))")
            for table in _TABLES:
                await self.connection.execute(
                    f"CREATE TABLE IF NOT EXISTS {table}_{day:%Y%m%d} PARTITION OF {table} "
                    f"FOR VALUES FROM ('{low}') TO ('{high}')"
                )
        self.days.add(day)


async def ship_some(store: Store, folder: Path, counters: Counters) -> bool:
    """Ship a window of each segment; say whether anything was moved.

    Raises
    ------
    OSError, asyncpg.PostgresConnectionError, asyncpg.InterfaceError
        The store is gone; nothing of the current window is marked.
    """
    moved = False
    for path in spool.segments(folder):
        with Segment(path) as segment:
            moved |= await _ship_window(store, segment, counters)
    return moved


async def _ship_window(store: Store, segment: Segment, counters: Counters) -> bool:
    # Asked before reading: what is there once nothing more can come is all there is.
    finished = segment.finished()
    start, size = segment.shipped, segment.size()
    if not segment.has_magic():
        return _set_aside_whole(segment, counters) if finished else False
    if start >= size:
        if finished:
            segment.remove()
        return False
    window = _WINDOW
    while True:
        data = segment.read(window)
        at_end = len(data) < window or start + len(data) >= size
        parts = list(spool.read_frames(data, finished=finished and at_end))
        if parts or at_end:
            break
        window *= 2
    if not parts:
        return False
    await _ship_parts(store, segment, data, parts, counters)
    segment.mark(start + parts[-1].end)
    return True


async def _ship_parts(
    store: Store, segment: Segment, data: bytes, parts: list[Frame | Damage], counters: Counters
) -> None:
    exchanges: dict[UUID, Exchange] = {}
    for part in parts:
        if isinstance(part, Damage):
            _set_aside(segment, part.start, data[part.start : part.end], "no record", counters)
            continue
        try:
            exchange = record.decode(part.payload)
        except ValueError as error:
            _set_aside(segment, part.end - len(part.payload), part.payload, str(error), counters)
            continue
        exchanges[exchange.id] = exchange
    batch = list(exchanges.values())
    if not batch:
        return
    try:
        await store.write(batch)
    except asyncpg.DataError:
        for exchange in batch:
            await _ship_alone(store, segment, exchange, counters)


async def _ship_alone(store: Store, segment: Segment, exchange: Exchange, counters: Counters) -> None:
    """Write one row of a batch that the store refused, so that one bad row costs no other."""
    try:
        await store.write([exchange])
    except asyncpg.DataError as error:
        _set_aside(segment, segment.shipped, record.encode(exchange), f"{exchange.id}: {error}", counters)


def _set_aside(segment: Segment, offset: int, data: bytes, why: str, counters: Counters) -> None:
    """Keep what cannot be shipped where a person can look at it; nothing is thrown away."""
    place = segment.shipped + offset
    folder = segment.path.parent / "quarantine"
    folder.mkdir(exist_ok=True, mode=0o700)
    kept = folder / f"{segment.path.stem}-{place}.bin"
    kept.write_bytes(data)
    counters.add(("tiltmeter_spool_quarantined_bytes",), len(data))
    log.error("%s, byte %d: %s; %d bytes set aside in %s", segment.path, place, why, len(data), kept)


def _set_aside_whole(segment: Segment, counters: Counters) -> bool:
    data = segment.read(segment.size())
    if data or segment.size():
        segment.shipped = 0
        _set_aside(segment, 0, segment.read(segment.size()), "not a segment of this format", counters)
    segment.remove()
    return True


def _text(value: str | None) -> str | None:
    # PostgreSQL's text holds neither NUL nor half a surrogate pair, and a request's may.
    return value and value.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _facts(exchange: Exchange) -> tuple[object, ...]:
    return (
        exchange.id,
        datetime.fromtimestamp(exchange.at_us / 1e6, UTC),
        exchange.origin.value,
        exchange.endpoint,
        exchange.route,
        exchange.deployment,
        _text(exchange.model),
        exchange.status,
        exchange.outcome.value,
        exchange.stream,
        exchange.attempts,
        exchange.capture.value,
        exchange.inclusion,
        exchange.config_hash,
        _text(exchange.request_id),
        exchange.key_id,
        exchange.ref,
        exchange.parent,
        json.dumps({name: _text(value) for name, value in exchange.tags.items()}) if exchange.tags else None,
        exchange.error_type,
        _text(exchange.finish_reason),
        exchange.prompt_tokens,
        exchange.completion_tokens,
        exchange.total_us,
        exchange.upstream_us,
        exchange.first_byte_us,
        exchange.request_bytes,
        exchange.response_bytes,
        exchange.truncated,
        _text(exchange.content_encoding),
        exchange.request_hash,
        exchange.response_hash,
    )
