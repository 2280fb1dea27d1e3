"""Run PostgreSQL as a child process for as long as anybody uses the store.

``python -m auditor.postgres.supervisor DATA_DIR``, started by ``embedded``; it detaches itself. There is one for each
data folder. It starts PostgreSQL, starts it again if it dies, and stops it when the last user is gone. Users hold a
lock that the kernel releases however they end. If the supervisor itself is killed, the kernel stops PostgreSQL (on
Linux), and the users start another supervisor, with the same port and password.

It has one thread and imports the standard library only, because it forks and should cost little.
"""

import dataclasses
import logging
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from auditor.errors import StoreUnavailable
from auditor.postgres import pgdata
from auditor.postgres.binaries import Binaries, choose_binaries, find_binaries, make_reachable
from auditor.postgres.folder import (
    Failure,
    State,
    StoreFolder,
    is_same_file,
    let_others_hold,
    nobody_else_holds,
    replace_file,
    take_lock,
)
from auditor.postgres.home import SHARED, ServerHome, act_as, end_with_parent, find_home
from auditor.postgres.leftovers import clear, disown_pid_file

#: Exit status: another supervisor runs in this folder.
ANOTHER = 3

#: Below the ports that Linux and macOS use for outgoing connections, which could take the port before a restart.
_PORTS = range(20000, 30000)
#: Seconds to wait for a port that another program holds, before another port is taken.
_PORT_PATIENCE = 1.0
#: Seconds for a fast shutdown, which writes out what is in memory, and then for an immediate one, which loses nothing
#: committed.
_FAST, _IMMEDIATE = 60.0, 10.0
#: Seconds that the server outlives its last user, so that the next command finds it running.
_GRACE = 2.0
_POLL = 0.5
_POLL_STARTING = 0.05
_LONGEST_PAUSE = 10.0
_PRUNE_EVERY = 3600.0
#: Seconds after which a server counts as stable: its next end is a first failure again, and it is restarted at once.
_WELL_AFTER = 30.0
_LOG_BYTES = 1 << 20

_log = logging.getLogger("supervisor")


class _Postmaster:
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
            env=pgdata.server_environment(),
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
            return f"PostgreSQL ended {how}: {pgdata.error_line(late)} (see {log})"
        return f"PostgreSQL ended {how}: {pgdata.error_line(early)} (see {self._supervisor_log})"

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
        pgdata.write_settings(self._home)


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


class PostgresSupervisor:
    """Run one server for the users of one folder: it decides when the server starts and stops."""

    def __init__(self, folder: StoreFolder, lock: int, state: State) -> None:
        self._folder = folder
        self._lock = lock
        self._state = state
        self._users = os.open(folder.users_lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._last_used = time.monotonic()
        self._retry_at = 0.0
        self._ready_at = 0.0
        self._prune_at = time.monotonic() + _PRUNE_EVERY
        self._leaving = False
        self._wake = _signals_as_bytes()

    def leave_when_unused(self, *_: object) -> None:
        """Skip the grace period, on SIGTERM. A store in use keeps running: its users would start it again anyway."""
        self._leaving = True

    def run(self) -> None:
        """Run the server until nobody uses it."""
        home, server = self._prepare()
        while not self._is_unused():
            if not server.has_ended():
                self._watch(home, server)
            elif self._state.phase in {"starting", "ready"}:
                self._failed(server.end_reason())
            elif time.monotonic() >= self._retry_at:
                self._start(server)
            self._rest(_POLL_STARTING if self._state.phase == "starting" else _POLL)
        self._say(phase="stopping")
        server.stop()
        self._say(phase="down", supervisor=None, postmaster=None)

    def fail(self, reason: str) -> None:
        """Record a failure that waiting does not cure."""
        _log.error("%s", reason)
        self._say(
            phase="down", supervisor=None, postmaster=None, failure=Failure(reason=reason, at=time.time(), final=True)
        )

    def _prepare(self) -> tuple[ServerHome, _Postmaster]:
        home = find_home(self._folder)
        if take_lock(home.path, patience=10.0) is None:  # held until this process ends
            raise StoreUnavailable(f"{home.path} is in use by the supervisor of another data folder")
        binaries = choose_binaries(find_binaries(), home.data)
        binaries = make_reachable(binaries, home.account, SHARED / "binaries")
        _log.info("PostgreSQL %s from %s, data in %s", binaries.version, binaries.folder, home.data)
        act_as(home.account, home.tidy)
        password = self._folder.read_password()
        fresh = password or secrets.token_urlsafe(24)
        if password is None:
            replace_file(self._folder.password_file, fresh)
        if not home.data.exists():
            pgdata.create(home, binaries, fresh)
        elif password is None:
            supervisor = os.getpid()
            act_as(home.account, lambda: clear(home.data))
            act_as(home.account, lambda: disown_pid_file(home.data, supervisor))
            pgdata.set_password(home, binaries, fresh)
        return home, _Postmaster(home, binaries, self._folder.supervisor_log)

    def _is_unused(self) -> bool:
        """Return whether the server may stop; if so, the users' lock is held, and nobody can begin to use the store."""
        if not is_same_file(self._lock, self._folder.supervisor_lock):
            _log.warning("the folder was removed")
            return True
        now = time.monotonic()
        if not nobody_else_holds(self._users):
            self._last_used = now
            return False
        if self._leaving or now - self._last_used >= _GRACE:
            return True
        let_others_hold(self._users)
        return False

    def _rest(self, seconds: float) -> None:
        """Sleep until a signal arrives, such as the server's death or a request to end."""
        if select.select([self._wake], [], [], seconds)[0]:
            os.read(self._wake, 4096)

    def _start(self, server: _Postmaster) -> None:
        self._say(phase="starting")
        try:
            port = server.start(self._state.port)
        except OSError as error:
            self._failed(str(error))
        else:
            self._say(port=port, postmaster=server.pid)

    def _watch(self, home: ServerHome, server: _Postmaster) -> None:
        now = time.monotonic()
        if self._state.phase == "starting" and server.is_ready():
            _log.info("ready on port %s", self._state.port)
            self._ready_at = now
            self._say(phase="ready")
        if self._state.phase == "ready" and self._state.failure and now - self._ready_at >= _WELL_AFTER:
            self._say(failure=None)
        if now >= self._prune_at:
            act_as(home.account, home.prune_logs)
            self._prune_at = now + _PRUNE_EVERY

    def _failed(self, reason: str) -> None:
        attempts = self._state.failure.attempts + 1 if self._state.failure else 1
        self._retry_at = time.monotonic() + min(_LONGEST_PAUSE, 2.0 ** (attempts - 2) if attempts > 1 else 0.0)
        _log.warning("attempt %s: %s", attempts, reason)
        self._say(phase="down", postmaster=None, failure=Failure(reason=reason, at=time.time(), attempts=attempts))

    def _say(self, **changes: Any) -> None:
        self._state = dataclasses.replace(self._state, **changes)
        if is_same_file(self._lock, self._folder.supervisor_lock):
            self._folder.write_state(self._state)


def _signals_as_bytes() -> int:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    return reader


def main(arguments: list[str]) -> int:
    """Become the supervisor of a data folder, in the background; return `ANOTHER` if there is one already."""
    os.umask(0o077)
    folder = StoreFolder(Path(arguments[0]) / "postgres")
    lock = take_lock(folder.supervisor_lock, patience=0.3)  # users test it, and hold it for an instant only
    if lock is None:
        return ANOTHER
    if folder.is_copy():
        # With the original's port and password, clients of one store could reach the data of the other.
        folder.password_file.unlink(missing_ok=True)
    # The state that another supervisor wrote no longer holds. The lock passes to the child.
    folder.write_state(State(phase="preparing", port=folder.read_state().port, supervisor=None))
    if os.fork() != 0:
        os._exit(0)
    return _keep(folder, lock)


def _keep(folder: StoreFolder, lock: int) -> int:
    os.chdir("/")
    if folder.supervisor_log.stat().st_size > _LOG_BYTES:
        os.truncate(folder.supervisor_log, 0)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s", stream=sys.stderr)
    supervisor = PostgresSupervisor(folder, lock, dataclasses.replace(folder.read_state(), supervisor=os.getpid()))
    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, supervisor.leave_when_unused)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        supervisor.run()
    except (StoreUnavailable, OSError) as error:
        supervisor.fail(str(error))
        return 1
    except Exception as error:
        _log.exception("the supervisor failed")
        supervisor.fail(f"the supervisor failed: {error!r}")
        raise
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
