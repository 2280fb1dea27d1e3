"""The files through which the users of an embedded store and its keeper meet: two locks, state, password.

They lie in ``data_dir/postgres`` (a user is any process that called `auditor.store.embedded.attach`):

``users.lock``   every user holds a shared lock for as long as it uses the store
``keeper.lock``  the one keeper holds it for as long as it lives
``state.json``   written by the keeper alone: port, phase, the last failure
``password``     written once by the keeper
``home``         where PostgreSQL's own folder is, if it cannot lie here (see `auditor.store.server_home`)
``keeper.log``   what the keeper says, and what PostgreSQL says before its own log is open

Locks are the kernel's (flock): whoever dies, and however, they are released. Standard library only.
"""

import contextlib
import dataclasses
import errno
import fcntl
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

#: ``preparing``: finding binaries, initdb; ``starting``: crash recovery included; ``down``: gone, tried again soon.
Phase = Literal["preparing", "starting", "ready", "down", "stopping"]

_POLL = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why PostgreSQL does not run."""

    reason: str
    at: float  #: Unix seconds
    attempts: int = 1  #: in a row
    final: bool = False  #: the keeper has given up: a person has to do something first


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What the keeper last said."""

    phase: Phase = "down"
    port: int | None = None
    keeper: int | None = None
    postmaster: int | None = None
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class StoreFolder:
    """``data_dir/postgres``."""

    path: Path

    @property
    def users_lock(self) -> Path:
        """Locked (shared) by every user."""
        return self.path / "users.lock"

    @property
    def keeper_lock(self) -> Path:
        """Locked by the keeper."""
        return self.path / "keeper.lock"

    @property
    def keeper_log(self) -> Path:
        """What the keeper says."""
        return self.path / "keeper.log"

    @property
    def pointer(self) -> Path:
        """Names PostgreSQL's own folder where that lies elsewhere."""
        return self.path / "home"

    @property
    def password_file(self) -> Path:
        """Holds the password of the role ``tiltmeter``."""
        return self.path / "password"

    def make(self) -> None:
        """Make the folder, private to its owner; one that is there stays as it is."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            self.path.mkdir(mode=0o700)

    def read_state(self) -> State:
        """Read what the keeper last said; nothing of it where there is no file or it is damaged."""
        try:
            fields = json.loads((self.path / "state.json").read_bytes())
            failure = fields.pop("failure")
            return State(**fields, failure=Failure(**failure) if failure else None)
        except (FileNotFoundError, ValueError, TypeError, KeyError, AttributeError):
            return State()

    def write_state(self, state: State) -> None:
        """Say it to the users."""
        replace_file(self.path / "state.json", json.dumps(dataclasses.asdict(state)))

    def read_password(self) -> str | None:
        """Read the password; None where there is none yet."""
        try:
            return self.password_file.read_text() or None
        except FileNotFoundError:
            return None

    def keeper_lives(self) -> bool:
        """Tell whether a keeper is at work: judged by its lock, never by a process id."""
        try:
            descriptor = os.open(self.keeper_lock, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            return not _try_lock(descriptor, fcntl.LOCK_SH)
        finally:
            os.close(descriptor)


def take_lock(path: Path, *, shared: bool = False, patience: float = 0.0) -> int | None:
    """Lock a file (made if missing) or folder; give the descriptor that holds it, None if others held it throughout.

    Closing the descriptor releases the lock, and so does the end of the process.
    """
    folder = path.is_dir()
    flags = os.O_RDONLY | os.O_DIRECTORY if folder else os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + patience
    try:
        while not _try_lock(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX):
            if time.monotonic() > deadline:
                os.close(descriptor)
                return None
            time.sleep(_POLL)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def nobody_else_holds(descriptor: int) -> bool:
    """Try to lock the file alone: True means that it now is, until `let_others_hold`."""
    return _try_lock(descriptor, fcntl.LOCK_EX)


def let_others_hold(descriptor: int) -> None:
    """Give up what `nobody_else_holds` took."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)


def is_same_file(descriptor: int, path: Path) -> bool:
    """Tell whether `path` still names the open file: not after somebody removed the folder."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False


def replace_file(path: Path, text: str, mode: int = 0o600) -> None:
    """Write a file whole or not at all, and durably."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in {errno.EWOULDBLOCK, errno.EACCES}:
            return False
        raise
    return True
