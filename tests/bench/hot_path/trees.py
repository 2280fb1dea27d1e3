"""What a request and an event cost in the workers of two source trees or more, in turns (docs/development.md).

Instructions in user mode are what to compare: they repeat within a hundredth, also where other work disturbs the time.
Where the hardware's counters are missing, callgrind counts them, with fewer streams at once.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median

from bench.hot_path.counting import Counts, counter
from bench.hot_path.own_gateway import NAME, OwnGateway, own_gateway
from bench.hot_path.processes import on_cpus, tree
from bench.hot_path.programs import NotHere, compiled, upstream
from bench.hot_path.rounds import Bench, Round, measure, warm_up
from bench.hot_path.run import allow_many_files, cpus
from bench.hot_path.scenarios import STREAMS, UNARY

#: So few that a worker under callgrind keeps up.
_FEW_STREAMS = replace(STREAMS, connections=10)
_HEADS = ("scenario", "tree", "instructions", "cycles", "CPU µs", "failed")


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """What one round has cost a worker.

    Attributes
    ----------
    counts
        Instructions and cycles in user mode, per answer or per event of streams; None: not counted.
    cpu_us
        CPU time; None where counting takes most of it.
    """

    tree: str
    scenario: str
    counts: tuple[float | None, ...]
    cpu_us: float | None
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
    counts_by = counter(folder)
    print(f"counted by {counts_by.name}", file=sys.stderr, flush=True)
    cpu, load_cpu, rest = cpus()
    allow_many_files()
    with ExitStack() as stack:
        stack.enter_context(on_cpus(rest))
        load = compiled("load", folder)
        port = stack.enter_context(upstream(folder, load_cpu))
        gateways: dict[str, OwnGateway] = {}
        for name, path in trees.items():
            (folder / name).mkdir(mode=0o755)
            gateways[name] = stack.enter_context(
                own_gateway(folder / name, port, cpu, rest, [*counts_by.paths(name), path])
            )
        bench = Bench(load=load, cpu=load_cpu, pids=lambda: tree(os.getpid()))
        for gateway in gateways.values():
            warm_up(bench, gateway.proxies[0])
        for cycle in range(cycles):
            for scenario in (UNARY, STREAMS if counts_by.quick else _FEW_STREAMS):
                for name, gateway in gateways.items():
                    proxy = gateway.proxies[0]
                    (worker,) = proxy.pids()
                    print(f"cycle {cycle + 1}, {scenario.name}, {name}", file=sys.stderr, flush=True)
                    one, counts = counts_by.counted(worker, partial(measure, bench, proxy, scenario, seconds, cycle))
                    gateway.await_shipped()
                    yield _cost(name, one, counts, quick=counts_by.quick)


def _cost(name: str, one: Round, counts: Counts, *, quick: bool) -> Cost:
    return Cost(
        tree=name,
        scenario=one.scenario,
        counts=tuple(None if count is None else count / one.units for count in counts),
        cpu_us=one.cost if quick else None,
        failed=one.failed + one.unfinished + one.odd,
    )


def _table(costs: list[Cost]) -> Iterator[str]:
    rounds = {key: [one for one in costs if (one.scenario, one.tree) == key] for key in _keys(costs)}
    for row in (_HEADS, ["---"] * len(_HEADS), *(_row(key, ones) for key, ones in rounds.items())):
        yield f"| {' | '.join(row)} |"


def _keys(costs: list[Cost]) -> list[tuple[str, str]]:
    return sorted({(one.scenario, one.tree): None for one in costs}, key=lambda key: (key[0] != UNARY.name, key[1]))


def _row(key: tuple[str, str], ones: list[Cost]) -> tuple[str, ...]:
    shown = [_spread(values, 0) for values in zip(*(one.counts for one in ones), strict=True)]
    return (*key, *shown, _spread([one.cpu_us for one in ones], 1), str(sum(one.failed for one in ones)))


def _spread(found: Iterable[float | None], digits: int) -> str:
    values = [value for value in found if value is not None]
    if not values:
        return "-"
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
    if not (name.isidentifier() and (path / "gateway" / "processes" / "worker.py").exists()):
        raise argparse.ArgumentTypeError(f"{named}: a name and a folder with the sources are needed")
    return name, path


if __name__ == "__main__":
    sys.exit(main())
