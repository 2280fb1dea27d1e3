"""Start the embedded PostgreSQL and attach to it.

    with attach(data_dir) as store:
        pool = await asyncpg.create_pool(store.url)

Any number of processes may attach to one ``data_dir``, at once and in any order. The first starts the server, all share
it, and it stops when the last has gone. PostgreSQL is a child of its supervisor only, so it does not matter which
process dies, or how. A killed server is started again by its supervisor. A killed supervisor is noticed by any attached
process within a second, which starts another. Port and password stay the same, so connection pools simply reconnect.

Only the commands that run without a database URL import this; no gateway worker does.
"""

import asyncio
import contextlib
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

from auditor.errors import StoreUnavailable
from auditor.postgres.folder import State, StoreFolder, is_same_file, take_lock
from auditor.postgres.pgdata import ROLE
from auditor.postgres.supervisor import ANOTHER

#: Seconds, enough for copying binaries and initdb on a slow disk.
TIMEOUT = 120.0
#: Seconds to wait while PostgreSQL reports crash recovery, which may read a gigabyte of log.
_RECOVERY = 900.0
_POLL = 0.05
_WATCH = 1.0
_LONGEST_PAUSE = 30.0
#: The supervisor tries again by itself: a port may have been taken in between.
_ATTEMPTS = 3

_log = logging.getLogger(__name__)


class EmbeddedStore:
    """One process's use of the store: the server runs until the last one is closed. Not for a forked child."""

    def __init__(self, folder: StoreFolder, hold: int) -> None:
        self._folder = folder
        self._hold = hold
        self._closed = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="embedded-store", daemon=True)
        self._watcher.start()

    @property
    def url(self) -> str:
        """``postgresql://biasmeter:...@127.0.0.1:PORT/biasmeter``; the port changes only if somebody else takes it."""
        return _url(self._folder, self._folder.read_state())

    def close(self) -> None:
        """Stop using the store. A second call does nothing."""
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
        """Start a supervisor if there is none, and return whether there was none."""
        try:
            if self._folder.is_supervised():
                return False
            _log.warning("the supervisor of the embedded store is gone; starting another")
            _start_supervisor(self._folder)
        except (OSError, subprocess.SubprocessError, StoreUnavailable) as error:
            _log.warning("no supervisor for the embedded store could be started: %s", error)
        return True


def attach(data_dir: Path, timeout: float = TIMEOUT, *, required: bool = True) -> EmbeddedStore:
    """Start the store of `data_dir` if it does not run, wait until it answers, and use it.

    Blocks, also within a running event loop: call it before the loop starts, or in a thread. Unless it is `required`, a
    store that ran before and does not start now, for example on a full disk, is only logged: it has the URL that it
    had, and is started as soon as that is possible.

    Raises
    ------
    StoreUnavailable
        It does not start. The message is one line with PostgreSQL's last message and its log file.
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
        except BaseException as error:
            expected = isinstance(error, StoreUnavailable | OSError | subprocess.SubprocessError)
            if required or not expected or folder.read_state().port is None or folder.read_password() is None:
                os.close(hold)
                raise
            _log.warning("%s; it is started when that is possible", error)
    except (OSError, subprocess.SubprocessError) as error:
        raise StoreUnavailable(f"the embedded store in {folder.path} cannot be used: {error}") from error
    return EmbeddedStore(folder, hold)


@contextlib.contextmanager
def open_store(data_dir: Path, database_url: str | None, *, required: bool = True) -> Iterator[str]:
    """Keep the store running while the block runs, and yield its URL.

    Without a ``database_url`` the embedded PostgreSQL under ``data_dir`` is started, or attached to if it runs.
    ``required`` is that of `attach`.

    Raises
    ------
    StoreUnavailable
        The embedded PostgreSQL does not start; the message says why.
    """
    if database_url is not None:
        yield database_url
        return
    store = attach(data_dir, required=required)
    try:
        yield store.url
    finally:
        store.close()


def store_exists(data_dir: Path, database_url: str | None) -> bool:
    """Return whether there is a store; ``open_store`` would create the embedded one."""
    return database_url is not None or (data_dir / "postgres").is_dir()


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
        lives = folder.is_supervised()
        state = folder.read_state()  # read after its lock was tested: a supervisor that ended has written why
        if lives and state.phase == "ready" and _answers(_url(folder, state)):
            return
        failure = state.failure
        if failure and failure.at >= began and (failure.final or failure.attempts >= _ATTEMPTS):
            raise StoreUnavailable(f"the embedded store in {folder.path} does not start: {failure.reason}")
        if not lives:
            if started == _ATTEMPTS:
                raise StoreUnavailable(
                    f"the supervisor of the embedded store ends without a message (see {folder.supervisor_log})"
                )
            _start_supervisor(folder)
            started += 1
        if time.time() - began > (_RECOVERY if state.phase == "starting" else timeout):
            raise StoreUnavailable(
                f"the embedded store in {folder.path} {_symptom(state)} (see {folder.supervisor_log})"
            )
        time.sleep(_POLL)


def _symptom(state: State) -> str:
    if state.phase == "ready":  # its folder is shared with this process, its network is not
        return f"does not answer on port {state.port}: is it kept in another container, or on another host?"
    if state.failure:
        return f"does not answer: {state.failure.reason}"
    return f"does not answer: still {state.phase}"


def _start_supervisor(folder: StoreFolder) -> None:
    """Start the supervisor with this Python and this code; it detaches itself once it holds its lock."""
    environment = dict(os.environ)
    root = Path(__file__).resolve().parents[2]
    if root.name not in {"site-packages", "dist-packages"}:
        environment["PYTHONPATH"] = os.pathsep.join([str(root), *filter(None, [os.environ.get("PYTHONPATH")])])
    # -P: files of the working directory must not be imported as modules.
    command = [sys.executable, "-P", "-m", "auditor.postgres.supervisor", str(folder.path.parent)]
    log = os.open(folder.supervisor_log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
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
        last = folder.supervisor_log.read_text(errors="replace").strip().rpartition("\n")[2]
        raise StoreUnavailable(
            f"the supervisor of the embedded store does not start: {last} (see {folder.supervisor_log})"
        )


def _url(folder: StoreFolder, state: State) -> str:
    return f"postgresql://{ROLE}:{folder.read_password()}@127.0.0.1:{state.port}/{ROLE}"


def _answers(url: str) -> bool:
    # In a thread of its own, because an event loop may be running in the caller's thread.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, _ask(url)).result()


async def _ask(url: str) -> bool:
    """Connect once. SCRAM authenticates the server too, so another program on the port does not count as an answer."""
    import asyncpg  # noqa: PLC0415 -- the gateway's parent need not load it before

    lost = (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)
    try:
        connection = await asyncpg.connect(url, timeout=5, ssl=False)
    except asyncpg.TooManyConnectionsError:
        return True
    except lost:
        return False
    with contextlib.suppress(*lost):
        await connection.close(timeout=5)
    return True
