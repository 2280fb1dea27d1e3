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
import sys
import time
from pathlib import Path
from typing import Any

from auditor.errors import StoreUnavailable
from auditor.postgres import pgdata
from auditor.postgres.binaries import choose_binaries, find_binaries, make_reachable
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
from auditor.postgres.home import SHARED, ServerHome, act_as, find_home
from auditor.postgres.leftovers import clear, disown_pid_file
from auditor.postgres.postmaster import Postmaster

#: Exit status: another supervisor runs in this folder.
ANOTHER = 3

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


class PostgresSupervisor:
    """Start, watch and stop one server for the users of one folder."""

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
                self._lost(server)
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

    def _prepare(self) -> tuple[ServerHome, Postmaster]:
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
        return home, Postmaster(home, binaries, self._folder.supervisor_log)

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

    def _start(self, server: Postmaster) -> None:
        self._say(phase="starting")
        try:
            port = server.start(self._state.port)
        except OSError as error:
            self._failed(str(error))
        else:
            self._say(port=port, postmaster=server.pid)

    def _watch(self, home: ServerHome, server: Postmaster) -> None:
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

    def _lost(self, server: Postmaster) -> None:
        self._failed(server.end_reason())

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
