"""Start, watch and stop the PostgreSQL server as a child process.

``supervisor`` decides when; ``pgdata`` and ``leftovers`` prepare the folder.
"""

import logging
import os
import secrets
import signal
import socket
import subprocess
import time
from pathlib import Path

from auditor.postgres.binaries import Binaries
from auditor.postgres.home import ServerHome, act_as, end_with_parent
from auditor.postgres.leftovers import clear, disown_pid_file
from auditor.postgres.pgdata import error_line, server_environment, write_settings

#: Below the ports that Linux and macOS use for outgoing connections, which could take the port before a restart.
_PORTS = range(20000, 30000)
#: Seconds to wait for a port that another program holds, before another port is taken.
_PORT_PATIENCE = 1.0
#: Seconds for a fast shutdown, which writes out what is in memory, and then for an immediate one, which loses nothing
#: committed.
_FAST, _IMMEDIATE = 60.0, 10.0

_log = logging.getLogger(__name__)


class Postmaster:
    """One server on one data folder; it can be started again after it ended."""

    def __init__(self, home: ServerHome, binaries: Binaries, supervisor_log: Path) -> None:
        self._home = home
        self._binaries = binaries
        self._supervisor_log = supervisor_log
        self._process: subprocess.Popen[bytes] | None = None
        self._began = 0.0
        self._supervisor_log_size = 0
        self._status = 0

    @property
    def pid(self) -> int | None:
        """Process id, or None while it does not run."""
        return self._process.pid if self._process else None

    def start(self, port: int | None) -> int:
        """Start on the port, or on another one if that is taken, and return the port. It does not answer yet."""
        data, supervisor = self._home.data, os.getpid()
        act_as(self._home.account, lambda: clear(data))
        act_as(self._home.account, lambda: self._prepare(supervisor))
        port = _usable(port)
        account = self._home.account
        self._began = time.time()
        self._supervisor_log_size = self._supervisor_log.stat().st_size
        self._process = subprocess.Popen(  # noqa: S603 -- fixed arguments
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
        """Return whether the process has ended; then it may be started again."""
        if self._process is not None and (status := self._process.poll()) is not None:
            self._status = status
            self._process = None
        return self._process is None

    def is_ready(self) -> bool:
        """Return whether the server reports in its pid file that it takes connections."""
        try:
            lines = (self._home.data / "postmaster.pid").read_text().splitlines()
        except OSError:
            return False
        return len(lines) > 7 and lines[0] == str(self.pid) and lines[7].strip() == "ready"

    def end_reason(self) -> str:
        """Return how and why the server ended, and the log with the error."""
        how = f"by signal {-self._status}" if self._status < 0 else f"with status {self._status}"
        early = self._supervisor_log.read_bytes()[self._supervisor_log_size :].decode(errors="replace")
        log = self._home.newest_log()
        if log is not None and log.stat().st_mtime >= self._began:
            late = log.read_text(errors="replace")
            return f"PostgreSQL ended {how}: {error_line(late)} (see {log})"
        return f"PostgreSQL ended {how}: {error_line(early)} (see {self._supervisor_log})"

    def stop(self) -> None:
        """Stop the server with everything written out; after a long wait, kill it."""
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

    def _prepare(self, supervisor: int) -> None:
        disown_pid_file(self._home.data, supervisor)
        self._home.tidy()
        write_settings(self._home)


def _usable(port: int | None) -> int:
    """Return the port if it is free or soon is, else a random free one."""
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
