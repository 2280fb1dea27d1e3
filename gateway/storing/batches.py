"""Batches from the spool into the store: read, write, mark as shipped. `gateway.processes.ship` repeats this.

A batch is one transaction, and is marked only after its commit. If the process dies between the two, the next one ships
the batch again, and the rows that exist already stay as they are.
"""

import logging
import time
from pathlib import Path
from typing import NamedTuple

import asyncpg

from gateway.recording import spool
from gateway.recording.quarantine import Quarantine
from gateway.recording.spool import Damage, Frame, Segment
from gateway.storing.copy_rows import ExchangeRow, row_of
from gateway.storing.exchange_store import ExchangeStore

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
        length = min(window, size - start)
        data = segment.read(length)
        # A writer truncates a record that it could write only in part, so the file may have shrunk.
        at_end = len(data) < length or start + len(data) >= size
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


class _Record(NamedTuple):
    """A record, and its position in the window."""

    offset: int
    payload: bytes
    row: ExchangeRow


async def _ship_parts(
    store: ExchangeStore, segment: Segment, data: bytes, parts: list[Frame | Damage], quarantine: Quarantine
) -> None:
    records: dict[str, _Record] = {}
    aside: list[tuple[int, bytes, str]] = []
    for part in parts:
        if isinstance(part, Damage):
            aside.append((part.start, data[part.start : part.end], "no record"))
            continue
        if part.payload.startswith(spool.ERASED):
            continue
        offset = part.end - len(part.payload)
        try:
            row = row_of(part.payload)
        except ValueError as error:
            aside.append((offset, part.payload, str(error)))
            continue
        records[row.id] = _Record(offset, part.payload, row)
    refused = await _write(store, list(records.values()))
    aside += [(record.offset, record.payload, f"{record.row.id}: {error}") for record, error in refused]
    for offset, kept, why in aside:
        _set_aside(segment, segment.shipped + offset, kept, why, quarantine)


async def _write(store: ExchangeStore, records: list[_Record]) -> list[tuple[_Record, Exception]]:
    """Write records and return those that the store refuses. A refused batch is split to isolate the bad ones."""
    if not records:
        return []
    try:
        await store.write([record.row for record in records])
    except _REFUSED as error:
        if len(records) == 1:
            return [(records[0], error)]
        half = len(records) // 2
        return await _write(store, records[:half]) + await _write(store, records[half:])
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
