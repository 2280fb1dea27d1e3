"""CPU time and memory of other processes, and of the whole machine, read from /proc (Linux)."""

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from support.servers.product import all_pids

_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")

#: Which processes count, found anew for each look: some start children late.
Pids = Callable[[], Iterable[int]]


@dataclass(frozen=True, slots=True)
class Cpu:
    """Seconds on a CPU."""

    user: float
    system: float

    @property
    def total(self) -> float:
        return self.user + self.system

    def __sub__(self, other: "Cpu") -> "Cpu":
        return Cpu(self.user - other.user, self.system - other.system)


def cpu_of(pids: Iterable[int]) -> Cpu:
    """What these processes and their reaped children have used; whoever is gone counts nothing."""
    user = system = 0
    for pid in pids:
        if stat := _stat(pid):
            user += int(stat[11]) + int(stat[13])
            system += int(stat[12]) + int(stat[14])
    return Cpu(user / _TICK, system / _TICK)


def memory_of(pids: Iterable[int]) -> int:
    """Resident bytes; what processes share counts for each."""
    return sum(int(stat[21]) * _PAGE for pid in pids if (stat := _stat(pid)))


def busy_cpu() -> float:
    """Seconds that all CPUs have worked since the machine's start, whatever at: also what a hypervisor took away."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    user, nice, system, _idle, _waiting, interrupts, soft, stolen = map(int, fields[:8])
    return (user + nice + system + interrupts + soft + stolen) / _TICK


def tree(root: int) -> list[int]:
    """Give a process and all that descend from it."""
    children = defaultdict(list)
    for pid in all_pids():
        if stat := _stat(pid):
            children[int(stat[1])].append(pid)
    found = [root]
    for pid in found:  # grows meanwhile
        found += children[pid]
    return found


@contextmanager
def on_cpus(cpus: Iterable[int]) -> Iterator[None]:
    """Run on these CPUs only, this process and what it starts meanwhile."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _stat(pid: int) -> list[str] | None:
    """Fields of /proc/PID/stat from the third, the state, on: the second may hold anything."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    return None
