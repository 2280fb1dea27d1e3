"""Remove what a crash leaves in PostgreSQL's data folder: processes that still run there, and a stale pid file.

`auditor.postgres.supervisor` does this before every start, as the server's user.
"""

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

from auditor.postgres.folder import replace_file

#: Seconds to wait first: a server whose supervisor died is stopping already, and most processes of a dead server end
#: at once.
_PATIENCE = 1.0


def clear(data: Path) -> None:
    """End the processes of the folder: a server without a supervisor, or processes without a server.

    Raises
    ------
    TimeoutError
        A process does not end; a second server beside it would destroy the data.
    """
    if _gone_within(data, _PATIENCE):
        return
    postmaster = _named_pid(data)
    if postmaster in processes_in(data):  # only the main process stops the server on SIGINT
        _send(signal.SIGINT, [postmaster])
        if _gone_within(data, 20.0):
            return
    for signum in (signal.SIGQUIT, signal.SIGKILL):
        _send(signum, processes_in(data))
        if _gone_within(data, 5.0):
            return
    raise TimeoutError(f"processes {processes_in(data)} still use {data} and cannot be ended")


def disown_pid_file(data: Path, parent: int) -> None:
    """Make a stale ``postmaster.pid`` harmless, while nothing runs in the folder.

    The file may name an unrelated living process, and then PostgreSQL would refuse to start. The file is not removed:
    the id of its parent replaces the first line. PostgreSQL never takes its parent for another server, and it still
    looks for processes attached to the shared memory that the other lines name.
    """
    pid_file = data / "postmaster.pid"
    try:
        lines = pid_file.read_text().splitlines()
    except FileNotFoundError:
        return
    replace_file(pid_file, "\n".join([str(parent), *lines[1:]]) + "\n")


def processes_in(data: Path) -> list[int]:
    """List PostgreSQL's processes of this data folder: those named postgres with it as their working directory.

    On systems other than Linux only the main process is found, by its command line. There PostgreSQL's own check of the
    shared memory prevents a second server.
    """
    if sys.platform != "linux":
        return _named_process(data)
    there = data.stat()
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and _works_in(entry, there)]


def _named_pid(data: Path) -> int:
    try:
        return int((data / "postmaster.pid").read_text().splitlines()[0])
    except (FileNotFoundError, IndexError, ValueError):
        return 0


def _named_process(data: Path) -> list[int]:
    pid = _named_pid(data)
    if not pid:
        return []
    listed = subprocess.run(["ps", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False)  # noqa: S603, S607 -- ps is on PATH
    return [pid] if "postgres" in listed.stdout and str(data) in listed.stdout else []


def _works_in(process: Path, folder: os.stat_result) -> bool:
    # The name excludes a shell that was opened in the folder.
    try:
        if (process / "comm").read_text().strip() != "postgres":
            return False
        there = (process / "cwd").stat()
    except OSError:  # it ended, or belongs to another user
        return False
    return stat.S_ISDIR(there.st_mode) and os.path.samestat(there, folder)


def _send(signum: signal.Signals, processes: list[int]) -> None:
    for process in processes:
        try:
            os.kill(process, signum)
        except ProcessLookupError:
            continue


def _gone_within(data: Path, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while processes_in(data):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
