"""Small disks for tests: a file system of its own that can be filled, where this machine lets one be mounted."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[Path]:
    """Mount a file system in memory on a folder, until the block ends; without the right to do so, skip the test."""
    folder.mkdir(parents=True, exist_ok=True)
    mounting = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], capture_output=True, text=True, check=False
    )
    if mounting.returncode:
        pytest.skip(f"no small disk can be mounted here: {mounting.stderr.strip()}")
    try:
        yield folder
    finally:
        # A process that has just been killed may still hold a file of it.
        subprocess.run(["umount", "-l", folder], check=True)


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Let nothing in a folder be changed under its name until the block ends. Files that are open stay writable."""
    for command in (["mount", "--bind", folder, folder], ["mount", "-o", "remount,bind,ro", folder]):
        mounting = subprocess.run(command, capture_output=True, text=True, check=False)
        if mounting.returncode:
            pytest.skip(f"no folder can be made read-only here: {mounting.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def fill(disk: Path) -> Path:
    """Take all the space that is left, with one file; return it."""
    ballast = disk / "ballast"
    with ballast.open("ab", buffering=0) as file:
        for _ in range(100):  # others may remove files meanwhile
            for size in (1 << 16, 1 << 12, 1):
                with contextlib.suppress(OSError):
                    while file.write(bytes(size)) == size:
                        pass
            if os.statvfs(disk).f_bavail == 0:
                return ballast
    pytest.fail(f"{disk} does not get full")
