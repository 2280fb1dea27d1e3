"""Named rows of 64-bit integers in one memory-mapped file, shared by the processes of a host.

Every process that opens the file sees the same rows. Operations of more than one load or store hold the row's lock,
which the kernel releases when a process is killed.

The file grows by extents of equal size, which are never moved, so a row keeps its address. An
extent is a sequence of slots: the length of a name (0: free), the name, the integers. The first slot is the header.
"""

import errno
import fcntl
import logging
import mmap
import os
import struct
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from uuid import UUID, uuid4

log = logging.getLogger(__name__)

_HEADER = struct.Struct("=8sq16s")  # magic, width, id
_MAGIC = b"biasrow1"
_NAME_BYTES = 64
_HEAD_BYTES = 8 + _NAME_BYTES
#: A multiple of every kernel's page size, because each extent is mapped separately.
_EXTENT = 1 << 16


class _Row:
    """A row and its lock, which is the byte of the file at which the row begins. A private row needs no lock."""

    __slots__ = ("_at", "_fd", "cells")

    def __init__(self, cells: memoryview, fd: int | None, at: int) -> None:
        self.cells = cells
        self._fd = fd
        self._at = at

    def __enter__(self) -> memoryview:
        if self._fd is not None:
            fcntl.lockf(self._fd, fcntl.LOCK_EX, 1, self._at)
        return self.cells

    def __exit__(self, *_: object) -> None:
        if self._fd is not None:
            fcntl.lockf(self._fd, fcntl.LOCK_UN, 1, self._at)


class SharedTable:
    """The rows of one file.

    A process opens a file once: kernel locks belong to the process, and closing one descriptor releases all of them.

    Parameters
    ----------
    path
        Created if it is missing or has another layout. If the disk has no space for it or for a row, this is logged and
        the affected rows are private to the process, so that requests are served with a full disk.
    width
        Integers in a row.
    """

    id: UUID  #: the id of the file; it changes when the file is lost and created again

    def __init__(self, path: Path, width: int) -> None:
        self._path = path
        self._width = width
        self._stride = _HEAD_BYTES + 8 * width
        self._per_extent = _EXTENT // self._stride
        if width < 1 or not self._per_extent:
            raise ValueError(f"a row has 1 to {(_EXTENT - _HEAD_BYTES) // 8} integers")
        self._extents: list[memoryview] = []
        self._rows: dict[str, _Row] = {}
        self._next = 1  # the first slot that has not been read as taken
        self._logged = False
        self._fd: int | None = None
        try:
            self._open()
        except OSError as error:
            self.close()
            self.id = uuid4()
            self._log_once(error)

    def row(self, name: str) -> memoryview:
        """Return a row, which is created with zeros if it does not exist.

        Parameters
        ----------
        name
            1 to 64 bytes of UTF-8.
        """
        row = self._rows.get(name)
        return (self._find(name) if row is None else row).cells

    def locked(self, name: str) -> AbstractContextManager[memoryview]:
        """Lock a row for a moment: no ``await`` inside, and no other row at the same time."""
        row = self._rows.get(name)
        return self._find(name) if row is None else row

    def rows(self) -> Iterator[tuple[str, memoryview]]:
        """Iterate over the rows that exist now."""
        if self._fd is not None:
            with self._header():
                self._read_slots()
        yield from [(name, row.cells) for name, row in self._rows.items()]

    def close(self) -> None:
        """Close the file. Rows in use can still be read and written, but not locked."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _open(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with self._header():
            if not self._is_made():
                self._make()
            self.id = UUID(bytes=_HEADER.unpack(os.pread(self._fd, _HEADER.size, 0))[2])

    def _header(self) -> _Row:
        """Lock the header, which protects creation, growth and new rows of the file."""
        return _Row(memoryview(b""), self._fd, 0)

    def _is_made(self) -> bool:
        assert self._fd is not None
        if os.fstat(self._fd).st_size < _EXTENT:
            return False
        magic, width, _ = _HEADER.unpack(os.pread(self._fd, _HEADER.size, 0))
        return (magic, width) == (_MAGIC, self._width)

    def _make(self) -> None:
        """Overwrite the file. It is not truncated first, because that would kill a process that has mapped it."""
        assert self._fd is not None
        extents = -(-os.fstat(self._fd).st_size // _EXTENT)
        _allocate(self._fd, 0, max(extents, 1) * _EXTENT)
        # The magic is written last: without it the next process creates the file again.
        os.pwrite(self._fd, _HEADER.pack(_MAGIC, self._width, uuid4().bytes), 0)

    def _find(self, name: str) -> _Row:
        encoded = name.encode()
        if not 0 < len(encoded) <= _NAME_BYTES:
            raise ValueError(f"{name!r}: the name of a row has 1 to {_NAME_BYTES} bytes")
        if self._fd is not None:
            try:
                with self._header():
                    self._read_slots()
                    if name not in self._rows:
                        self._add(encoded)
            except OSError as error:
                self._log_once(error)
        if name not in self._rows:
            self._rows[name] = _Row(memoryview(bytearray(8 * self._width)).cast("q"), None, 0)
        return self._rows[name]

    def _read_slots(self) -> None:
        """Read the rows that were added since the last call."""
        while (slot := self._slot(self._next)) is not None and (length := slot[:8].cast("q")[0]):
            name = bytes(slot[8 : 8 + length]).decode(errors="replace")
            extent, place = divmod(self._next, self._per_extent)
            row = _Row(slot[_HEAD_BYTES:].cast("q"), self._fd, extent * _EXTENT + place * self._stride)
            self._rows.setdefault(name, row)
            self._next += 1

    def _add(self, name: bytes) -> None:
        if (slot := self._slot(self._next)) is None:
            assert self._fd is not None
            _allocate(self._fd, len(self._extents) * _EXTENT, _EXTENT)
            slot = self._slot(self._next)
            assert slot is not None
        slot[8 : 8 + len(name)] = name
        # Until its length is set the slot is free, so an incomplete slot of a killed process is overwritten.
        slot[:8].cast("q")[0] = len(name)
        self._read_slots()

    def _slot(self, number: int) -> memoryview | None:
        """Return a slot, or None if the file has not grown to it."""
        assert self._fd is not None
        extent, place = divmod(number, self._per_extent)
        while len(self._extents) <= extent:
            start = len(self._extents) * _EXTENT
            if os.fstat(self._fd).st_size < start + _EXTENT:
                return None
            self._extents.append(memoryview(mmap.mmap(self._fd, _EXTENT, offset=start)))
        return self._extents[extent][place * self._stride : (place + 1) * self._stride]

    def _log_once(self, error: OSError) -> None:
        if not self._logged:
            log.error("%s: %s; each process now counts for itself what this file would share", self._path, error)
            self._logged = True


def _allocate(fd: int, start: int, size: int) -> None:
    """Write zeros: on a full disk, writing to an unallocated block would kill the process."""
    if os.pwrite(fd, bytes(size), start) != size:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
