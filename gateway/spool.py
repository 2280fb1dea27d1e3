"""The spool: append-only segment files that hold captured exchanges until they are in the store.

A worker writes (`SpoolWriter`), the shipper reads (`read_frames`, `Segment`); they meet in this file format and in
nothing else. A record is in the spool when one ``write()`` has returned: it then survives the death of every process
of the gateway and of the database, though not a power cut (there is no fsync on the way of a request).

A segment is ``TILTSPL1`` and then frames: ``marker, length, CRC-32, unix milliseconds, payload``. Its writer holds a
lock on it for as long as it may still grow, so that a reader can tell a finished segment from one in use, whatever
became of the writer.
"""

import fcntl
import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

MAGIC = b"TILTSPL1"
_MARKER = b"\xf5\x54\x58\xfa"
_FRAME = struct.Struct("<4sIIQ")
_HEAD = struct.Struct("<IQ")
SUFFIX = ".segment"
#: A record larger than this is damage, not data: content is capped long before.
MAX_PAYLOAD = 64 << 20


class SpoolWriter:
    """Appends records to segments of its own.

    Parameters
    ----------
    folder
        Where segments live; made if it is missing.
    name
        Unique among all writers that ever wrote there.
    segment_bytes
        A segment is finished when it has grown past this.

    Raises
    ------
    OSError
        From `append`, when the record could not be written whole, or is too large to be read again; the segment is
        as it was before.
    """

    def __init__(self, folder: Path, name: str, segment_bytes: int = 16 << 20) -> None:
        self._folder = folder
        self._name = name
        self._segment_bytes = segment_bytes
        self._count = 0
        self._size = 0
        self._fd = -1

    def append(self, payload: bytes, unix_ms: int) -> int:
        """Write one record; give its size on disk in bytes."""
        if len(payload) > MAX_PAYLOAD:
            raise OSError(f"a record of {len(payload)} bytes, where {MAX_PAYLOAD} is the most")
        if self._fd < 0:
            self._open()
        frame = _FRAME.pack(_MARKER, len(payload), _checksum(payload, unix_ms), unix_ms) + payload
        try:
            _write_whole(self._fd, frame)
        except OSError:
            # A full disk may have taken a part; the next record must not begin inside this one.
            os.ftruncate(self._fd, self._size)
            raise
        self._size += len(frame)
        if self._size >= self._segment_bytes:
            self.finish_segment()
        return len(frame)

    def finish_segment(self) -> None:
        """Let the current segment go, so that it can be removed once it has been shipped."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    close = finish_segment

    def _open(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._count += 1
        path = self._folder / f"{self._name}-{self._count:06d}{SUFFIX}"
        unnamed = path.with_suffix(".new")
        fd = os.open(unnamed, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            # Locked before it has its name: a reader that sees it unlocked may take it for finished and remove it.
            fcntl.flock(fd, fcntl.LOCK_EX)
            _write_whole(fd, MAGIC)
            unnamed.rename(path)
        except OSError:
            os.close(fd)
            unnamed.unlink(missing_ok=True)
            raise
        self._fd, self._size = fd, len(MAGIC)


def _write_whole(fd: int, data: bytes) -> None:
    written = os.write(fd, data)
    if written != len(data):
        raise OSError(f"wrote {written} of {len(data)} bytes")


@dataclass(frozen=True, slots=True)
class Frame:
    """One record, and where the next begins."""

    payload: bytes
    unix_ms: int
    end: int


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes ``[start, end)`` that are no record, followed by one (or by the end of a finished segment)."""

    start: int
    end: int


def read_frames(data: bytes, start: int = 0, *, finished: bool) -> Iterator[Frame | Damage]:
    """Walk the records in ``data`` from ``start``.

    Stops before a record that is not whole yet, unless the segment is ``finished``: then what is left is damage. After
    damage the walk goes on at the next marker that begins a sound record, so that one torn record costs no other.
    """
    position = start
    while position < len(data):
        frame = _frame_at(data, position)
        if frame is not None:
            yield frame
            position = frame.end
            continue
        if not finished and _may_still_grow(data, position):
            return
        following = _next_sound(data, position + 1)
        if following is None and not finished:
            return
        end = len(data) if following is None else following
        yield Damage(position, end)
        position = end


def _checksum(payload: bytes, unix_ms: int) -> int:
    # Over the head as well: zeros, which a power cut leaves in a file, must not pass for an empty record.
    return zlib.crc32(payload, zlib.crc32(_HEAD.pack(len(payload), unix_ms)))


def _frame_at(data: bytes, position: int) -> Frame | None:
    head = data[position : position + _FRAME.size]
    if len(head) < _FRAME.size:
        return None
    marker, length, checksum, unix_ms = _FRAME.unpack(head)
    end = position + _FRAME.size + length
    if marker != _MARKER or length > MAX_PAYLOAD or end > len(data):
        return None
    payload = data[position + _FRAME.size : end]
    return Frame(payload, unix_ms, end) if _checksum(payload, unix_ms) == checksum else None


def _may_still_grow(data: bytes, position: int) -> bool:
    """Say whether a record begins here of which the end is not there yet.

    Its payload may hold what looks like records: an answer of a deployment may be anything.
    """
    head = data[position : position + _FRAME.size]
    if len(head) < _FRAME.size:
        return _MARKER.startswith(head[: len(_MARKER)])
    marker, length, _, _ = _FRAME.unpack(head)
    if marker != _MARKER or length > MAX_PAYLOAD:
        return False
    return position + _FRAME.size + int(length) > len(data)


def _next_sound(data: bytes, position: int) -> int | None:
    while (position := data.find(_MARKER, position)) >= 0:
        if _frame_at(data, position) is not None:
            return position
        position += 1
    return None


class Segment:
    """A segment as its reader sees it, with the place up to which it has been shipped."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        mark = _read_mark(path)
        # A mark beyond the end is none of this file's.
        self.shipped = mark if len(MAGIC) <= mark <= self.size() else len(MAGIC)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._fd)

    def finished(self) -> bool:
        """Whether nothing can be appended any more: its writer let it go, or died."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def has_magic(self) -> bool:
        """Whether the file says that it is a segment of this format."""
        return os.pread(self._fd, len(MAGIC), 0) == MAGIC

    def read(self, limit: int) -> bytes:
        """Read at most ``limit`` bytes of what has not been shipped."""
        return os.pread(self._fd, limit, self.shipped)

    def size(self) -> int:
        """Bytes in the file now."""
        return os.fstat(self._fd).st_size

    def mark(self, shipped: int) -> None:
        """Remember, across restarts, that everything before ``shipped`` is in the store."""
        self.shipped = shipped
        mark = _mark_path(self.path)
        unnamed = mark.with_suffix(".mark.new")
        unnamed.write_text(str(shipped), encoding="ascii")
        unnamed.replace(mark)

    def remove(self) -> None:
        """Remove the segment: all of it is in the store."""
        self.path.unlink(missing_ok=True)
        _mark_path(self.path).unlink(missing_ok=True)


def _mark_path(path: Path) -> Path:
    return path.with_suffix(".mark")


def _read_mark(path: Path) -> int:
    try:
        return int(_mark_path(path).read_text(encoding="ascii"))
    except (OSError, ValueError):
        # Without the mark the segment is shipped again from its beginning: rows are idempotent by id.
        return 0


def segments(folder: Path) -> list[Path]:
    """List the segments, oldest name first. Only files: opening a pipe would wait for its writer."""
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == SUFFIX and path.is_file())
    except FileNotFoundError:
        return []


@dataclass(frozen=True, slots=True)
class Backlog:
    """What is in the spool and not yet in the store."""

    bytes: int
    oldest_ms: int | None  #: unix milliseconds of the oldest record


def backlog(folder: Path) -> Backlog:
    """Measure the spool from the files alone, so that any process can, and none has to be alive for it."""
    size = 0
    oldest: int | None = None
    for path in segments(folder):
        try:
            with Segment(path) as segment:
                pending = segment.size() - segment.shipped
                if pending <= 0:
                    continue
                head = segment.read(_FRAME.size)
                size += pending
        except OSError:  # shipped and removed meanwhile
            continue
        if len(head) == _FRAME.size and head.startswith(_MARKER):
            began = _FRAME.unpack(head)[3]
            oldest = began if oldest is None else min(oldest, began)
    return Backlog(size, oldest)
