"""Counts instructions of a worker in user mode: by perf, or by callgrind where the hardware's counters are missing.

Under callgrind a worker takes some fifty times as long, so its CPU time says nothing; it has no cycles either.
"""

import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Protocol

from bench.hot_path.programs import NotHere, found
from bench.hot_path.rounds import Round

Counts = tuple[int | None, int | None]  #: instructions and cycles in user mode

_COUNTED = ("instructions:u", "cycles:u")
#: In place of the interpreter, which the gateway's parent starts its children with.
_SHIM = """\
#!/bin/sh
case "$*" in
  *gateway.processes.worker*)
    exec {valgrind} --tool=callgrind --instr-atstart=no --quiet --callgrind-out-file={out} {python} "$@" ;;
esac
exec {python} "$@"
"""


class Counter(Protocol):
    """Counts what a process does."""

    name: str
    quick: bool  #: whether the process is as quick as without counting

    def paths(self, name: str) -> list[Path]:
        """Make what must precede the sources on a gateway's path so that its worker can be counted."""

    def counted(self, pid: int, load: Callable[[], Round]) -> tuple[Round, Counts]:
        """Count what a process does while there is load on it."""


class Perf:
    """Counts by the hardware's counters."""

    name, quick = "perf", True

    def __init__(self) -> None:
        self._program = found("perf")
        said = subprocess.run([*self._command(), "true"], capture_output=True, text=True, check=False).stderr
        if None in _numbers(said):
            raise NotHere(f"perf cannot count on this machine: {said.strip()[:200]}")

    def paths(self, name: str) -> list[Path]:
        del name
        return []

    def counted(self, pid: int, load: Callable[[], Round]) -> tuple[Round, Counts]:
        process = subprocess.Popen([*self._command(), "-p", str(pid)], stderr=subprocess.PIPE, text=True)
        one = load()
        process.send_signal(signal.SIGINT)
        return one, _numbers(process.communicate()[1])

    def _command(self) -> list[str]:
        return [self._program, "stat", "-x,", "-e", ",".join(_COUNTED)]


class Callgrind:
    """Counts by valgrind's simulation of the processor.

    Parameters
    ----------
    folder
        Where it may write.
    """

    name, quick = "callgrind", False

    def __init__(self, folder: Path) -> None:
        self._valgrind, self._control = found("valgrind"), found("callgrind_control")
        self._folder = folder
        self._dumps: dict[int, count[int]] = {}

    def paths(self, name: str) -> list[Path]:
        shim = self._folder / f"callgrind-{name}"
        shim.mkdir()
        python = shim / "python"
        quoted = {name: shlex.quote(str(path)) for name, path in self._programs().items()}
        python.write_text(_SHIM.format(**quoted))
        python.chmod(0o755)
        (shim / "sitecustomize.py").write_text(f"import sys\nsys.executable = {str(python)!r}\n")
        return [shim]

    def counted(self, pid: int, load: Callable[[], Round]) -> tuple[Round, Counts]:
        number = next(self._dumps.setdefault(pid, count(1)))
        self._tell("-i", "on", str(pid))
        one = load()
        self._tell("-i", "off", str(pid))
        self._tell("-d", "round", str(pid))
        written = (self._folder / f"callgrind.{pid}.{number}").read_text(errors="replace")
        totals = re.search(r"^totals: (\d+)", written, re.MULTILINE)
        assert totals is not None, written[-500:]
        return one, (int(totals[1]), None)

    def _programs(self) -> dict[str, object]:
        return {"valgrind": self._valgrind, "python": sys.executable, "out": self._folder / "callgrind.%p"}

    def _tell(self, *command: str) -> None:
        subprocess.run([self._control, *command], capture_output=True, check=True)


def counter(folder: Path) -> Counter:
    """Give perf, or else callgrind.

    Raises
    ------
    NotHere
        Neither can count here.
    """
    try:
        return Perf()
    except NotHere as no_perf:
        try:
            return Callgrind(folder)
        except NotHere as no_callgrind:
            raise NotHere(f"{no_perf}, and {no_callgrind}") from None


def _numbers(said: str) -> Counts:
    """Read what perf has counted; None: it could not."""
    counts = [re.search(rf"^(\d+),.*{event}", said, re.MULTILINE) for event in _COUNTED]
    instructions, cycles = (None if found is None else int(found[1]) for found in counts)
    return instructions, cycles
