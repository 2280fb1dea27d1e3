"""The embedded PostgreSQL: started by whoever needs it first, shared by all, gone when nobody uses it any more.

    with attach(data_dir) as store:
        pool = await asyncpg.create_pool(store.url)

Any number of processes may attach to one ``data_dir``, at once and in any order. PostgreSQL is nobody's child but its
keeper's (`auditor.store.keeper`): it lives exactly as long as somebody uses it, whoever dies, and however. If it is
killed the keeper starts it again; if the keeper is killed, any user's handle notices within a second and starts
another. Port and password stay the same, so that connection pools simply reconnect.

Composition roots import this, where no database URL is set; no gateway worker ever does.
"""

import asyncio
import contextlib
import logging
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

from auditor.errors import StoreUnavailable
from auditor.store.embedded_folder import State, StoreFolder, is_same_file, take_lock
from auditor.store.keeper import ANOTHER
from auditor.store.pgdata import ROLE

#: Seconds: copying binaries and initdb on a slow disk included.
TIMEOUT = 120.0
#: Crash recovery reads up to a gigabyte of log; while PostgreSQL says that it is at it, we wait.
_RECOVERY = 900.0
_POLL = 0.05
_WATCH = 1.0
_LONGEST_PAUSE = 30.0
#: A first failure may be chance (a port taken in between): the keeper tries again by itself.
_ATTEMPTS = 3

_log = logging.getLogger(__name__)


class EmbeddedStore:
    """A user's hold on the store: it runs until the last one is closed, or its process ends. Not for a forked child."""

    def __init__(self, folder: StoreFolder, hold: int) -> None:
        self._folder = folder
        self._hold = hold
        self._closed = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="embedded-store", daemon=True)
        self._watcher.start()

    @property
    def url(self) -> str:
        """``postgresql://tiltmeter:...@127.0.0.1:PORT/tiltmeter``; the port changes only if somebody else takes it."""
        return _url(self._folder, self._folder.read_state())

    def close(self) -> None:
        """Use the store no longer. A second call does nothing."""
        if not self._closed.is_set():
            self._closed.set()
            self._watcher.join()
            os.close(self._hold)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _watch(self) -> None:
        pause = _WATCH
        while not self._closed.wait(pause):
            if not is_same_file(self._hold, self._folder.users_lock):
                _log.error("the folder of the embedded store was removed: %s", self._folder.path)
                return
            pause = min(_LONGEST_PAUSE, pause * 2) if self._revive() else _WATCH

    def _revive(self) -> bool:
        """Start a keeper if there is none; tell whether that was so, for then it may well be so again."""
        try:
            if self._folder.keeper_lives():
                return False
            _log.warning("the keeper of the embedded store is gone; starting another")
            _start_keeper(self._folder)
        except (OSError, subprocess.SubprocessError, StoreUnavailable) as error:
            _log.warning("no keeper for the embedded store could be started: %s", error)
        return True


def attach(data_dir: Path, timeout: float = TIMEOUT) -> EmbeddedStore:
    """Use the store of `data_dir`, starting it if it does not run; returns when it answers.

    Blocks, also within a running event loop: call it before the loop starts, or in a thread.

    Raises
    ------
    StoreUnavailable
        It does not come up; one line that says why, with PostgreSQL's last word and its log file.
    """
    folder = StoreFolder(data_dir.expanduser().absolute().resolve() / "postgres")
    try:
        folder.make()
        _check_owner(folder)
        hold = take_lock(folder.users_lock, shared=True, patience=timeout)  # waits for a server that is stopping
        if hold is None:
            raise StoreUnavailable(f"the embedded store in {folder.path} does not finish stopping")
        try:
            _wait_until_it_answers(folder, timeout)
        except BaseException:
            os.close(hold)
            raise
    except (OSError, subprocess.SubprocessError) as error:
        raise StoreUnavailable(f"the embedded store in {folder.path} cannot be used: {error}") from error
    return EmbeddedStore(folder, hold)


def _check_owner(folder: StoreFolder) -> None:
    owner = folder.path.stat().st_uid
    if owner != os.geteuid():
        raise StoreUnavailable(
            f"{folder.path} belongs to user id {owner}, and this is user id {os.geteuid()}: "
            "run as its owner, or name another data_dir or a store.url"
        )


def _wait_until_it_answers(folder: StoreFolder, timeout: float) -> None:
    began, started = time.time(), 0
    while True:
        lives = folder.keeper_lives()
        state = folder.read_state()  # after the look at its lock: a keeper that ended has said why
        if lives and state.phase == "ready" and _answers(_url(folder, state)):
            return
        failure = state.failure
        if failure and failure.at >= began and (failure.final or failure.attempts >= _ATTEMPTS):
            raise StoreUnavailable(f"the embedded store in {folder.path} does not start: {failure.reason}")
        if not lives:
            if started == _ATTEMPTS:
                raise StoreUnavailable(
                    f"the keeper of the embedded store ends without a word (see {folder.keeper_log})"
                )
            _start_keeper(folder)
            started += 1
        if time.time() - began > (_RECOVERY if state.phase == "starting" else timeout):
            raise StoreUnavailable(f"the embedded store in {folder.path} {_silence(state)} (see {folder.keeper_log})")
        time.sleep(_POLL)


def _silence(state: State) -> str:
    if state.phase == "ready":  # its folder is shared with us, its network is not
        return f"does not answer on port {state.port}: is it kept in another container, or on another host?"
    if state.failure:
        return f"does not answer: {state.failure.reason}"
    return f"does not answer: still {state.phase}"


def _start_keeper(folder: StoreFolder) -> None:
    """Run the keeper; it detaches itself once it holds its lock. With the same Python and the same code as ours."""
    environment = dict(os.environ)
    root = Path(__file__).resolve().parents[2]
    if root.name not in {"site-packages", "dist-packages"}:
        environment["PYTHONPATH"] = os.pathsep.join([str(root), *filter(None, [os.environ.get("PYTHONPATH")])])
    # -P: files of the working directory must not stand in for modules.
    command = [sys.executable, "-P", "-m", "auditor.store.keeper", str(folder.path.parent)]
    log = os.open(folder.keeper_log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        ended = subprocess.run(  # noqa: S603 -- our own module
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            check=False,
            timeout=60,
        )
    finally:
        os.close(log)
    if ended.returncode not in {0, ANOTHER}:
        last = folder.keeper_log.read_text(errors="replace").strip().rpartition("\n")[2]
        raise StoreUnavailable(f"the keeper of the embedded store does not start: {last} (see {folder.keeper_log})")


def _url(folder: StoreFolder, state: State) -> str:
    return f"postgresql://{ROLE}:{folder.read_password()}@127.0.0.1:{state.port}/{ROLE}"


def _answers(url: str) -> bool:
    # In a thread of its own: the caller's may have an event loop running.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, _ask(url)).result()


async def _ask(url: str) -> bool:
    """Judge by a real connection. SCRAM proves both ways: a stranger on our port does not know the password either."""
    import asyncpg  # noqa: PLC0415 -- the gateway's parent need not load it before

    try:
        connection = await asyncpg.connect(url, timeout=5, ssl=False)
    except asyncpg.TooManyConnectionsError:
        return True
    except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
        return False
    with contextlib.suppress(OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
        await connection.close(timeout=5)
    return True
