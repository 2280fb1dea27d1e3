"""Create PostgreSQL's data folder, with its role, its database and its settings.

`auditor.postgres.supervisor` starts the server on it.
"""

import os
import secrets
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from auditor.errors import StoreUnavailable
from auditor.postgres.binaries import Binaries
from auditor.postgres.folder import replace_file, sync_folder
from auditor.postgres.home import Account, ServerHome, act_as, end_with_parent, name_of

#: Name of the role and of its database. The role is no superuser: it may create databases and use its own.
ROLE = "biasmeter"

_HBA = f"""\
# Written at every start.
local all postgres peer map=owner
host  all {ROLE}  127.0.0.1/32  scram-sha-256
"""

_SETTINGS = """\
# Written at every start: put your own settings into local.conf beside this file, or use ALTER SYSTEM.
listen_addresses = '127.0.0.1'
unix_socket_permissions = 0700
password_encryption = 'scram-sha-256'
max_connections = 100
shared_buffers = 128MB
shared_memory_type = mmap
dynamic_shared_memory_type = {dynamic_shared_memory}
huge_pages = off            # a container without them kills a server that tries
jit = off
wal_recycle = off           # a segment that is used again holds what was erased until it is overwritten
timezone = 'UTC'
log_timezone = 'UTC'
datestyle = 'iso, mdy'
lc_messages = 'C'
lc_monetary = 'C'
lc_numeric = 'C'
lc_time = 'C'
logging_collector = on
log_directory = '{logs}'
log_filename = 'postgres-%Y%m%d-%H%M%S.log'
log_file_mode = 0600
log_rotation_size = 10MB
log_rotation_age = 0
log_min_error_statement = panic   # statements and rows may hold what people wrote
log_error_verbosity = terse
"""

#: Bytes. With less, such as Docker's 64 MB, parallel queries run out of shared memory.
_ENOUGH_SHARED_MEMORY = 256 << 20


def create(home: ServerHome, binaries: Binaries, password: str) -> None:
    """Create the data folder with its role and database, under another name first, so that it is complete or absent."""
    name_of(home.account)  # raises if it has none
    draft = home.path / f"data.new-{secrets.token_hex(4)}"
    initdb = [binaries.initdb, "--pgdata", str(draft), "--username", "postgres", "--auth", "reject"]
    options = ["--encoding", "UTF8", "--locale", "C", "--data-checksums", "--no-instructions"]
    try:
        _run([*initdb, *options], home.account)
        role = f"CREATE ROLE {ROLE} LOGIN CREATEDB PASSWORD '{password}'\n"
        _run_single(draft, binaries, home.account, f"{role}CREATE DATABASE {ROLE} OWNER {ROLE}\n")
        act_as(home.account, lambda: _settle(draft, home.data))
    except (StoreUnavailable, OSError):
        act_as(home.account, lambda: shutil.rmtree(draft, ignore_errors=True))
        raise


def set_password(home: ServerHome, binaries: Binaries, password: str) -> None:
    """Set the role's password, while the server does not run."""
    _run_single(home.data, binaries, home.account, f"ALTER ROLE {ROLE} PASSWORD '{password}'\n")


def write_settings(home: ServerHome) -> None:
    """Write the server's settings and who may connect, as the server's user."""
    logs = str(home.logs).replace("'", "''")
    settings = _SETTINGS.format(logs=logs, dynamic_shared_memory=_dynamic_shared_memory())
    if (home.data / "local.conf").exists():
        settings += "include = 'local.conf'\n"
    replace_file(home.data / "postgresql.conf", settings)
    replace_file(home.data / "pg_hba.conf", _HBA)
    # The server's user is its superuser, through the socket only.
    replace_file(home.data / "pg_ident.conf", f'owner "{name_of(home.account)}" postgres\n')


def error_line(text: str) -> str:
    """Return the line of a log that names the error; the last line if none does."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for word in ("PANIC:", "FATAL:", "error:", "ERROR:"):
        for line in reversed(lines):
            if word in line and "the database system is" not in line:  # a message for clients
                return line
    return lines[-1] if lines else "(no message)"


def _settle(draft: Path, data: Path) -> None:
    draft.rename(data)
    sync_folder(data.parent)


def _dynamic_shared_memory() -> str:
    """Choose POSIX shared memory if there is enough of it, else files, which are slower."""
    if sys.platform != "linux":
        return "posix"
    try:
        free = os.statvfs("/dev/shm")  # noqa: S108 -- only measured
        enough = free.f_bavail * free.f_frsize >= _ENOUGH_SHARED_MEMORY
        return "posix" if enough and os.access("/dev/shm", os.W_OK | os.X_OK) else "mmap"  # noqa: S108 -- as above
    except OSError:
        return "mmap"


def _run_single(data: Path, binaries: Binaries, account: Account | None, statements: str) -> None:
    """Run statements without a server until one fails; none is written to a log."""
    quiet = ["-c", "exit_on_error=on", "-c", "log_min_error_statement=panic", "-c", "log_checkpoints=off"]
    _run([binaries.postgres, "--single", "-D", str(data), *quiet, "postgres"], account, statements)


def server_environment() -> dict[str, str]:
    """Return an environment without this process's PGDATA, keys and locale."""
    kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH") if name in os.environ}
    return {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC", **kept}


def _run(command: list[str], account: Account | None, statements: str = "") -> None:
    done = subprocess.run(  # noqa: S603 -- fixed arguments; the child must die with the supervisor, which has one thread
        command,
        input=statements,
        text=True,
        errors="replace",
        capture_output=True,
        check=False,
        cwd="/",
        env=server_environment(),
        user=account.uid if account else None,
        group=account.gid if account else None,
        extra_groups=[] if account else None,
        preexec_fn=end_with_parent(signal.SIGKILL),
    )
    if done.returncode != 0:
        sys.stderr.write(done.stdout + done.stderr)
        raise StoreUnavailable(f"{Path(command[0]).name} failed: {_first_error(done.stderr)}")


def _first_error(text: str) -> str:
    """Return the first error of a command: the others, such as those of a full disk, follow from it."""
    errors = [line.strip() for line in text.splitlines() if any(word in line for word in ("FATAL:", "error:"))]
    return errors[0] if errors else error_line(text)
