"""What a request and an event cost in the workers of two source trees or more, in turns: ``make bench-trees``.

Instructions in user mode are what to compare: they repeat within a hundredth, also where other work disturbs the time.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.hot_path.own_gateway import NAME, OwnGateway, own_gateway
from benchmarks.hot_path.processes import on_cpus, tree
from benchmarks.hot_path.programs import NotHere, compiled, found, upstream
from benchmarks.hot_path.rounds import Bench, Round, measure, warm_up
from benchmarks.hot_path.run import allow_many_files, cpus
from benchmarks.hot_path.scenarios import STREAMS, UNARY

_COUNTED = ("instructions:u", "cycles:u")
_HEADS = ("scenario", "tree", "instructions", "cycles", "CPU µs", "failed")


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """What one round has cost a worker.

    Attributes
    ----------
    counts
        Of each of `_COUNTED`, in user mode, per answer or per event of streams.
    """

    tree: str
    scenario: str
    counts: tuple[float, ...]
    cpu_us: float
    failed: int


def main() -> int:
    """Measure, and print a table of medians; 1 when nothing can be measured, or a request failed."""
    asked = _arguments()
    with tempfile.TemporaryDirectory(prefix="bias-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        try:
            costs = list(_rounds(dict(asked.trees), folder, asked.cycles, asked.seconds))
        except NotHere as reason:
            print(f"bench: {reason}", file=sys.stderr)
            return 1
    print("\n".join(_table(costs)))
    return 1 if any(one.failed for one in costs) else 0


def _rounds(trees: Mapping[str, Path], folder: Path, cycles: int, seconds: float) -> Iterator[Cost]:
    perf = found("perf")
    cpu, load_cpu, rest = cpus()
    allow_many_files()
    with ExitStack() as stack:
        stack.enter_context(on_cpus(rest))
        load = compiled("load", folder)
        port = stack.enter_context(upstream(folder, load_cpu))
        gateways: dict[str, OwnGateway] = {}
        for name, path in trees.items():
            (folder / name).mkdir(mode=0o755)
            gateways[name] = stack.enter_context(own_gateway(folder / name, port, cpu, rest, path))
        bench = Bench(load=load, cpu=load_cpu, pids=lambda: tree(os.getpid()))
        for gateway in gateways.values():
            warm_up(bench, gateway.proxies[0])
        for cycle in range(cycles):
            for scenario in (UNARY, STREAMS):
                for name, gateway in gateways.items():
                    proxy = gateway.proxies[0]
                    (worker,) = proxy.pids()
                    print(f"cycle {cycle + 1}, {scenario.name}, {name}", file=sys.stderr, flush=True)
                    one, counts = _counted(perf, worker, partial(measure, bench, proxy, scenario, seconds, cycle))
                    gateway.await_shipped()
                    yield _cost(name, one, counts)


def _cost(name: str, one: Round, counts: tuple[int, ...]) -> Cost:
    return Cost(
        tree=name,
        scenario=one.scenario,
        counts=tuple(count / one.units for count in counts),
        cpu_us=one.cpu.total / one.units * 1e6,
        failed=one.failed + one.unfinished + one.odd,
    )


def _counted(perf: str, pid: int, load: Callable[[], Round]) -> tuple[Round, tuple[int, ...]]:
    """Count what a process does while there is load on it."""
    command = [perf, "stat", "-x,", "-e", ",".join(_COUNTED), "-p", str(pid)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    one = load()
    process.send_signal(signal.SIGINT)
    told = process.communicate()[1]
    counts = tuple(int(count) for count in re.findall(r"^(\d+),", told, re.MULTILINE))
    if len(counts) != len(_COUNTED):
        raise NotHere(f"perf cannot count on this machine: {told.strip()}")
    return one, counts


def _table(costs: list[Cost]) -> Iterator[str]:
    rounds = {key: [one for one in costs if (one.scenario, one.tree) == key] for key in _keys(costs)}
    for row in (_HEADS, ["---"] * len(_HEADS), *(_row(key, ones) for key, ones in rounds.items())):
        yield f"| {' | '.join(row)} |"


def _keys(costs: list[Cost]) -> list[tuple[str, str]]:
    return sorted({(one.scenario, one.tree): None for one in costs}, key=lambda key: (key[0] != UNARY.name, key[1]))


def _row(key: tuple[str, str], ones: list[Cost]) -> tuple[str, ...]:
    shown = [_spread([one.counts[place] for one in ones], 0) for place in range(len(_COUNTED))]
    return (*key, *shown, _spread([one.cpu_us for one in ones], 1), str(sum(one.failed for one in ones)))


def _spread(values: list[float], digits: int) -> str:
    return f"{median(values):,.{digits}f} ({min(values):,.{digits}f} to {max(values):,.{digits}f})"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="hot_path.trees", description=__doc__)
    parser.add_argument("trees", type=_tree, nargs="+", metavar="NAME=FOLDER", help=f"a checkout of {NAME}")
    parser.add_argument("--cycles", type=int, default=3, help="how often each scenario comes to each tree")
    parser.add_argument("--seconds", type=float, default=2.0, help="of load in a round")
    return parser.parse_args()


def _tree(named: str) -> tuple[str, Path]:
    name, _, folder = named.partition("=")
    path = Path(folder).resolve()
    if not (name.isidentifier() and (path / "gateway" / "worker.py").exists()):
        raise argparse.ArgumentTypeError(f"{named}: a name and a folder with the sources are needed")
    return name, path


if __name__ == "__main__":
    sys.exit(main())
