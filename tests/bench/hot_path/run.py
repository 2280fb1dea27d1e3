"""One whole run: everything started beside everything else, and rounds that take turns."""

import os
import resource
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.hot_path.own_gateway import NAME, OVER_TLS, UNCAPTURED, OwnGateway, Shipped, own_gateway
from bench.hot_path.processes import on_cpus, tree
from bench.hot_path.programs import NotHere, compiled, tls_front, upstream
from bench.hot_path.proxies import TLS_NGINX, Launcher, running, tls_nginx
from bench.hot_path.rounds import Bench, Proxy, Round, measure, memory_per_stream, warm_up
from bench.hot_path.sameness import differing
from bench.hot_path.scenarios import FURTHER, STEADY, STREAMS, UNARY, Scenario

DIRECT = "no proxy"

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What is run."""

    launchers: Mapping[str, Launcher]  #: of the proxies beside our own
    cycles: int
    seconds: float  #: of load in a round


@dataclass(kw_only=True, slots=True)
class Results:
    """What came of it.

    Attributes
    ----------
    memory
        Bytes per open stream.
    differing
        How many answers were not the upstream's, and of how many.
    captures
        Requests by what the gateway says it captured of them.
    """

    versions: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    rounds: list[Round] = field(default_factory=list)
    shipped: list[Shipped] = field(default_factory=list)
    memory: dict[str, float] = field(default_factory=dict)
    differing: dict[str, tuple[int, int]] = field(default_factory=dict)
    captures: dict[str, int] = field(default_factory=dict)

    def faults(self) -> list[str]:
        """What the gateway has done wrong, whatever it has cost."""
        own = [one for one in self.rounds if one.proxy in {NAME, UNCAPTURED, OVER_TLS}]
        counted = {
            "requests failed": sum(one.failed + one.unfinished for one in own),
            "streams had other events than the upstream's": sum(one.odd for one in own),
            "answers differ from the upstream's": sum(
                self.differing.get(name, (0, 0))[0] for name in (NAME, UNCAPTURED, OVER_TLS)
            ),
            "exchanges were not kept": sum(n for outcome, n in self.captures.items() if outcome.startswith("dropped")),
        }
        return [f"{count} {what}" for what, count in counted.items() if count]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Started:
    """What stands beside each other while it is measured."""

    bench: Bench
    gateway: OwnGateway
    proxies: list[Proxy]
    upstream: int


def run(plan: Plan, folder: Path, say: Say) -> Results:
    """Measure our gateway and others.

    Raises
    ------
    NotHere
        The machine lacks what any measurement needs.
    """
    results = Results()
    with _everything(plan, folder, results, say) as started:
        for proxy in started.proxies:
            say(f"{proxy.name}: memory of open streams, bytes of answers")
            _look_at(proxy, started, results)
        started.gateway.await_shipped()
        for cycle in range(plan.cycles):
            _take_turns(cycle, plan.seconds, started, results, say)
        results.captures = started.gateway.captures()
    return results


def _look_at(proxy: Proxy, started: _Started, results: Results) -> None:
    """See what need be seen once, and of memory can be: a process keeps what it once had."""
    results.versions[proxy.name] = proxy.version
    warm_up(started.bench, proxy)
    size = None if proxy.name == UNCAPTURED or proxy.tls else memory_per_stream(started.bench, proxy)
    if size is not None:
        results.memory[proxy.name] = size
    results.differing[proxy.name] = differing(proxy, started.upstream)


def _take_turns(cycle: int, seconds: float, started: _Started, results: Results, say: Say) -> None:
    direct = Proxy(name=DIRECT, port=started.upstream, version="", pids=lambda: ())
    for scenario in (UNARY, STEADY, STREAMS, *FURTHER):
        for proxy in _asked(scenario, (direct, *started.proxies)):
            before = started.gateway.behind()
            one = measure(started.bench, proxy, scenario, seconds, cycle)
            say(f"cycle {cycle + 1}, {scenario.name}, {proxy.name}: {_told(one)}")
            results.rounds.append(one)
            if proxy.name in {NAME, OVER_TLS}:  # its spool is emptied before the next is looked at
                results.shipped.append(started.gateway.shipped_since(before, one))


def _asked(scenario: Scenario, proxies: Sequence[Proxy]) -> list[Proxy]:
    """Which proxies have their turn: all of them, but of further loads ours and nginx only."""
    if scenario not in FURTHER:
        return [proxy for proxy in proxies if not proxy.tls]
    compared = {OVER_TLS, TLS_NGINX} if scenario.tls else {NAME, "nginx"}
    return [proxy for proxy in proxies if proxy.name in compared]


@contextmanager
def _everything(plan: Plan, folder: Path, results: Results, say: Say) -> Iterator[_Started]:
    """Start whatever can be started; note what cannot."""
    cpu, load_cpu, rest = cpus()
    allow_many_files()
    with ExitStack() as stack:
        stack.enter_context(on_cpus(rest))
        load = compiled("load", folder)
        port = stack.enter_context(upstream(folder, load_cpu))
        tls = None
        try:
            tls = stack.enter_context(tls_front(folder, port, load_cpu))
        except NotHere as reason:
            results.missing["TLS"] = str(reason)
        gateway = stack.enter_context(own_gateway(folder, port, cpu, rest, tls=tls))
        proxies = [*gateway.proxies]
        if tls is not None:
            proxy = stack.enter_context(running(TLS_NGINX, tls_nginx, folder, tls[0], cpu))
            proxies.append(replace(proxy, tls=True))
        for name, launcher in plan.launchers.items():
            say(f"{name}: starting")
            try:
                proxies.append(stack.enter_context(running(name, launcher, folder, port, cpu)))
            except NotHere as reason:
                results.missing[name] = str(reason)
        bench = Bench(load=load, cpu=load_cpu, pids=lambda: {*tree(os.getpid()), *gateway.store()})
        yield _Started(bench=bench, gateway=gateway, proxies=proxies, upstream=port)


def cpus() -> tuple[int, int, list[int]]:
    """Give the CPU of the proxies, that of load and upstream, and those of all else.

    Raises
    ------
    NotHere
        There is only one.
    """
    ours = sorted(os.sched_getaffinity(0))
    if len(ours) < 2:
        raise NotHere("two CPUs are needed: one for the proxies, one for load and upstream")
    return ours[0], ours[1], ours[2:] or ours[1:]


def allow_many_files() -> None:
    """Let this process and its children open as many as the machine allows."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _told(one: Round) -> str:
    spent = "nothing came" if one.cost is None else f"{one.cost:,.1f} us each"
    failed = one.failed + one.unfinished
    return f"{one.units} in {one.seconds:.1f} s, {spent}, {failed} failed, others {one.others:.2f} CPUs"
