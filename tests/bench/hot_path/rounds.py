"""One round of a scenario on a proxy: load is put on it, and what it has used meanwhile is seen."""

import json
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.hot_path.processes import Cpu, Pids, busy_cpu, cpu_of, memory_of, on_cpus
from bench.hot_path.scenarios import OPEN_STREAMS, WARM_UP, Scenario, chat


@dataclass(frozen=True, kw_only=True, slots=True)
class Proxy:
    """What load is put on."""

    name: str
    port: int
    version: str
    pids: Pids  #: whose CPU time and memory are counted
    headers: Mapping[str, str] = field(default_factory=dict)  #: which a request needs here
    keys: tuple[str, ...] = ()  #: of clients, where keys are checked
    tls: bool = False  #: whether it speaks TLS to the deployment
    suffix: str = ""  #: of the model's name, where that decides what is done with a request


@dataclass(frozen=True, kw_only=True, slots=True)
class Round:
    """One scenario on one proxy, once.

    Attributes
    ----------
    refused
        Answers with status 400. Where the deployment was not asked to refuse, they count as failed.
    odd
        Whole answers with another number of events than the upstream sends.
    cpu
        Seconds of the proxy's processes.
    others
        CPUs that were busy with none of the measurement's processes.
    whole, first
        Microseconds until the end of an answer and until its first event, ``{"p50", "p99"}``; None without any.
    """

    proxy: str
    scenario: str
    cycle: int
    seconds: float
    answers: int
    failed: int
    refused: int
    unfinished: int
    odd: int
    events: int
    cpu: Cpu
    others: float
    whole: dict[str, int] | None
    first: dict[str, int] | None

    @property
    def units(self) -> int:
        """What the CPU time was spent on: events of streams, otherwise answers."""
        return self.events or self.answers

    @property
    def cost(self) -> float | None:
        """Microseconds of CPU per answer, or per event of streams."""
        return self.cpu.total / self.units * 1e6 if self.units else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Bench:
    """Where load comes from and what belongs to the measurement."""

    load: Path  #: the program
    cpu: int  #: which it runs on
    pids: Pids  #: everything that was started for the measurement, and its caller


def request(proxy: Proxy, scenario: Scenario, client: int = 0) -> bytes:
    """The bytes that the load generator sends again and again for a client."""
    body = chat(scenario.model + proxy.suffix, stream=bool(scenario.texts))
    headers = {
        "Host": f"127.0.0.1:{proxy.port}",
        "User-Agent": f"bench-{client:04}",
        "Accept": "text/event-stream" if scenario.texts else "application/json",
        "Content-Type": "application/json",
        "Authorization": "Bearer sk-bench",
        "Content-Length": str(len(body)),
    } | {**proxy.headers}
    if proxy.keys:
        headers["Authorization"] = f"Bearer {proxy.keys[client]}"
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST /v1/chat/completions HTTP/1.1\r\n{lines}\r\n".encode() + body


def measure(bench: Bench, proxy: Proxy, scenario: Scenario, seconds: float, cycle: int) -> Round:
    """Put load on a proxy and see what it has used until the last answer was there."""
    began, used, own, busy = time.monotonic(), cpu_of(proxy.pids()), cpu_of(bench.pids()), busy_cpu()
    said = _put(bench, proxy, scenario, seconds)
    if not scenario.refused:
        said["failed"] += said["refused"]
        said["answers"] -= said["refused"]
    cpu = cpu_of(proxy.pids()) - used
    ours = cpu_of(bench.pids()) - own
    others = (busy_cpu() - busy - ours.total) / (time.monotonic() - began)
    return Round(
        proxy=proxy.name, scenario=scenario.name, cycle=cycle, cpu=cpu, others=max(others, 0.0), **said
    )  # fmt: skip


def warm_up(bench: Bench, proxy: Proxy) -> None:
    """Have everything loaded that the first requests load."""
    for scenario in WARM_UP:
        _put(bench, proxy, scenario, 0.5)


def memory_per_stream(bench: Bench, proxy: Proxy) -> float | None:
    """Bytes that each of many open streams adds to a proxy at the most, seen every tenth of a second.

    None unless each connection had one whole stream: otherwise not all were open.
    """
    before = most = memory_of(proxy.pids())

    def look() -> None:
        nonlocal most
        most = max(most, memory_of(proxy.pids()))

    said = _put(bench, proxy, OPEN_STREAMS, OPEN_STREAMS.ramp_ms / 1000 + 0.5, look)
    if said["answers"] != OPEN_STREAMS.connections:
        return None
    return (most - before) / OPEN_STREAMS.connections


def _put(
    bench: Bench, proxy: Proxy, scenario: Scenario, seconds: float, look: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    command = [
        bench.load,
        proxy.port,
        scenario.connections,
        seconds,
        scenario.ramp_ms,
        scenario.events,
        scenario.clients,
    ]
    with on_cpus({bench.cpu}):
        process = subprocess.Popen([str(one) for one in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(b"".join(request(proxy, scenario, client) for client in range(scenario.clients)))
    process.stdin.close()
    while True:
        try:
            process.wait(0.1)
        except subprocess.TimeoutExpired:
            look()
        else:
            break
    assert process.stdout is not None
    with process.stdout:
        said: dict[str, Any] = json.loads(process.stdout.read())
    return said
