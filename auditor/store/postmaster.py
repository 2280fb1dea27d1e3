"""The PostgreSQL server as its keeper's child: started on a clean folder, watched, stopped.

`auditor.store.keeper` decides when; `auditor.store.pgdata` and `auditor.store.leftovers` prepare the folder.
"""

import logging
import os
import secrets
import signal
import socket
import subprocess
import time
from pathlib import Path

from auditor.store.binaries import Binaries
from auditor.store.leftovers import clear, disown_pid_file
from auditor.store.pgdata import server_environment, telling_line, write_settings
from auditor.store.server_account import act_as, end_with_parent
from auditor.store.server_home import ServerHome

#: Below the ports that Linux and macOS give to outgoing connections, which could be in our way at a restart.
_PORTS = range(20000, 30000)
#: How long another program may hold our port before we take another: long enough for one that happened on it.
_PORT_PATIENCE = 1.0
#: A fast shutdown writes out what is in memory; then it is asked to drop everything, which loses nothing committed.
_FAST, _IMMEDIATE = 60.0, 10.0

_log = logging.getLogger(__name__)


class Postmaster:
    """One server on one data folder; after its end it can be started again."""

    def __init__(self, home: ServerHome, binaries: Binaries, own_log: Path) -> None:
        self._home = home
        self._binaries = binaries
        self._own_log = own_log
        self._process: subprocess.Popen[bytes] | None = None
        self._began = 0.0
        self._own_log_size = 0
        self._status = 0

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        return self._process.pid if self._process else None

    def start(self, port: int | None) -> int:
        """Start on the port, or on another one if that is taken; give the port. It does not answer yet."""
        data, keeper = self._home.data, os.getpid()
        act_as(self._home.account, lambda: clear(data))
        act_as(self._home.account, lambda: self._prepare(keeper))
        port = _usable(port)
        account = self._home.account
        self._began = time.time()
        self._own_log_size = self._own_log.stat().st_size
        self._process = subprocess.Popen(  # noqa: S603 -- our own words
            [self._binaries.postgres, "-D", str(data), "-p", str(port), "-k", str(self._home.socket or "")],
            stdin=subprocess.DEVNULL,
            cwd="/",
            env=server_environment(),
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[] if account else None,
            preexec_fn=end_with_parent(signal.SIGINT),  # noqa: PLW1509 -- after the change of user, in one thread
            start_new_session=True,
        )
        return port

    def has_ended(self) -> bool:
        """Tell whether the process is gone; then it may be started again."""
        if self._process is not None and (status := self._process.poll()) is not None:
            self._status = status
            self._process = None
        return self._process is None

    def is_ready(self) -> bool:
        """Tell whether it takes connections, by its own word: no other process writes into this folder."""
        try:
            lines = (self._home.data / "postmaster.pid").read_text().splitlines()
        except OSError:
            return False
        return len(lines) > 7 and lines[0] == str(self.pid) and lines[7].strip() == "ready"

    def last_words(self) -> str:
        """Say how it ended and why, and which log says so: the last telling line since the start."""
        how = f"by signal {-self._status}" if self._status < 0 else f"with status {self._status}"
        early = self._own_log.read_bytes()[self._own_log_size :].decode(errors="replace")
        log = self._home.newest_log()
        if log is not None and log.stat().st_mtime >= self._began:
            late = log.read_text(errors="replace")
            return f"PostgreSQL ended {how}: {telling_line(late)} (see {log})"
        return f"PostgreSQL ended {how}: {telling_line(early)} (see {self._own_log})"

    def stop(self) -> None:
        """Stop it: at once, but with everything written out; give up waiting only after a long time."""
        if self._process is None:
            return
        for signum, patience in ((signal.SIGINT, _FAST), (signal.SIGQUIT, _IMMEDIATE), (signal.SIGKILL, None)):
            self._process.send_signal(signum)
            try:
                self._process.wait(patience)
            except subprocess.TimeoutExpired:
                _log.warning("PostgreSQL does not end on %s", signum.name)
            else:
                break
        self._process = None

    def _prepare(self, keeper: int) -> None:
        disown_pid_file(self._home.data, keeper)
        self._home.tidy()
        write_settings(self._home)


def _usable(port: int | None) -> int:
    """Keep a port that is free, or soon is; else choose one by chance."""
    deadline = time.monotonic() + _PORT_PATIENCE
    while port is not None and time.monotonic() < deadline:
        if _is_free(port):
            return port
        time.sleep(0.1)
    while True:
        port = secrets.choice(_PORTS)
        if _is_free(port):
            return port


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as PostgreSQL does
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
