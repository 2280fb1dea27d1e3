"""Batches from the spool into the store: read, COPY, mark as shipped. The shipper (`gateway.ship`) repeats this.

A batch is one transaction, and is marked only after its commit. If the process dies between the two, the next one ships
the batch again, and the rows that exist already stay as they are.
"""

import json
import logging
import time
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from uuid import UUID

import asyncpg

from auditor.domain.exchange import Exchange
from auditor.domain.ids import day_bounds, id_time
from auditor.errors import StoreUnavailable
from gateway import exchange_codec, spool
from gateway.quarantine import Quarantine
from gateway.spool import Damage, Frame, Segment

log = logging.getLogger(__name__)

#: A batch is read in windows of this size; one record larger than it widens the window.
_WINDOW = 4 << 20
#: Errors of the store or of its driver for a row that can never be stored.
_REFUSED = (
    asyncpg.DataError,
    asyncpg.IntegrityConstraintViolationError,
    asyncpg.ProgramLimitExceededError,
    ValueError,
    OverflowError,
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_FACTS = (
    "id", "at", "origin", "endpoint", "route", "deployment", "model", "status", "outcome", "stream", "attempts",
    "capture", "inclusion", "config_hash", "request_id", "key_id", "ref", "parent", "tags", "error_type",
    "finish_reason", "prompt_tokens", "completion_tokens", "total_us", "upstream_us", "first_byte_us",
    "request_bytes", "response_bytes", "truncated", "redacted", "content_encoding", "request_hash", "response_hash",
)  # fmt: skip
_CONTENT = ("id", "request", "response")
_TABLES = {"exchanges": _FACTS, "exchange_content": _CONTENT}


@dataclass(slots=True)
class ExchangeStore:
    """The store as the shipper uses it: one connection, and the days that are known to have partitions.

    ``logged`` holds the segments whose failure has been logged, so that each is logged once. ``unmarked`` holds the
    positions up to which segments have been shipped where that cannot be recorded on disk.
    """

    connection: asyncpg.Connection
    days: set[date] = field(default_factory=set)
    logged: set[Path] = field(default_factory=set)
    unmarked: dict[Path, int] = field(default_factory=dict)

    async def prepare(self) -> None:
        """Create this connection's temporary tables, into which batches are copied."""
        for table in _TABLES:
            await self.connection.execute(
                f"CREATE TEMP TABLE incoming_{table} (LIKE {table} INCLUDING DEFAULTS) ON COMMIT DELETE ROWS"
            )

    async def write(self, exchanges: list[Exchange]) -> None:
        """Write a batch in one transaction. Rows that exist already stay as they are.

        Raises
        ------
        StoreUnavailable
            The connection broke; the batch may have been stored or not.
        """
        days = {id_time(exchange.id).date() for exchange in exchanges}
        try:
            try:
                await self._write(exchanges, days - self.days)
            except asyncpg.CheckViolationError:
                if not days & self.days:
                    raise
                # A row has no partition: a known one has been dropped since.
                await self._write(exchanges, days)
        except OSError as error:  # to distinguish it from errors of the spool's files
            raise StoreUnavailable(f"the store went away: {error}") from error

    async def _write(self, exchanges: list[Exchange], new_days: set[date]) -> None:
        for day in new_days:
            await self._make_day(day)
        content = [e for e in exchanges if e.request is not None]
        planned = sorted((e.ref, e.id) for e in exchanges if e.ref is not None and e.complete)
        async with self.connection.transaction():
            # In the order in which partitions are made; rows of this table come last.
            await self.connection.execute("LOCK TABLE exchanges IN ROW EXCLUSIVE MODE")
            if content:
                await self._copy("exchange_content", [(e.id, e.request, e.response) for e in content])
            if planned:
                # The first complete row of a planned instance is the one that counts.
                await self.connection.executemany(
                    "INSERT INTO planned_instances (ref, exchange_id) VALUES ($1, $2) ON CONFLICT DO NOTHING", planned
                )
            # The batches of all hosts follow one another from here to the commit.
            await self._copy("exchanges", [_facts(exchange) for exchange in exchanges])

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
            # Shippers of several hosts may do this at the same time, and CREATE ... IF NOT EXISTS alone can then fail.
            await self.connection.execute("SELECT pg_advisory_xact_lock(hashtext('biasmeter partitions'))")
            for table in _TABLES:
                await self.connection.execute(
                    f"CREATE TABLE IF NOT EXISTS {table}_{day:%Y%m%d} PARTITION OF {table} "
                    f"FOR VALUES FROM ('{low}') TO ('{high}')"
                )
        self.days.add(day)


async def ship_some(store: ExchangeStore, folder: Path, quarantine: Quarantine, seconds: float = 1.0) -> bool:
    """Ship segments, the oldest first. Return whether anything was moved.

    After ``seconds`` no further segment is begun, so that the shipper can react to a signal. A segment that cannot
    be read, or whose damage cannot be quarantined, is left for the next call and does not stop the others.

    Raises
    ------
    StoreUnavailable, asyncpg.PostgresConnectionError, asyncpg.InterfaceError
        The store is gone; nothing of the current window is marked.
    """
    moved = False
    began = time.monotonic()
    for path in spool.segments(folder):
        try:
            with Segment(path) as segment:
                moved |= await _ship_segment(store, segment, quarantine)
        except OSError as error:
            _log_once(store, path, error)
        if moved and time.monotonic() - began > seconds:
            break
    return moved


def _log_once(store: ExchangeStore, path: Path, error: OSError) -> None:
    if path not in store.logged:
        log.error("%s: %s; it is tried again, and the other segments are shipped", path, error)
        store.logged.add(path)


async def _ship_segment(store: ExchangeStore, segment: Segment, quarantine: Quarantine) -> bool:
    # Checked before reading: once the writer has finished, the size is final.
    finished = segment.finished()
    size = segment.size()
    if not segment.is_segment:
        return _set_aside_whole(segment, size, quarantine) if finished else False
    segment.shipped = max(segment.shipped, store.unmarked.get(segment.path, 0))
    moved = False
    while segment.shipped < size and await _ship_window(store, segment, size, quarantine, finished=finished):
        moved = True
    if finished and segment.shipped >= size:
        segment.remove()
        store.unmarked.pop(segment.path, None)
    return moved


async def _ship_window(
    store: ExchangeStore, segment: Segment, size: int, quarantine: Quarantine, *, finished: bool
) -> bool:
    start, window = segment.shipped, _WINDOW
    while True:
        asked = min(window, size - start)
        data = segment.read(asked)
        # A writer truncates a record that it could write only in part, so the file may have shrunk.
        at_end = len(data) < asked or start + len(data) >= size
        parts = list(spool.read_frames(data, segment.salt, finished=finished and at_end))
        if parts or at_end:
            break
        window *= 2
    if not parts:
        return False
    await _ship_parts(store, segment, data, parts, quarantine)
    try:
        segment.mark(start + parts[-1].end)
    except OSError as error:
        # A disk that has become read-only. After a restart the records are shipped twice, which changes nothing.
        store.unmarked[segment.path] = segment.shipped
        _log_once(store, segment.path, error)
    else:
        store.unmarked.pop(segment.path, None)
    return True


@dataclass(frozen=True, slots=True)
class _Row:
    """An exchange, and its position in the window."""

    offset: int
    payload: bytes
    exchange: Exchange


async def _ship_parts(
    store: ExchangeStore, segment: Segment, data: bytes, parts: list[Frame | Damage], quarantine: Quarantine
) -> None:
    rows: dict[UUID, _Row] = {}
    aside: list[tuple[int, bytes, str]] = []
    for part in parts:
        if isinstance(part, Damage):
            aside.append((part.start, data[part.start : part.end], "no record"))
            continue
        if part.payload.startswith(spool.ERASED):
            continue
        offset = part.end - len(part.payload)
        try:
            exchange = exchange_codec.decode(part.payload)
        except ValueError as error:
            aside.append((offset, part.payload, str(error)))
            continue
        rows[exchange.id] = _Row(offset, part.payload, exchange)
    refused = await _write(store, list(rows.values()))
    aside += [(row.offset, row.payload, f"{row.exchange.id}: {error}") for row, error in refused]
    for offset, kept, why in aside:
        _set_aside(segment, segment.shipped + offset, kept, why, quarantine)


async def _write(store: ExchangeStore, rows: list[_Row]) -> list[tuple[_Row, Exception]]:
    """Write rows and return those that the store refuses. A refused batch is split to isolate the bad rows."""
    if not rows:
        return []
    try:
        await store.write([row.exchange for row in rows])
    except _REFUSED as error:
        if len(rows) == 1:
            return [(rows[0], error)]
        half = len(rows) // 2
        return await _write(store, rows[:half]) + await _write(store, rows[half:])
    return []


def _set_aside(segment: Segment, place: int, data: bytes, why: str, quarantine: Quarantine) -> None:
    became = quarantine.keep(f"{segment.path.stem}-{place}.bin", data)
    if became is not None:
        log.error("%s, byte %d: %s; %s", segment.path, place, why, became)


def _set_aside_whole(segment: Segment, size: int, quarantine: Quarantine) -> bool:
    if size:
        log.error("%s: not a segment of this format; %s", segment.path, quarantine.move(segment.path, size))
    segment.remove()
    return True


def _text(value: str | None) -> str | None:
    # PostgreSQL's text type allows neither NUL nor lone surrogates; a request may contain both.
    return value and value.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _facts(exchange: Exchange) -> tuple[object, ...]:
    return (
        exchange.id,
        _EPOCH + timedelta(microseconds=exchange.at_us),
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
        exchange.redacted,
        _text(exchange.content_encoding),
        exchange.request_hash,
        exchange.response_hash,
    )
