"""Counters that outlive their process: 64-bit integers in a memory-mapped file, one file per process.

An addition costs a dictionary look-up and an integer addition. Any process can add up all files (`read_all`), so each
worker can return the metrics of the whole gateway. A restarted process continues the counts of its predecessor.
"""

import json
import logging
import mmap
import os
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

log = logging.getLogger(__name__)

#: Distinct series one process can count. Labels come from the configuration alone, so traffic never meets this bound.
CAPACITY = 1 << 15
_VALUES_BYTES = CAPACITY * 8
#: Space for the names after the values: one per line, in the order of the values; unused bytes are zero.
_NAMES_BYTES = 3 << 20
_FILE_BYTES = _VALUES_BYTES + _NAMES_BYTES
#: The cell for series without space. It has no name, so it is not exported.
_OVERFLOW = CAPACITY - 1
_CHUNK = 1 << 16
SUFFIX = ".counters"

Key = tuple[str, ...]  #: a series' name and its label values


class Counters:
    """The counters of one process."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._map = _map_file(path)
        #: The counts, each at the `place` of its series.
        self.values = memoryview(self._map)[:_VALUES_BYTES].cast("q")
        self._map.seek(_VALUES_BYTES)
        names = _read_names(self._map)
        self._index = {key: index for index, key in enumerate(_keys(names))}
        # An incomplete last line, left by a process that died, is overwritten.
        self._names_end = _VALUES_BYTES + names.rfind(b"\n") + 1
        self._logged = False

    def add(self, key: Key, amount: int = 1) -> None:
        """Add to a series, which begins at 0."""
        try:
            self.values[self._index[key]] += amount
        except KeyError:
            self.values[self._declare(key)] += amount

    def place(self, key: Key) -> int:
        """Return the index of a series in `values`, for a caller that counts it often."""
        index = self._index.get(key)
        return self._declare(key) if index is None else index

    def set(self, key: Key, value: int) -> None:
        """Set a series that can also fall."""
        self.values[self.place(key)] = value

    def get(self, key: Key) -> int:
        """Read a series of this process."""
        index = self._index.get(key)
        return 0 if index is None else self.values[index]

    def close(self) -> None:
        """Unmap the file; what was counted stays in it."""
        self.values.release()
        self._map.close()

    def _declare(self, key: Key) -> int:
        index = len(self._index)
        line = json.dumps(key).encode() + b"\n"
        end = self._names_end + len(line)
        if index >= _OVERFLOW or end > _FILE_BYTES:
            if not self._logged:
                log.error(
                    "there is no room for more than %d series in one process; further series are not exported", index
                )
                self._logged = True
            return _OVERFLOW
        self._map[self._names_end : end] = line
        self._names_end = end
        self._index[key] = index
        return index


def _map_file(path: Path) -> mmap.mmap:
    """Map a file with all blocks allocated: on a full disk, writing to an unallocated block would kill the process."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if os.fstat(fd).st_size != _FILE_BYTES:
            os.ftruncate(fd, 0)
            if os.pwrite(fd, bytes(_FILE_BYTES), 0) != _FILE_BYTES:
                raise OSError(f"there is no room for {_FILE_BYTES} bytes")  # noqa: TRY301 -- as a write that fails
        return mmap.mmap(fd, _FILE_BYTES)
    except OSError as error:
        log.error("%s: %s; the counts of this process are not exported", path, error)  # noqa: TRY400 -- one line says it
        return mmap.mmap(-1, _FILE_BYTES)
    finally:
        os.close(fd)


def read_all(folder: Path) -> Counter[Key]:
    """Add up the counters of all processes that count in ``folder``."""
    total: Counter[Key] = Counter()
    for path in folder.glob(f"*{SUFFIX}"):
        try:
            with path.open("rb") as file:
                values, names = file.read(_VALUES_BYTES), _read_names(file)
        except OSError:  # gone meanwhile
            continue
        if len(values) < _VALUES_BYTES:  # being made
            continue
        counts = memoryview(values).cast("q")
        for index, key in enumerate(_keys(names)):
            total[key] += counts[index]
    return total


def _read_names(file: BinaryIO | mmap.mmap) -> bytes:
    """Read from here to the first byte that has not been written."""
    names = b""
    while chunk := file.read(_CHUNK):
        names += chunk
        if chunk.endswith(b"\0"):
            break
    return names.partition(b"\0")[0]


def _keys(names: bytes) -> list[Key]:
    whole = names[: names.rfind(b"\n") + 1]
    return [_key(line) for line in whole.splitlines()]


@lru_cache(maxsize=CAPACITY)  # all processes have much the same names, and are read again every few seconds
def _key(line: bytes) -> Key:
    return tuple(json.loads(line))
