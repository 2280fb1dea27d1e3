"""Back up a database with the server's own programs, and restore it into another."""

import subprocess
from pathlib import Path

from auditor.postgres.binaries import find_binaries


def restore(source_url: str, target_url: str, folder: Path) -> None:
    """Dump one database, and restore the dump into an empty one."""
    tools, dump = find_binaries()[0].folder, folder / "dump"
    for command in (
        [tools / "pg_dump", "-Fc", "-f", dump, source_url],
        [tools / "pg_restore", "--no-owner", "-d", target_url, dump],
    ):
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stderr
