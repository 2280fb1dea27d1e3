"""What an unclean death leaves in PostgreSQL's data folder: processes that still run there, and a stale pid file.

Called by `auditor.store.postmaster` before every start, as the server's user.
"""

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

from auditor.store.embedded_folder import replace_file

#: A server whose keeper died is stopping already; processes whose server died end by themselves, most of them at once.
_PATIENCE = 1.0


def clear(data: Path) -> None:
    """End what still runs in the folder: a server that lost its keeper, or processes that lost their server.

    Raises
    ------
    TimeoutError
        Something cannot be ended; a second server beside it would destroy the data.
    """
    if _gone_within(data, _PATIENCE):
        return
    postmaster = _named_pid(data)
    if postmaster in processes_in(data):  # alone it may be asked: without it, SIGINT means other things to the others
        _send(signal.SIGINT, [postmaster])
        if _gone_within(data, 20.0):
            return
    for signum in (signal.SIGQUIT, signal.SIGKILL):
        _send(signum, processes_in(data))
        if _gone_within(data, 5.0):
            return
    raise TimeoutError(f"processes {processes_in(data)} still use {data} and cannot be ended")


def disown_pid_file(data: Path, parent: int) -> None:
    """Make a stale ``postmaster.pid`` harmless, where nothing runs in the folder; whom it names does not matter.

    The file may name a process that lives and has nothing to do with us, and PostgreSQL would refuse to start. It is
    not removed: our own id takes the place of the first line. PostgreSQL never mistakes its parent for another server,
    and it still looks for processes attached to the shared memory that the other lines name.
    """
    pid_file = data / "postmaster.pid"
    try:
        lines = pid_file.read_text().splitlines()
    except FileNotFoundError:
        return
    replace_file(pid_file, "\n".join([str(parent), *lines[1:]]) + "\n")


def processes_in(data: Path) -> list[int]:
    """List PostgreSQL's processes of this data folder: those named postgres that work in it.

    Elsewhere than on Linux only its main process is found, by its command line; there PostgreSQL's own look at the
    shared memory keeps a new server from starting beside the others.
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
    told = subprocess.run(["ps", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False)  # noqa: S603, S607 -- ps is where the system has it
    return [pid] if "postgres" in told.stdout and str(data) in told.stdout else []


def _works_in(process: Path, folder: os.stat_result) -> bool:
    # The name keeps a person's shell, standing in the folder, out of it.
    try:
        if (process / "comm").read_text().strip() != "postgres":
            return False
        there = (process / "cwd").stat()
    except OSError:  # it ended, or belongs to somebody else
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
