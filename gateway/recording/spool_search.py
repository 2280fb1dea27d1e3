"""Find exchanges in the spool of this host and overwrite them, while the gateway writes and ships.

Records are overwritten in place: a segment grows and is shipped as before. What the shipper had read before that may
still reach the store, so whoever erases waits for `shipped_past` before the store is erased.
"""

import fcntl
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from auditor.domain.erasure import ErasureSelector
from auditor.domain.exchange import Exchange
from gateway.recording import codec, spool
from gateway.recording.spool import Frame, Segment


@dataclass(slots=True)
class SpoolFindings:
    """The selected records of a spool, by segment, and the selected files of its quarantine."""

    records: dict[Path, list[tuple[UUID, Frame]]] = field(default_factory=dict)
    quarantined: list[Path] = field(default_factory=list)
    unreadable: int = 0  #: files of the quarantine that hold no whole record

    @property
    def ids(self) -> set[UUID]:
        """The exchanges of the records."""
        return {exchange_id for each in self.records.values() for exchange_id, _ in each}

    @property
    def count(self) -> int:
        """The number of records and files."""
        return sum(map(len, self.records.values())) + len(self.quarantined)


def find_records(folder: Path, selector: ErasureSelector, ids: Collection[UUID]) -> SpoolFindings:
    """Find the records of exchanges that are selected, are among ``ids``, or were made from one of these."""
    findings = SpoolFindings()
    known = set(ids)
    for path in spool.segments(folder):
        try:
            matching = [
                (exchange.id, frame) for exchange, frame in _records(path) if _is_selected(exchange, selector, known)
            ]
        except FileNotFoundError:  # shipped and removed meanwhile
            continue
        if matching:
            findings.records[path] = matching
    for path in sorted((folder / "quarantine").glob("*.bin")):
        exchange = _decoded(path.read_bytes())
        if exchange is None:
            findings.unreadable += 1
        elif _is_selected(exchange, selector, known):
            findings.quarantined.append(path)
    return findings


def erase_records(findings: SpoolFindings) -> None:
    """Overwrite records in place, and remove files of the quarantine.

    Raises
    ------
    OSError
        One cannot be overwritten.
    """
    for path, records in findings.records.items():
        try:
            with Segment(path) as segment:
                for _, frame in records:
                    segment.erase(frame)
        except FileNotFoundError:  # shipped and removed meanwhile
            continue
    for path in findings.quarantined:
        path.unlink(missing_ok=True)


def shipped_past(folder: Path, findings: SpoolFindings) -> bool:
    """Return whether nothing that was read before it was overwritten can still reach the store."""
    return not _is_shipping(folder) or all(
        _is_past(path, records[-1][1].end) for path, records in findings.records.items()
    )


def _is_selected(exchange: Exchange, selector: ErasureSelector, known: set[UUID]) -> bool:
    return exchange.id in known or exchange.parent in known or selector.matches(exchange)


def _records(path: Path) -> Iterator[tuple[Exchange, Frame]]:
    with Segment(path) as segment:
        if not segment.is_segment:
            return
        data, salt = segment.read_whole(), segment.salt
    for part in spool.read_frames(data, salt, spool.HEAD_BYTES, finished=False):
        if isinstance(part, Frame) and (exchange := _decoded(part.payload)) is not None:
            yield exchange, part


def _decoded(payload: bytes) -> Exchange | None:
    try:
        return codec.decode(payload)
    except ValueError:
        return None


def _is_past(path: Path, end: int) -> bool:
    try:
        with Segment(path) as segment:
            return segment.shipped >= end
    except FileNotFoundError:
        return True


def _is_shipping(folder: Path) -> bool:
    try:
        lock = os.open(folder / "ship.lock", os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False
