"""The keeper: the small process that is PostgreSQL's parent, for as long as anybody uses the store, and no longer.

``python -m auditor.store.keeper DATA_DIR``, started by `auditor.store.embedded`; it detaches itself. There is one for
each data folder. It starts PostgreSQL, starts it again if it dies, and stops it when the last user is gone: users
hold a lock that the kernel releases however they end. If the keeper itself is killed, the kernel stops PostgreSQL
(Linux), and the users start another keeper, on the same port and with the same password.

One thread, and nothing but the standard library: it forks, and it should cost little.
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
from auditor.store import pgdata
from auditor.store.binaries import choose_binaries, find_binaries, make_reachable
from auditor.store.embedded_folder import (
    Failure,
    State,
    StoreFolder,
    is_same_file,
    let_others_hold,
    nobody_else_holds,
    replace_file,
    take_lock,
)
from auditor.store.leftovers import clear, disown_pid_file
from auditor.store.postmaster import Postmaster
from auditor.store.server_account import act_as
from auditor.store.server_home import SHARED, ServerHome, find_home

#: Exit status: another keeper is at work in this folder.
ANOTHER = 3

#: How long the store outlives its last user: a restart, or one command after the other, finds it warm.
_GRACE = 2.0
_POLL = 0.5
_POLL_STARTING = 0.05
_LONGEST_PAUSE = 10.0
_PRUNE_EVERY = 3600.0
#: A server that was ready for this long is well: its next end is a first one, and it is started at once.
_WELL_AFTER = 30.0
_LOG_BYTES = 1 << 20

_log = logging.getLogger("keeper")


class Keeper:
    """Starts, watches and stops one server for the users of one folder."""

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
        """On SIGTERM: go without grace. While somebody uses the store it stays: they would start it again anyway."""
        self._leaving = True

    def run(self) -> None:
        """Keep the store until nobody uses it."""
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
        self._say(phase="down", keeper=None, postmaster=None)

    def fail(self, reason: str) -> None:
        """Tell the users that there is no point in waiting."""
        _log.error("%s", reason)
        self._say(
            phase="down", keeper=None, postmaster=None, failure=Failure(reason=reason, at=time.time(), final=True)
        )

    def _prepare(self) -> tuple[ServerHome, Postmaster]:
        home = find_home(self._folder)
        if take_lock(home.path, patience=10.0) is None:  # held until we end
            raise StoreUnavailable(f"{home.path} is in use by the keeper of another data folder")
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
            keeper = os.getpid()
            act_as(home.account, lambda: clear(home.data))
            act_as(home.account, lambda: disown_pid_file(home.data, keeper))
            pgdata.set_password(home, binaries, fresh)
        return home, Postmaster(home, binaries, self._folder.keeper_log)

    def _is_unused(self) -> bool:
        """Tell whether the store may end; True means that we hold the users' lock, and nobody can begin to use it."""
        if not is_same_file(self._lock, self._folder.keeper_lock):
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
        """Sleep, but not through a signal: the server's death and a wish to end are such."""
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
        self._failed(server.last_words())

    def _failed(self, reason: str) -> None:
        attempts = self._state.failure.attempts + 1 if self._state.failure else 1
        self._retry_at = time.monotonic() + min(_LONGEST_PAUSE, 2.0 ** (attempts - 2) if attempts > 1 else 0.0)
        _log.warning("attempt %s: %s", attempts, reason)
        self._say(phase="down", postmaster=None, failure=Failure(reason=reason, at=time.time(), attempts=attempts))

    def _say(self, **changes: Any) -> None:
        self._state = dataclasses.replace(self._state, **changes)
        if is_same_file(self._lock, self._folder.keeper_lock):
            self._folder.write_state(self._state)


def _signals_as_bytes() -> int:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    return reader


def main(arguments: list[str]) -> int:
    """Become the keeper of a data folder, in the background, unless there is one: then give `ANOTHER`."""
    os.umask(0o077)
    folder = StoreFolder(Path(arguments[0]) / "postgres")
    lock = take_lock(folder.keeper_lock, patience=0.3)  # users only look: they hold it for an instant
    if lock is None:
        return ANOTHER
    # What was said by another keeper is not true of this one. The lock passes to the child.
    folder.write_state(State(phase="preparing", port=folder.read_state().port, keeper=None))
    if os.fork() != 0:
        os._exit(0)
    return _keep(folder, lock)


def _keep(folder: StoreFolder, lock: int) -> int:
    os.chdir("/")
    if folder.keeper_log.stat().st_size > _LOG_BYTES:
        os.truncate(folder.keeper_log, 0)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s", stream=sys.stderr)
    keeper = Keeper(folder, lock, dataclasses.replace(folder.read_state(), keeper=os.getpid()))
    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, keeper.leave_when_unused)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        keeper.run()
    except (StoreUnavailable, OSError) as error:
        keeper.fail(str(error))
        return 1
    except Exception as error:
        _log.exception("the keeper is broken")
        keeper.fail(f"the keeper is broken: {error!r}")
        raise
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
