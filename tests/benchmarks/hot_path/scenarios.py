"""What is asked of every proxy, and what one round of it has cost."""

import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.hot_path.processes import Cpu, Pids, busy_cpu, cpu_of, memory_of, on_cpus

if TYPE_CHECKING:
    from benchmarks.hot_path.proxies import Proxy

REQUEST_BYTES = 1024
#: What the upstream adds to the events of text: the finish reason, the usage and the terminator.
_ENDING = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Scenario:
    """A kind of load: so many connections, each sending the same request again when it has been answered."""

    name: str
    connections: int
    texts: int = 0  #: events of text in a stream; 0: no stream
    pace_ms: int = 0  #: between two of them
    ramp_ms: int = 0  #: over which the connections are opened, so that streams do not keep step

    @property
    def model(self) -> str:
        """The name that tells the upstream the shape of its answer."""
        return f"mock-{self.texts}-{self.pace_ms}"

    @property
    def events(self) -> int:
        """Events of one whole answer."""
        return self.texts + _ENDING if self.texts else 0


UNARY = Scenario(name="unary", connections=64)
STREAMS = Scenario(name="streams", connections=100, texts=64, pace_ms=10, ramp_ms=100)
#: Slow, so that all streams are open at once long before the first ends.
OPEN_STREAMS = Scenario(name="open streams", connections=500, texts=64, pace_ms=100, ramp_ms=2000)
_WARM_UP = (Scenario(name="warm-up", connections=8), Scenario(name="warm-up", connections=8, texts=64, ramp_ms=50))

MODELS = tuple(dict.fromkeys(scenario.model for scenario in (UNARY, STREAMS, OPEN_STREAMS, *_WARM_UP)))


@dataclass(frozen=True, kw_only=True, slots=True)
class Round:
    """One scenario on one proxy, once.

    Attributes
    ----------
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


def chat(model: str, *, stream: bool) -> bytes:
    """A chat completion's request body of 1 KB."""
    body: dict[str, Any] = {"model": model, "temperature": 0.2, "max_tokens": 256}
    if stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    words = "Which of two neighbours should keep the key? "

    def with_text(text: str) -> bytes:
        said = [{"role": "system", "content": "Answer in one line."}, {"role": "user", "content": text}]
        return json.dumps(body | {"messages": said}).encode()

    return with_text((words * 30)[: REQUEST_BYTES - len(with_text(""))])


def request(proxy: "Proxy", scenario: Scenario) -> bytes:
    """The bytes that the load generator sends again and again."""
    body = chat(scenario.model + proxy.suffix, stream=bool(scenario.texts))
    headers = {
        "Host": f"127.0.0.1:{proxy.port}",
        "User-Agent": "bench",
        "Accept": "text/event-stream" if scenario.texts else "application/json",
        "Content-Type": "application/json",
        "Authorization": "Bearer sk-bench",
        "Content-Length": str(len(body)),
    } | {**proxy.headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST /v1/chat/completions HTTP/1.1\r\n{lines}\r\n".encode() + body


def measure(bench: Bench, proxy: "Proxy", scenario: Scenario, seconds: float, cycle: int) -> Round:
    """Put load on a proxy and see what it has used until the last answer was there."""
    began, used, own, busy = time.monotonic(), cpu_of(proxy.pids()), cpu_of(bench.pids()), busy_cpu()
    said = _put(bench, proxy, scenario, seconds)
    cpu = cpu_of(proxy.pids()) - used
    ours = cpu_of(bench.pids()) - own
    others = (busy_cpu() - busy - ours.total) / (time.monotonic() - began)
    return Round(
        proxy=proxy.name, scenario=scenario.name, cycle=cycle, cpu=cpu, others=max(others, 0.0), **said
    )  # fmt: skip


def warm_up(bench: Bench, proxy: "Proxy") -> None:
    """Have everything loaded that the first requests load."""
    for scenario in _WARM_UP:
        _put(bench, proxy, scenario, 0.5)


def memory_per_stream(bench: Bench, proxy: "Proxy") -> float | None:
    """Bytes that each of many open streams adds to a proxy at the most, seen every tenth of a second.

    None if a stream failed: they were not all open.
    """
    before = most = memory_of(proxy.pids())

    def look() -> None:
        nonlocal most
        most = max(most, memory_of(proxy.pids()))

    said = _put(bench, proxy, OPEN_STREAMS, OPEN_STREAMS.ramp_ms / 1000 + 0.5, look)
    if said["failed"] or said["unfinished"]:
        return None
    return (most - before) / OPEN_STREAMS.connections


def _put(
    bench: Bench, proxy: "Proxy", scenario: Scenario, seconds: float, look: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    command = [bench.load, proxy.port, scenario.connections, seconds, scenario.ramp_ms, scenario.events]
    with on_cpus({bench.cpu}):
        process = subprocess.Popen([str(one) for one in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(request(proxy, scenario))
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
