"""What each test costs: `pytest --costs` ends with tables of the dearest files and tests, and the sums of the run.

CPU seconds are those of the test's process and of the children that it waited for. A fixture shared by several tests is
counted with the first that uses it. Servers shared by the whole run are in the machine's sum only.
"""

import json
import os
import resource
import time
from collections import defaultdict
from collections.abc import Generator
from contextlib import suppress
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import pytest

ROWS = 40
_LAST_MARK = pytest.StashKey[float]()

_added = 0.0


@dataclass(slots=True)
class Cost:
    """Seconds of wall-clock and CPU time, and how many tests they are of."""

    wall: float = 0.0
    cpu: float = 0.0
    tests: int = 0

    def add(self, wall: float, cpu: float) -> None:
        self.wall += wall
        self.cpu += cpu


def add_cpu_seconds(seconds: float) -> None:
    """Count CPU seconds of a process that is no child, or still runs, for the present test."""
    global _added  # noqa: PLW0603 -- as there is one process, there is one sum
    _added += seconds


def cpu_seconds() -> float:
    """CPU seconds of this process, of the children that it has waited for, and of what was added."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime + _added


def session_seconds(session: int) -> float:
    """CPU seconds of the processes of a session (`os.getsid`) that run, and of their children that have ended."""
    total = 0
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = status.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session:
                total += sum(map(int, fields[11:15]))
    return total / os.sysconf("SC_CLK_TCK")


def machine_seconds() -> float:
    """CPU seconds that the whole machine has worked since it started."""
    user, nice, system, _idle, _iowait, irq, softirq = map(int, Path("/proc/stat").read_text().split()[1:8])
    return (user + nice + system + irq + softirq) / 100


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare `--costs` and `--costs-file`."""
    group = parser.getgroup("costs")
    group.addoption(
        "--costs", action="store_true", help="print what tests and files cost, in CPU and wall-clock seconds"
    )
    group.addoption("--costs-file", metavar="FILE", type=Path, help="write the cost of each test as JSON")


def pytest_configure(config: pytest.Config) -> None:
    """Begin to count where the costs are asked for."""
    if config.getoption("costs") or config.getoption("costs_file"):
        config.pluginmanager.register(_Marks(config) if hasattr(config, "workerinput") else _Costs(config))


class _Marks:
    """Attaches the CPU seconds of each phase to its report, in the process that runs the test."""

    def __init__(self, config: pytest.Config) -> None:
        config.stash[_LAST_MARK] = cpu_seconds()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, Any, Any]:
        report = yield
        now = cpu_seconds()
        report.cpu_seconds = now - item.config.stash[_LAST_MARK]
        item.config.stash[_LAST_MARK] = now
        return report


class _Costs(_Marks):
    """Adds the costs up and prints them, in the process that gets the reports."""

    def __init__(self, config: pytest.Config) -> None:
        super().__init__(config)
        self.config = config
        self.tests: dict[str, Cost] = defaultdict(Cost)
        self.begun = time.perf_counter()
        self.machine = machine_seconds()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.tests[report.nodeid].add(report.duration, getattr(report, "cpu_seconds", 0.0))

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        files: dict[str, Cost] = defaultdict(Cost)
        for name, cost in self.tests.items():
            files[name.partition("::")[0]].add(cost.wall, cost.cpu)
            files[name.partition("::")[0]].tests += 1
        wall, machine = time.perf_counter() - self.begun, machine_seconds() - self.machine
        if file := self.config.getoption("costs_file"):
            file.write_text(json.dumps({name: astuple(cost)[:2] for name, cost in self.tests.items()}, indent=0))
        if self.config.getoption("costs"):
            write = terminalreporter.write_line
            for title, costs in (("files", files), ("tests", self.tests)):
                terminalreporter.section(f"{title} that cost most: CPU s, wall s")
                for name, cost in sorted(costs.items(), key=lambda item: -item[1].cpu)[:ROWS]:
                    write(f"{cost.cpu:8.1f} {cost.wall:8.1f}  {name}" + (f" ({cost.tests})" if cost.tests else ""))
            tests = sum(cost.cpu for cost in files.values())
            sums = f"{tests:.0f} s CPU of tests, {machine:.0f} s CPU of the machine, {wall:.0f} s wall"
            write(f"{len(self.tests)} tests: {sums}")
