"""Counters that outlive the process that counts: plain 64-bit integers in a memory-mapped file, one file a process.

Adding costs a dictionary look-up and an integer addition. Any process of the gateway can read all files and add them
up (`read_all`), so each worker can answer for the whole gateway. A process that is started again in the same slot
goes on counting where the last one stopped.
"""

import json
import logging
import mmap
import os
from collections import Counter
from pathlib import Path

log = logging.getLogger(__name__)

#: Distinct series one process can count. Labels come from the configuration alone, so traffic never meets this bound.
CAPACITY = 1 << 16
_VALUES_BYTES = CAPACITY * 8
SUFFIX = ".counters"

Key = tuple[str, ...]  #: a series' name and its label values


class Counters:
    """The counters of one process."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        if os.fstat(self._fd).st_size < _VALUES_BYTES:
            os.ftruncate(self._fd, _VALUES_BYTES)
        self._map = mmap.mmap(self._fd, _VALUES_BYTES)
        self._values = memoryview(self._map).cast("q")
        self._index = {key: index for index, key in enumerate(_read_keys(path))}

    def add(self, key: Key, amount: int = 1) -> None:
        """Add to a series, which begins at 0."""
        index = self._index.get(key)
        if index is None:
            index = self._declare(key)
        self._values[index] += amount

    def set(self, key: Key, value: int) -> None:
        """Set a series that can also fall."""
        index = self._index.get(key)
        if index is None:
            index = self._declare(key)
        self._values[index] = value

    def get(self, key: Key) -> int:
        """Read a series of this process."""
        index = self._index.get(key)
        return 0 if index is None else self._values[index]

    def close(self) -> None:
        """Unmap the file; what was counted stays in it."""
        self._values.release()
        self._map.close()
        os.close(self._fd)

    def _declare(self, key: Key) -> int:
        index = len(self._index)
        if index == CAPACITY:
            log.error("more than %d series in one process; what does not fit is counted together", CAPACITY - 1)
        if index >= CAPACITY:
            return CAPACITY - 1
        os.write(self._fd, json.dumps(key).encode() + b"\n")
        self._index[key] = index
        return index


def read_all(folder: Path) -> Counter[Key]:
    """Add up the counters of all processes that count in ``folder``."""
    total: Counter[Key] = Counter()
    for path in folder.glob(f"*{SUFFIX}"):
        with path.open("rb") as file:
            values = memoryview(file.read(_VALUES_BYTES)).cast("q")
            for index, key in enumerate(_keys(file.read())):
                total[key] += values[index]
    return total


def _read_keys(path: Path) -> list[Key]:
    with path.open("rb") as file:
        file.seek(_VALUES_BYTES)
        return _keys(file.read())


def _keys(lines: bytes) -> list[Key]:
    whole = lines[: lines.rfind(b"\n") + 1]
    return [tuple(json.loads(line)) for line in whole.splitlines()]
