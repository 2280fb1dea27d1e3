"""Faults inside the processes of a test, which Python imports at its start: a slow spool, and a clock that steps.

The folder that the environment variable names holds the numbers: ``slow`` are the seconds that each write to the spool
takes, ``clock`` the seconds by which the wall clock is wrong. A missing file means 0.
"""

import os
import time
from pathlib import Path

_FOLDER = Path(os.environ["BIASMETER_TEST_FAULTS"])


def _number(name: str) -> float:
    try:
        return float((_FOLDER / name).read_text())
    except (OSError, ValueError):
        return 0.0


_write, _time_ns = os.write, time.time_ns


def _slow_write(fd: int, data: bytes) -> int:
    seconds = _number("slow")
    if seconds and "/spool/" in str(Path(f"/proc/self/fd/{fd}").readlink()):
        time.sleep(seconds)
    return _write(fd, data)


def _stepped_ns() -> int:
    return _time_ns() + int(_number("clock") * 1e9)


os.write = _slow_write
time.time_ns = _stepped_ns
time.time = lambda: _stepped_ns() / 1e9
