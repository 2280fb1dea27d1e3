"""The spool: append-only segment files that hold captured exchanges until they are in the store.

Workers write (`SpoolWriter`) and the shipper reads (`read_frames`, `Segment`); they share nothing but this file format.
A record is in the spool when one ``write()`` has returned. It then survives the death of every process of the gateway
and of the database, but not a power cut, because a request never waits for fsync.

A segment is ``BIASSPL2``, a salt of 8 random bytes, the mark, and then frames: ``salt, length, CRC-32, unix
milliseconds, payload``. Nobody who sends a request or an answer knows the salt, so no bytes of a payload pass for a
frame, whatever happened to the frame that contains them. The mark is the position up to which the reader has shipped
the segment; it is overwritten in place, which needs no space on a full disk. The writer holds a lock on the segment
while it may still grow, so that a reader recognises a finished segment even if the writer died.
"""

import fcntl
import os
import secrets
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from gateway.primitives import FRAME, SALT_BYTES, checksum, frame_head

MAGIC = b"BIASSPL2"
_MARK = struct.Struct("<Q")
_MARK_AT = len(MAGIC) + SALT_BYTES
#: Bytes before the first frame.
HEAD_BYTES = _MARK_AT + _MARK.size
SUFFIX = ".segment"
#: A larger length is damage: content is limited to much less.
MAX_PAYLOAD = 64 << 20
#: The most pieces of memory that one call of the system writes.
_MOST_PIECES = os.sysconf("SC_IOV_MAX")
#: The first byte of a record that was erased: zeros of the same length follow, and the shipper skips them.
ERASED = b"\x00"


class SpoolWriter:
    """Appends records to its own segments.

    Parameters
    ----------
    folder
        The folder of the segments; it is created if it is missing.
    name
        Name that is unique among all writers that ever wrote there.
    segment_bytes
        A segment is finished when it has grown past this.

    Raises
    ------
    OSError
        `append` and `append_all` raise it if the records could not be written completely, or a record is too large to
        be read again. The segment is then unchanged.
    """

    def __init__(self, folder: Path, name: str, segment_bytes: int = 16 << 20) -> None:
        self._folder = folder
        self._name = name
        self._segment_bytes = segment_bytes
        self._count = 0
        self._size = 0
        self._fd = -1
        self._salt = b""

    def append(self, payload: bytes, unix_ms: int) -> int:
        """Write one record and return its size on disk in bytes."""
        return self.append_all(((payload, unix_ms),))

    def append_all(self, records: Sequence[tuple[bytes, int]]) -> int:
        """Write records, each with its unix milliseconds, by one ``writev()``. Return their size on disk in bytes."""
        if self._fd < 0:
            self._open()
        salt, size = self._salt, FRAME.size * len(records)
        pieces: list[bytes] = []
        for payload, unix_ms in records:
            if len(payload) > MAX_PAYLOAD:
                raise OSError(f"a record of {len(payload)} bytes, where {MAX_PAYLOAD} is the most")
            size += len(payload)
            pieces += frame_head(salt, payload, unix_ms), payload
        try:
            written = os.writev(self._fd, pieces if len(pieces) <= _MOST_PIECES else [b"".join(pieces)])
            if written != size:
                raise _incomplete(written, size)
        except OSError:
            self._remove_partial_records()
            raise
        self._size += size
        if self._size >= self._segment_bytes:
            self.finish_segment()
        return size

    def finish_segment(self) -> None:
        """Close the current segment, so that it can be removed once it has been shipped."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    close = finish_segment

    def _remove_partial_records(self) -> None:
        """Cut off what a full disk has stored of some records, so that the next one begins correctly."""
        try:
            os.ftruncate(self._fd, self._size)
        except OSError:  # the disk takes no change at all; the part stays at the end of this segment
            self.finish_segment()

    def _open(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._count += 1
        path = self._folder / f"{self._name}-{self._count:06d}{SUFFIX}"
        unnamed = path.with_suffix(".new")
        fd = os.open(unnamed, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            # Lock it before it gets its name: a reader would take an unlocked segment for finished, and remove it.
            fcntl.flock(fd, fcntl.LOCK_EX)
            salt = secrets.token_bytes(SALT_BYTES)
            _write_whole(fd, MAGIC + salt + _MARK.pack(HEAD_BYTES))
            unnamed.rename(path)
        except OSError:
            os.close(fd)
            unnamed.unlink(missing_ok=True)
            raise
        self._fd, self._size, self._salt = fd, HEAD_BYTES, salt


def _write_whole(fd: int, data: bytes) -> None:
    written = os.write(fd, data)
    if written != len(data):
        raise _incomplete(written, len(data))


def _incomplete(written: int, size: int) -> OSError:
    return OSError(f"wrote {written} of {size} bytes")


class Frame(NamedTuple):
    """One record, and the position of the next."""

    payload: bytes
    unix_ms: int
    end: int


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes ``[start, end)`` that are not a record, followed by a record or the end of a finished segment."""

    start: int
    end: int


def read_frames(data: bytes, salt: bytes, start: int = 0, *, finished: bool) -> Iterator[Frame | Damage]:
    """Iterate over the records in ``data`` from ``start``; ``salt`` is that of the segment.

    Stops before an incomplete record, unless the segment is ``finished``: then the rest is damage. After damage the
    iteration continues at the next valid record, so that one damaged record costs no other.
    """
    position = start
    while position < len(data):
        frame = _frame_at(data, salt, position)
        if frame is not None:
            yield frame
            position = frame.end
            continue
        if not finished and _may_still_grow(data, salt, position):
            return
        following = _next_sound(data, salt, position + 1)
        if following is None and not finished:
            return
        end = len(data) if following is None else following
        yield Damage(position, end)
        position = end


def _frame_at(data: bytes, salt: bytes, position: int) -> Frame | None:
    begin = position + FRAME.size
    if begin > len(data):
        return None
    record_salt, length, stored_checksum, unix_ms = FRAME.unpack_from(data, position)
    end = begin + length
    if record_salt != salt or length > MAX_PAYLOAD or end > len(data):
        return None
    payload = data[begin:end]
    return Frame(payload, unix_ms, end) if checksum(payload, unix_ms) == stored_checksum else None


def _may_still_grow(data: bytes, salt: bytes, position: int) -> bool:
    """Return whether an incomplete record begins here."""
    head = data[position : position + FRAME.size]
    if len(head) < FRAME.size:
        return salt.startswith(head[: len(salt)])
    record_salt, length, _, _ = FRAME.unpack(head)
    if record_salt != salt or length > MAX_PAYLOAD:
        return False
    return position + FRAME.size + int(length) > len(data)


def _next_sound(data: bytes, salt: bytes, position: int) -> int | None:
    while (position := data.find(salt, position)) >= 0:
        if _frame_at(data, salt, position) is not None:
            return position
        position += 1
    return None


class Segment:
    """A segment for its reader, with the position up to which it has been shipped."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        head = os.pread(self._fd, HEAD_BYTES, 0)
        #: Whether the file begins like a segment of this format.
        self.is_segment = len(head) == HEAD_BYTES and head.startswith(MAGIC)
        self.salt = head[len(MAGIC) : _MARK_AT]
        mark = _MARK.unpack_from(head, _MARK_AT)[0] if self.is_segment else 0
        # With a damaged mark the segment is shipped again from its beginning; rows with a known id are ignored.
        self.shipped = mark if HEAD_BYTES <= mark <= self.size() else HEAD_BYTES

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._fd)

    def finished(self) -> bool:
        """Return whether the segment can no longer grow: its writer has closed it, or died."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def read(self, limit: int) -> bytes:
        """Read at most ``limit`` bytes after the position that has been shipped."""
        return os.pread(self._fd, limit, self.shipped)

    def read_whole(self) -> bytes:
        """Read everything, also what has been shipped."""
        return os.pread(self._fd, self.size(), 0)

    def erase(self, frame: Frame) -> None:
        """Overwrite a record in place, which neither its writer nor the shipper notices.

        Raises
        ------
        OSError
            It cannot be overwritten.
        """
        payload = ERASED + bytes(len(frame.payload) - 1)
        fd = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            head = frame_head(self.salt, payload, frame.unix_ms)
            os.pwrite(fd, head + payload, frame.end - len(payload) - len(head))
            os.fsync(fd)
        finally:
            os.close(fd)

    def size(self) -> int:
        """Return the current size of the file in bytes."""
        return os.fstat(self._fd).st_size

    def mark(self, shipped: int) -> None:
        """Record that everything before ``shipped`` is in the store.

        Raises
        ------
        OSError
            It cannot be recorded on disk.
        """
        self.shipped = shipped
        fd = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.pwrite(fd, _MARK.pack(shipped), _MARK_AT)
        finally:
            os.close(fd)

    def remove(self) -> None:
        """Remove the segment, because all of it is in the store."""
        self.path.unlink(missing_ok=True)


def segments(folder: Path) -> list[Path]:
    """Return the segments, oldest name first. Only files, because opening a pipe would wait for its writer."""
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == SUFFIX and path.is_file())
    except FileNotFoundError:
        return []


@dataclass(frozen=True, slots=True)
class Backlog:
    """The part of the spool that is not yet in the store."""

    bytes: int
    oldest_ms: int | None  #: unix milliseconds of the oldest record


def backlog(folder: Path) -> Backlog:
    """Measure the spool from its files, which any process can do at any time."""
    size = 0
    oldest: int | None = None
    for path in segments(folder):
        try:
            with Segment(path) as segment:
                pending = segment.size() - segment.shipped
                if pending <= 0:
                    continue
                head = segment.read(FRAME.size)
                size += pending
                salt = segment.salt
        except OSError:  # shipped and removed meanwhile
            continue
        if len(head) == FRAME.size and head.startswith(salt):
            began = FRAME.unpack(head)[3]
            oldest = began if oldest is None else min(oldest, began)
    return Backlog(size, oldest)
