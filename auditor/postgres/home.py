"""Choose the user that PostgreSQL runs as and the folder of its own files, and act as that user.

An ordinary user's server runs as that user, with its files beside the locks, in ``data_dir/postgres/server``.

PostgreSQL refuses to run as root. Root's server runs as another existing user. What has to be done in folders of that
user is done *as* that user, so that nothing that lies there (a link, for instance) can mislead root. Root's files lie
in the same place if the server's user can get there, because a volume mounted in a container must hold the data. Below
a private home that user cannot; then the folder lies in ``/var/lib/biasmeter``, and the file ``home`` in
``data_dir/postgres`` points to it. The mode and owner of folders that we did not create never change.
"""

import contextlib
import hashlib
import json
import os
import pwd
import secrets
import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from auditor.errors import StoreUnavailable
from auditor.postgres.folder import StoreFolder, make_public_folder, replace_file, take_lock
from auditor.postgres.leftovers import processes_in

#: The first that exists is taken: one made for Biasmeter, the distribution's, or the user that owns nothing.
CANDIDATES = ("biasmeter", "postgres", "nobody")

_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A user other than that of this process."""

    name: str
    uid: int
    gid: int


def choose_account(owner: int | None = None) -> Account | None:
    """Choose the server's user, None for that of this process; `owner` is the user id that owns existing data."""
    if os.geteuid() != 0:
        return None
    if owner:
        return _named(owner)
    for name in CANDIDATES:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        if entry.pw_uid != 0:
            return _account(entry)
    raise StoreUnavailable(f"PostgreSQL does not run as root, and none of the users {', '.join(CANDIDATES)} exists")


def name_of(account: Account | None) -> str:
    """Return the name of the server's user; initdb needs one that the system knows."""
    return account.name if account else _named(os.geteuid()).name


def act_as(account: Account | None, act: Callable[[], Any]) -> Any:
    """Call `act` as another user, in a forked child. Its result comes back as JSON, its OSError as one.

    Only for a process of one thread, such as the supervisor.
    """
    if account is None:
        return act()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _answer_as(account, act, writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    if not answer:
        raise OSError(f"could not act as user {account.name}")
    outcome = json.loads(answer)
    if "error" in outcome:
        number, reason, path = outcome["error"]
        raise OSError(number, reason, path)
    return outcome["result"]


def end_with_parent(signum: signal.Signals) -> Callable[[], None] | None:
    """Return a function to call in a child before exec: the kernel then sends `signum` when the parent dies (Linux).

    The signal comes when the *thread* that forked dies; the supervisor has one thread. A change of user clears the
    setting, so it must run after that, as ``preexec_fn`` does.
    """
    if sys.platform != "linux":
        return None
    import ctypes  # noqa: PLC0415 -- needed by the supervisor alone, and on Linux alone

    prctl = ctypes.CDLL(None).prctl
    parent = os.getpid()

    def ask() -> None:
        prctl(_PR_SET_PDEATHSIG, int(signum), 0, 0, 0)
        if os.getppid() != parent:  # it died before the call
            os._exit(1)

    return ask


def _answer_as(account: Account, act: Callable[[], Any], writer: int) -> NoReturn:
    try:
        os.setgroups([])
        os.setgid(account.gid)
        os.setuid(account.uid)
        try:
            outcome = {"result": act()}
        except OSError as error:
            outcome = {"error": [error.errno, error.strerror or str(error), error.filename and str(error.filename)]}
        os.write(writer, json.dumps(outcome).encode())
    finally:
        os._exit(0)


def _named(uid: int) -> Account:
    try:
        return _account(pwd.getpwuid(uid))
    except KeyError:
        raise StoreUnavailable(
            f"user id {uid} has no name on this system (/etc/passwd): PostgreSQL needs one"
        ) from None


def _account(entry: pwd.struct_passwd) -> Account:
    return Account(name=entry.pw_name, uid=entry.pw_uid, gid=entry.pw_gid)


#: Root's folder for what another user has to reach.
SHARED = Path("/var/lib/biasmeter")

#: The kernel's limit for a socket's path is 107 bytes on Linux, 103 on macOS.
_LONGEST_SOCKET_PATH = 100
_LOGS_KEPT = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerHome:
    """PostgreSQL's own folder, and the user that owns it (None: that of this process)."""

    path: Path
    account: Account | None

    @property
    def data(self) -> Path:
        """PGDATA; a rename creates it as a whole."""
        return self.path / "data"

    @property
    def logs(self) -> Path:
        """PostgreSQL's log files."""
        return self.path / "log"

    @property
    def socket(self) -> Path | None:
        """Folder of the unix socket; None if its path would be too long."""
        folder = self.path / "run"
        return folder if len(os.fsencode(folder / ".s.PGSQL.65535")) <= _LONGEST_SOCKET_PATH else None

    def newest_log(self) -> Path | None:
        """PostgreSQL's current log file."""
        return max(self.logs.glob("*.log"), default=None)

    def tidy(self) -> None:
        """Create the folders, empty the socket's and remove drafts, as the server's user while it does not run."""
        self.logs.mkdir(mode=0o700, exist_ok=True)
        shutil.rmtree(self.path / "run", ignore_errors=True)
        (self.path / "run").mkdir(mode=0o700)
        for draft in self.path.glob("data.new-*"):
            shutil.rmtree(draft, ignore_errors=True)
        self.prune_logs()

    def prune_logs(self) -> None:
        """Remove all but the newest log files."""
        for log in sorted(self.logs.glob("*.log"))[:-_LOGS_KEPT]:
            log.unlink(missing_ok=True)


def find_home(folder: StoreFolder) -> ServerHome:
    """Find the folder of a store, or create it."""
    server_folder = folder.path / "server"
    if os.geteuid() != 0:
        with contextlib.suppress(FileExistsError):
            server_folder.mkdir(mode=0o700)
        return ServerHome(path=server_folder, account=None)
    path = server_folder if server_folder.exists() else _pointed_to(folder)
    if path is None:
        return _make_home(folder, server_folder)
    account = choose_account(path.stat().st_uid)
    _hand_over(path, account)
    return ServerHome(path=path, account=account)


def _pointed_to(folder: StoreFolder) -> Path | None:
    try:
        path, _, identity = folder.pointer.read_text().strip().partition("\n")
    except FileNotFoundError:
        return None
    home = Path(path)
    if not home.exists():  # data may only be unmounted: never start with an empty folder instead
        raise StoreUnavailable(f"{folder.pointer} says that the data are in {home}, which is not there")
    return home if identity == str(folder.identity) else _copy_home(folder, home)


def _make_home(folder: StoreFolder, server_folder: Path) -> ServerHome:
    account = choose_account()
    if act_as(account, lambda: os.access(folder.path.parent, os.X_OK)):
        folder.path.chmod(0o711)  # everything in it is private
        server_folder.mkdir(mode=0o700)
        _hand_over(server_folder, account)
        return ServerHome(path=server_folder, account=account)
    path = _make_shared(folder, account)
    _point_to(folder, path)
    return ServerHome(path=path, account=account)


def _copy_home(folder: StoreFolder, original: Path) -> Path:
    """Copy the data that a copied pointer names, and point to the copy: two stores must never share their data."""
    account = choose_account(original.stat().st_uid)
    lock = take_lock(original, patience=10.0)
    try:
        if lock is None or act_as(account, lambda: processes_in(original / "data")):
            raise StoreUnavailable(
                f"{folder.path} is a copy of a store that is running, with its data in {original}: "
                "stop the original before the copy's first start"
            )
        path = _make_shared(folder, account)
        act_as(account, lambda: _copy_data(original / "data", path))
    finally:
        if lock is not None:
            os.close(lock)
    _point_to(folder, path)
    return path


def _copy_data(original: Path, home: Path) -> None:
    if original.exists():
        draft = home / "data.new-copy"
        shutil.copytree(original, draft, symlinks=True, ignore=shutil.ignore_patterns("postmaster.pid"))
        draft.rename(home / "data")


def _make_shared(folder: StoreFolder, account: Account | None) -> Path:
    # A random name: a data_dir that is removed and created again starts empty, and the old data are kept.
    digest = hashlib.sha256(os.fsencode(folder.path)).hexdigest()[:12]
    path = SHARED / f"{digest}-{secrets.token_hex(4)}"
    make_public_folder(SHARED)
    path.mkdir(mode=0o700)
    _hand_over(path, account)
    return path


def _point_to(folder: StoreFolder, path: Path) -> None:
    replace_file(folder.pointer, f"{path}\n{folder.identity}\n")


def _hand_over(path: Path, account: Account | None) -> None:
    """Make the server's user the owner of a folder of root: a new one, or a copy made with ``cp -r``.

    The folder itself comes last: until then only root can enter it, and an interrupted call is repeated.
    """
    if account is None or path.stat().st_uid == account.uid:
        return
    for folder, folders, files in os.walk(path, topdown=False):
        for name in (*folders, *files):
            os.chown(Path(folder, name), account.uid, account.gid, follow_symlinks=False)
    os.chown(path, account.uid, account.gid)
