"""The quarantine of the spool: bytes that cannot be shipped are kept here, where a person can inspect them.

It has a limit. When it is reached, the oldest files are removed and counted.
"""

import logging
from collections import deque
from pathlib import Path

from gateway.recording.counters import Counters

log = logging.getLogger(__name__)

#: A file counts as at least this many bytes, so that the number of files is limited too.
_FILE_BYTES = 4096


class Quarantine:
    """The quarantine folder of one spool. One process at a time uses it.

    Parameters
    ----------
    folder
        Folder, which is created when something is kept.
    counters
        Counters of the bytes that are kept, and of those that are removed again.
    max_bytes
        The limit. Something larger is not kept at all.
    """

    def __init__(self, folder: Path, counters: Counters, max_bytes: int) -> None:
        self._folder = folder
        self._counters = counters
        self._max_bytes = max_bytes
        self._files = deque(_oldest_first(folder))
        self._total = sum(_on_disk(size) for _, size in self._files)

    def keep(self, name: str, data: bytes) -> str | None:
        """Keep bytes under a name. Return what became of them, for the log; None if they were kept before.

        Raises
        ------
        OSError
            They cannot be written.
        """
        path = self._folder / name
        if path.exists():  # written by a shipper that died before it could mark them
            return None
        if not self._make_room(len(data)):
            return self._drop(len(data))
        self._folder.mkdir(exist_ok=True, mode=0o700)
        unnamed = path.with_suffix(".new")
        unnamed.write_bytes(data)
        unnamed.replace(path)
        return self._kept(path, len(data))

    def move(self, path: Path, size: int) -> str:
        """Move a file here. Return what became of it, for the log.

        Raises
        ------
        OSError
            It cannot be moved.
        """
        if not self._make_room(size):
            path.unlink(missing_ok=True)
            return self._drop(size)
        self._folder.mkdir(exist_ok=True, mode=0o700)
        return self._kept(path.rename(self._folder / path.name), size)

    def _make_room(self, size: int) -> bool:
        if _on_disk(size) > self._max_bytes:
            return False
        while self._files and self._total + _on_disk(size) > self._max_bytes:
            path, kept = self._files[0]
            path.unlink(missing_ok=True)
            self._files.popleft()
            self._total -= _on_disk(kept)
            self._counters.add(("biasmeter_spool_quarantine_dropped_bytes",), kept)
            log.warning("%s: removed, because the quarantine has reached its limit (%d bytes)", path, self._max_bytes)
        return True

    def _kept(self, path: Path, size: int) -> str:
        self._files.append((path, size))
        self._total += _on_disk(size)
        self._counters.add(("biasmeter_spool_quarantined_bytes",), size)
        return f"{size} bytes set aside in {path}"

    def _drop(self, size: int) -> str:
        self._counters.add(("biasmeter_spool_quarantine_dropped_bytes",), size)
        return f"{size} bytes dropped, because the quarantine takes at most {self._max_bytes}"


def _on_disk(size: int) -> int:
    return max(size, _FILE_BYTES)


def _oldest_first(folder: Path) -> list[tuple[Path, int]]:
    try:
        files = [(path.stat(), path) for path in folder.iterdir() if path.is_file()]
    except OSError:  # there is none yet
        return []
    return [(path, stat.st_size) for stat, path in sorted(files, key=lambda each: (each[0].st_mtime_ns, each[1].name))]
