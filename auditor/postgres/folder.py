"""Read, write and lock the files that the users of an embedded store share with its supervisor.

They lie in ``data_dir/postgres``. A user is any process that called `auditor.postgres.embedded.attach`.

``users.lock``       every user holds a shared lock for as long as it uses the store
``supervisor.lock``  the supervisor holds it for as long as it lives
``state.json``       port, phase and last failure, written by the supervisor only
``password``         written once by the supervisor
``home``             the path of PostgreSQL's own folder, if it cannot lie here (see `auditor.postgres.home`)
``supervisor.log``   the supervisor's messages, and PostgreSQL's until its own log is open

Locks are the kernel's (flock): they are released however a process dies. Standard library only.
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
from typing import Any, Literal

#: ``preparing``: finding binaries, initdb; ``starting``: also crash recovery; ``down``: ended, started again soon.
Phase = Literal["preparing", "starting", "ready", "down", "stopping"]

_POLL = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """The reason why PostgreSQL does not run."""

    reason: str
    at: float  #: Unix seconds
    attempts: int = 1  #: attempts in a row
    final: bool = False  #: the supervisor has given up, and a person has to act first


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The state that the supervisor wrote last."""

    phase: Phase = "down"
    port: int | None = None
    supervisor: int | None = None
    postmaster: int | None = None
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class StoreFolder:
    """The folder ``data_dir/postgres``."""

    path: Path

    @property
    def users_lock(self) -> Path:
        """The file that every user locks (shared)."""
        return self.path / "users.lock"

    @property
    def supervisor_lock(self) -> Path:
        """The file that the supervisor locks."""
        return self.path / "supervisor.lock"

    @property
    def supervisor_log(self) -> Path:
        """The supervisor's log."""
        return self.path / "supervisor.log"

    @property
    def pointer(self) -> Path:
        """The file that names PostgreSQL's own folder, if that lies elsewhere."""
        return self.path / "home"

    @property
    def password_file(self) -> Path:
        """The file with the password of the role ``biasmeter``."""
        return self.path / "password"

    @property
    def identity(self) -> int:
        """The folder's inode number: a copy has another one, a moved folder keeps it."""
        return self.path.stat().st_ino

    def is_copy(self) -> bool:
        """Return whether the state was written in another folder, of which this one is a copy."""
        written_in = self._read_fields().get("folder")
        return written_in is not None and written_in != self.identity

    def make(self) -> None:
        """Create the folder, private to its owner, in a ``data_dir`` that others may enter; existing ones stay."""
        make_public_folder(self.path.parent)
        with contextlib.suppress(FileExistsError):
            self.path.mkdir(mode=0o700)

    def read_state(self) -> State:
        """Read the supervisor's last state; an empty one if the file is missing, damaged or of another folder."""
        fields = self._read_fields()
        try:
            if fields.pop("folder") != self.identity:
                return State()
            failure = fields.pop("failure")
            return State(**fields, failure=Failure(**failure) if failure else None)
        except (TypeError, KeyError, AttributeError):
            return State()

    def _read_fields(self) -> dict[str, Any]:
        try:
            fields = json.loads((self.path / "state.json").read_bytes())
        except (FileNotFoundError, ValueError):
            return {}
        return fields if isinstance(fields, dict) else {}

    def write_state(self, state: State) -> None:
        """Write the state for the users."""
        replace_file(self.path / "state.json", json.dumps({**dataclasses.asdict(state), "folder": self.identity}))

    def read_password(self) -> str | None:
        """Read the password; None if there is none yet."""
        try:
            return self.password_file.read_text() or None
        except FileNotFoundError:
            return None

    def is_supervised(self) -> bool:
        """Return whether a supervisor runs; its lock shows it, because a process id may be reused."""
        try:
            descriptor = os.open(self.supervisor_lock, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            return not _try_lock(descriptor, fcntl.LOCK_SH)
        finally:
            os.close(descriptor)


def take_lock(path: Path, *, shared: bool = False, patience: float = 0.0) -> int | None:
    """Lock a file (created if missing) or folder; return the descriptor, or None if others hold the lock all the time.

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
    """Try to lock the file exclusively; True means that it stays locked until `let_others_hold`."""
    return _try_lock(descriptor, fcntl.LOCK_EX)


def let_others_hold(descriptor: int) -> None:
    """Release the lock that `nobody_else_holds` took."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)


def is_same_file(descriptor: int, path: Path) -> bool:
    """Return whether `path` still names the open file; it does not after the folder was removed."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False


def replace_file(path: Path, text: str, mode: int = 0o600) -> None:
    """Write a file atomically and durably."""
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
    """Flush the names in a folder to disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_public_folder(path: Path) -> None:
    """Create a folder and its parents so that everybody may enter them; existing ones are not changed."""
    for folder in (*reversed(path.parents), path):
        if not folder.exists():
            with contextlib.suppress(FileExistsError):
                folder.mkdir()
                folder.chmod(0o755)  # whatever the umask


def _try_lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in {errno.EWOULDBLOCK, errno.EACCES}:
            return False
        raise
    return True
