"""Where PostgreSQL's own folder lies: the data, its log, its socket, all owned by the user it runs as.

An ordinary user's lies beside the locks, in ``data_dir/postgres/server``. So does root's where the server's user can
get there (a volume mounted in a container must hold the data). Below a private home it cannot: then the folder lies
in ``/var/lib/tiltmeter``, and the file ``home`` in ``data_dir/postgres`` points to it. No folder that we did not make
changes its mode or owner.
"""

import contextlib
import hashlib
import os
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path

from auditor.errors import StoreUnavailable
from auditor.store.binaries import make_public_folder
from auditor.store.embedded_folder import StoreFolder, replace_file
from auditor.store.server_account import Account, act_as, choose_account

#: Root's place for what another user has to reach.
SHARED = Path("/var/lib/tiltmeter")

#: The kernel's limit for a socket's path is 107 bytes on Linux, 103 on macOS.
_LONGEST_SOCKET_PATH = 100
_LOGS_KEPT = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerHome:
    """PostgreSQL's own folder, and the user that it belongs to (None: ourselves)."""

    path: Path
    account: Account | None

    @property
    def data(self) -> Path:
        """PGDATA; it appears whole, by a rename."""
        return self.path / "data"

    @property
    def logs(self) -> Path:
        """PostgreSQL's log files."""
        return self.path / "log"

    @property
    def socket(self) -> Path | None:
        """Folder of the unix socket; None where its path is too long."""
        folder = self.path / "run"
        return folder if len(os.fsencode(folder / ".s.PGSQL.65535")) <= _LONGEST_SOCKET_PATH else None

    def newest_log(self) -> Path | None:
        """PostgreSQL's current log file."""
        return max(self.logs.glob("*.log"), default=None)

    def tidy(self) -> None:
        """As the server's user, while it does not run: make the folders, empty the socket's, drop what was left."""
        self.logs.mkdir(mode=0o700, exist_ok=True)
        shutil.rmtree(self.path / "run", ignore_errors=True)
        (self.path / "run").mkdir(mode=0o700)
        for draft in self.path.glob("data.new-*"):
            shutil.rmtree(draft, ignore_errors=True)
        self.prune_logs()

    def prune_logs(self) -> None:
        """Keep the newest log files."""
        for log in sorted(self.logs.glob("*.log"))[:-_LOGS_KEPT]:
            log.unlink(missing_ok=True)


def find_home(folder: StoreFolder) -> ServerHome:
    """Find the folder that a store has, or make it."""
    beside = folder.path / "server"
    if os.geteuid() != 0:
        with contextlib.suppress(FileExistsError):
            beside.mkdir(mode=0o700)
        return ServerHome(path=beside, account=None)
    path = beside if beside.exists() else _pointed_to(folder)
    if path is None:
        return _make_home(folder, beside)
    account = choose_account(path.stat().st_uid)
    _hand_over(path, account)
    return ServerHome(path=path, account=account)


def _pointed_to(folder: StoreFolder) -> Path | None:
    try:
        path = Path(folder.pointer.read_text().strip())
    except FileNotFoundError:
        return None
    if not path.exists():  # never begin anew beside data that is merely not mounted
        raise StoreUnavailable(f"{folder.pointer} says that the data are in {path}, which is not there")
    return path


def _make_home(folder: StoreFolder, beside: Path) -> ServerHome:
    account = choose_account()
    if act_as(account, lambda: os.access(folder.path.parent, os.X_OK)):
        folder.path.chmod(0o711)  # ours; all that lies in it is private
        beside.mkdir(mode=0o700)
        _hand_over(beside, account)
        return ServerHome(path=beside, account=account)
    # A name of its own: a data_dir removed and made again begins anew, and the data of the old one are not lost.
    digest = hashlib.sha256(os.fsencode(folder.path)).hexdigest()[:12]
    path = SHARED / f"{digest}-{secrets.token_hex(4)}"
    make_public_folder(SHARED)
    path.mkdir(mode=0o700)
    _hand_over(path, account)
    replace_file(folder.pointer, f"{path}\n")
    return ServerHome(path=path, account=account)


def _hand_over(path: Path, account: Account | None) -> None:
    """Give a folder that root made to the server's user (again, if a kill came between)."""
    if account is not None and path.stat().st_uid != account.uid:
        os.chown(path, account.uid, account.gid)
