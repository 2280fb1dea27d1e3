"""Where and when figures were taken: what a reader needs to judge them."""

import os
import platform
import subprocess
import timeit
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any


def conditions() -> dict[str, Any]:
    """Give the machine, what it runs, and the source that was measured."""
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": _cpu_name(),
        "cpus": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "call_ns": _call_ns(),
        "source": _commit(),
    } | {package: version(package) for package in ("aiohttp", "uvloop", "msgspec")}


def _call_ns() -> int:
    """Time a call that does nothing: it tells how Python was compiled, which no setting of it does everywhere."""
    return round(min(timeit.repeat("f()", "def f(): pass", repeat=20, number=10_000)) * 1e5)


def _cpu_name() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _commit() -> str:
    """Give the checked-out commit, with a mark if files differ from it."""
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            capture_output=True, text=True, check=True, cwd=Path(__file__).parent,
        )  # fmt: skip
    except (OSError, subprocess.CalledProcessError):
        return "no checkout"
    return done.stdout.strip()
