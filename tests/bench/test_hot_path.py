"""The measurement of `make bench`, itself: that it counts what happens, and tells a quiet round from another."""

import os
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from bench.hot_path.counting import Callgrind, counter
from bench.hot_path.figures import Figure, added_wait, each, ratio, together
from bench.hot_path.goals import Goal
from bench.hot_path.own_gateway import Shipped
from bench.hot_path.page import page
from bench.hot_path.processes import Cpu, busy_cpu, cpu_of, memory_of, tree
from bench.hot_path.programs import NotHere, compiled, tls_front, upstream
from bench.hot_path.proxies import COMMON, nginx
from bench.hot_path.report import document
from bench.hot_path.rounds import Bench, Proxy, Round, measure
from bench.hot_path.run import DIRECT, Plan, Results, run
from bench.hot_path.sameness import differing
from bench.hot_path.scenarios import FURTHER, REQUEST_BYTES, STEADY, STREAMS, UNARY, Scenario, chat
from support.paths import ROOT, TESTS

from auditor.domain.estimate import Insufficient

FEW = Scenario(name="few streams", connections=4, texts=5, pace_ms=1)
ROUND = Round(
    proxy="biasmeter", scenario="unary", cycle=0, seconds=1.0, answers=1000, failed=0, refused=0, unfinished=0, odd=0,
    events=0, cpu=Cpu(0.03, 0.01), others=0.0, whole={"p50": 900, "p99": 2000}, first=None,
)  # fmt: skip


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    try:
        load = compiled("load", tmp_path_factory.mktemp("load"))
    except NotHere as reason:
        pytest.skip(str(reason))
    return Bench(load=load, cpu=min(os.sched_getaffinity(0)), pids=lambda: [os.getpid()])


@pytest.fixture(scope="module")
def direct(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    with upstream(tmp_path_factory.mktemp("upstream"), bench.cpu) as port:
        yield at(port)


def at(port: int) -> Proxy:
    return Proxy(name="direct", port=port, version="1", pids=lambda: ())


@contextmanager
def answering(answer: bytes, piece: int, *, close: bool = False, seen: list[bytes] | None = None) -> Iterator[Proxy]:
    """Run a server of one connection that answers every request alike, so many bytes at a time; ``seen``: requests."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            client, _ = listening.accept()
            if close:
                listening.close()  # the next connection is refused
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with client:
                while asked := client.recv(65536):
                    if seen is not None:
                        seen.append(asked)
                    for start in range(0, len(answer), piece):
                        client.sendall(answer[start : start + piece])
                    if close:
                        return

        serving = threading.Thread(target=serve)
        serving.start()
        yield at(listening.getsockname()[1])
        serving.join()


def test_a_request_has_one_size_whatever_it_asks_for() -> None:
    assert {len(chat(one.model, stream=stream)) for one in (UNARY, STREAMS) for stream in (False, True)} == {
        REQUEST_BYTES
    }


def test_answers_are_counted(bench: Bench, direct: Proxy) -> None:
    one = measure(bench, direct, replace(UNARY, connections=4), 0.2, 0)
    assert one.answers > 4
    assert (one.failed, one.odd, one.unfinished, one.events) == (0, 0, 0, 0)
    assert one.whole is not None
    assert 0 < one.whole["p50"] <= one.whole["p99"]
    assert one.first is None


def test_a_deployment_that_takes_its_time_sets_the_load(bench: Bench, direct: Proxy) -> None:
    one = measure(bench, direct, replace(STEADY, connections=4), 0.2, 0)
    assert one.answers >= 4
    assert one.answers <= 4 * (one.seconds * 1000 / STEADY.pace_ms + 1)
    assert (one.failed, one.odd, one.unfinished, one.events) == (0, 0, 0, 0)
    assert one.whole is not None
    assert one.whole["p50"] >= STEADY.pace_ms * 1000


def test_requests_that_the_deployment_refuses_are_answers(bench: Bench, direct: Proxy) -> None:
    (refusals,) = (scenario for scenario in FURTHER if scenario.refused)
    one = measure(bench, direct, replace(refusals, connections=4), 0.2, 0)
    assert (one.failed, one.odd, one.unfinished) == (0, 0, 0)
    assert one.refused == pytest.approx(one.answers / 5, abs=1)


def test_a_refusal_that_nobody_asked_for_is_a_failure(bench: Bench) -> None:
    with answering(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", 1000) as proxy:
        one = measure(bench, proxy, replace(UNARY, connections=1), 0.1, 0)
    assert one.answers == 0
    assert one.failed >= 1


def test_clients_have_their_turn(bench: Bench) -> None:
    """Each client has its own head and key, and all their requests are equally long."""
    seen: list[bytes] = []
    keys = tuple(f"sk-{number}" for number in range(3))
    with answering(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 1000, seen=seen) as proxy:
        one = measure(bench, replace(proxy, keys=keys), replace(UNARY, connections=1, clients=3), 0.1, 0)
    assert one.answers == len(seen) > 3
    for place, asked in enumerate(seen):
        assert b"\r\nUser-Agent: bench-000%d\r\n" % (place % 3) in asked
        assert b"\r\nAuthorization: Bearer sk-%d\r\n" % (place % 3) in asked
    assert len(set(map(len, seen))) == 1


def test_nginx_speaks_tls_for_the_upstream(direct: Proxy, tmp_path: Path) -> None:
    try:
        with tls_front(tmp_path, direct.port, min(os.sched_getaffinity(0))) as (port, authority):
            context = ssl.create_default_context(cafile=str(authority))
            with urllib.request.urlopen(f"https://127.0.0.1:{port}/v1/models", context=context, timeout=10) as answer:
                assert b'"mock"' in answer.read()
    except NotHere as reason:
        pytest.skip(str(reason))


def test_every_event_of_a_stream_is_counted(bench: Bench, direct: Proxy) -> None:
    one = measure(bench, direct, FEW, 0.2, 0)
    assert one.answers >= 4
    assert one.events == 8 * one.answers
    assert (one.failed, one.odd) == (0, 0)
    assert one.first is not None
    assert one.whole is not None
    assert one.whole["p50"] > one.first["p50"]


def test_answers_of_the_upstream_itself_do_not_differ(direct: Proxy) -> None:
    assert differing(direct, direct.port) == (0, 200)


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"2\r\nda\r\n" + b"A\r\nta: 1\n\ndat\r\n"
CHUNKED += b"7;x=1\r\na: 2\n\n\r\n" + b"0\r\nLast: 1\r\n\r\n"


@pytest.mark.parametrize("piece", [1, 7, 10_000])
def test_events_are_found_however_they_are_cut(bench: Bench, piece: int) -> None:
    two = Scenario(name="two", connections=1, texts=1, pace_ms=0)
    with answering(CHUNKED, piece) as proxy:
        one = measure(bench, proxy, two, 0.1, 0)
    assert one.answers > 0
    assert one.failed == 0
    assert one.events == 2 * one.answers
    assert one.odd == one.answers, "four events were expected"


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
        b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n",
        b"",
    ],
)
def test_what_is_no_whole_answer_is_a_failure(bench: Bench, answer: bytes) -> None:
    with answering(answer, 1000, close=True) as proxy:
        one = measure(bench, proxy, replace(UNARY, connections=1), 0.1, 0)
    assert one.answers == 0
    assert one.failed >= 1
    assert one.cost is None


def test_an_answer_that_ends_with_its_connection_is_whole(bench: Bench) -> None:
    with answering(b"HTTP/1.1 200 OK\r\n\r\nall of it", 1000, close=True) as proxy:
        one = measure(bench, proxy, replace(UNARY, connections=1), 0.1, 0)
    assert one.answers == 1


SPINNING = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "print('on', flush=True)\\nwhile True: pass"])
child.wait()
"""


def test_cpu_time_of_children_counts() -> None:
    with subprocess.Popen([sys.executable, "-c", SPINNING], stdout=subprocess.PIPE, text=True) as parent:
        try:
            assert parent.stdout is not None
            parent.stdout.readline()
            everyone, busy = tree(parent.pid), busy_cpu()
            assert everyone[0] == parent.pid
            assert len(everyone) == 2
            used = cpu_of(everyone)
            while (more := cpu_of(everyone) - used).total < 0.1:
                pass
            assert more.user > more.system
            assert busy_cpu() - busy > 0.05
            assert memory_of(everyone) > memory_of([parent.pid]) > 1_000_000
            assert cpu_of([parent.pid]).total < cpu_of(everyone).total
        finally:
            for pid in reversed(tree(parent.pid)):
                os.kill(pid, 9)


def cycles(proxy: str, *costs: float, others: float = 0.0) -> list[Round]:
    return [
        replace(ROUND, proxy=proxy, cycle=cycle, cpu=Cpu(cost, 0), answers=10**6, others=others)
        for cycle, cost in enumerate(costs)
    ]


def figure(value: float, low: float, high: float, rounds: int, *, disturbed: bool = False) -> Figure:
    return Figure(value=value, low=low, high=high, rounds=rounds, disturbed=disturbed)


def cost(one: Round) -> float | None:
    return one.cost


def test_disturbed_rounds_count_only_where_there_are_no_others() -> None:
    quiet, disturbed = cycles("a", 10, 12, 14), cycles("a", 30, 40, others=0.5)
    assert each([*quiet, *disturbed], cost) == figure(12, 10, 14, 3)
    assert each(disturbed, cost) == figure(35, 30, 40, 2, disturbed=True)
    assert each([], cost) == Insufficient(reason="not_measured")


def test_proxies_are_compared_within_a_cycle() -> None:
    """Both are twice as slow in the second cycle: the ratio stays."""
    rounds = [*cycles("a", 30, 60), *cycles("b", 10, 20)]
    assert ratio(rounds, "unary", "a", "b") == figure(3, 3, 3, 2)
    disturbed = replace(rounds[3], others=1.0)
    assert ratio([*rounds[:3], disturbed], "unary", "a", "b") == figure(3, 3, 3, 1)
    assert ratio(rounds, "unary", "a", "c") == Insufficient(reason="not_measured")
    assert ratio(rounds, "streams", "a", "b") == Insufficient(reason="not_measured")


def test_worker_parent_and_shipper_are_compared_together() -> None:
    rounds = [*cycles("biasmeter", 30, 60), *cycles("nginx", 10, 20)]
    each_cost = [(Cpu(30, 0), Cpu(0, 1), Cpu(9, 0)), (Cpu(60, 0), Cpu(1, 1), Cpu(16, 2))]
    shipped = [
        Shipped(
            scenario="unary", cycle=cycle, exchanges=10**6, units=10**6, worker=worker, parent=parent, shipper=shipper,
            store=Cpu(99, 0), after=0.0,
        )
        for cycle, (worker, parent, shipper) in enumerate(each_cost)
    ]  # fmt: skip
    assert together(rounds, shipped, "unary", "nginx") == figure(4, 4, 4, 2)
    assert together(rounds, shipped[:1], "unary", "nginx") == figure(4, 4, 4, 1)
    assert together(rounds, shipped, "streams", "nginx") == Insufficient(reason="not_measured")
    (apart,) = document(PLAN, results(shipped=shipped), dict.fromkeys(TOLD, "x"))["shipping"]["each_us"].values()
    assert {name: apart[name] for name in ("worker", "parent", "shipper", "store")} == {
        "worker": 45.0, "parent": 1.5, "shipper": 13.5, "store": 99.0,
    }  # fmt: skip


def test_a_wait_is_what_a_proxy_adds() -> None:
    first = replace(ROUND, scenario="streams", proxy="a", first={"p50": 500, "p99": 900})
    straight = replace(first, proxy=DIRECT, first={"p50": 100, "p99": 200})
    assert added_wait([first, straight], "streams", "a", DIRECT, "p50") == figure(400, 400, 400, 1)


@pytest.mark.parametrize(("value", "verdict"), [(1.9, "met"), (2.0, "met"), (2.5, "met, not the aim"), (3.1, "missed")])
def test_a_goal_is_judged(value: float, verdict: str) -> None:
    goal = Goal(what="x", must=3, aim=2)
    assert goal.verdict(figure(value, 0, 9, 3)) == verdict
    assert goal.verdict(figure(value, 0, 9, 3, disturbed=True)) == f"{verdict} (disturbed)"
    assert goal.verdict(Insufficient(reason="not_measured")) == "not measured"


def test_a_goal_to_be_exceeded_is_judged() -> None:
    goal = Goal(what="x", must=120, at_least=True)
    assert goal.verdict(figure(121, 0, 9, 3)) == "met"
    assert goal.verdict(figure(119, 0, 9, 3)) == "missed"


PLAN = Plan(launchers=COMMON, cycles=2, seconds=1.0)
TOLD = ("at", "cpu", "cpus", "kernel", "python", "call_ns", "source", "aiohttp", "uvloop", "msgspec")


def results(**changes: object) -> Results:
    found = Results(
        versions={"biasmeter": "0.1.0", "nginx": "1.0"},
        missing={"haproxy": "haproxy is not installed"},
        rounds=[*cycles("biasmeter", 30, 32), *cycles("nginx", 10, 11)],
        memory={"biasmeter": 38_512.0},
        differing={"biasmeter": (0, 200), "biasmeter, capture 0": (0, 200), "nginx": (1, 200)},
        captures={"stored": 2000},
    )
    for name, value in changes.items():
        setattr(found, name, value)
    return found


def test_the_page_says_what_was_found_and_what_was_not() -> None:
    shown = page(document(PLAN, results(), dict.fromkeys(TOLD, "x")))
    assert "| CPU per request, beside nginx | 2.95 (2.91 to 3.00) | must <= 3, aim <= 2 | met, not the aim |" in shown
    assert "| KB per open stream | 38.5 (38.5 to 38.5) | must <= 40, aim <= 32 | met, not the aim |" in shown
    assert "| CPU per request, LiteLLM's beside ours | - | must >= 150, aim >= 200 | not measured |" in shown
    assert "| nginx 1.0 | - | 1 of 200 |" in shown
    assert "- not measured: haproxy: haproxy is not installed" in shown


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"rounds": [replace(ROUND, failed=2, unfinished=1)]}, "3 requests failed"),
        ({"rounds": [replace(ROUND, odd=1)]}, "1 streams had other events than the upstream's"),
        ({"differing": {"biasmeter": (2, 9), "biasmeter, capture 0": (1, 9)}}, "3 answers differ from the upstream's"),
        ({"captures": {"stored": 9, "dropped_spool_full": 4}}, "4 exchanges were not kept"),
    ],
)
def test_what_the_gateway_did_wrong_is_said(changes: dict[str, object], fault: str) -> None:
    assert results().faults() == []
    assert results(**changes).faults() == [fault]


@pytest.mark.parametrize("lacking", [lambda folder: nginx(folder, 1, 2), lambda folder: compiled("load", folder)])
def test_what_is_not_installed_is_said(
    lacking: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("bench.hot_path.programs._ELSEWHERE", "")
    with pytest.raises(NotHere, match="is not installed"):
        lacking(tmp_path)


@pytest.mark.slow
def test_an_unknown_peer_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench.hot_path", "--peers", "litellm,apache"],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(TESTS)},
    )  # fmt: skip
    assert done.returncode == 2
    assert "no such peer: apache" in done.stderr


@pytest.mark.slow
def test_a_tree_needs_a_name_and_sources(tmp_path: Path) -> None:
    for named in (str(tmp_path), f"a={tmp_path}", f"two words={ROOT}"):
        done = subprocess.run(
            [sys.executable, "-m", "bench.hot_path.trees", named],
            capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT / "tests")},
        )  # fmt: skip
        assert done.returncode == 2
        assert "a name and a folder with the sources are needed" in done.stderr


SPIN = """
import sys
print("up", flush=True)
sys.stdin.readline()
sum(range(300_000))
print("done", flush=True)
sys.stdin.readline()
"""


@pytest.mark.slow
def test_callgrind_counts_a_process_while_there_is_load_on_it(tmp_path: Path) -> None:
    try:
        counting = Callgrind(tmp_path)
    except NotHere as reason:
        pytest.skip(str(reason))
    (shim,) = counting.paths("one")
    # The shim takes a process for a worker by its command line.
    command = [shim / "python", "-c", SPIN, "gateway.processes.worker"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def spin() -> Round:
            print(file=process.stdin, flush=True)
            assert process.stdout is not None
            assert process.stdout.readline() == "done\n"
            return ROUND

        assert process.stdout.readline() == "up\n"
        one, (instructions, cycles) = counting.counted(process.pid, spin)
        process.kill()
    assert one is ROUND
    assert cycles is None
    assert instructions is not None
    assert 300_000 * 10 < instructions < 300_000 * 200


def test_without_perf_and_valgrind_nothing_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("bench.hot_path.programs._ELSEWHERE", "")
    with pytest.raises(NotHere, match="perf is not installed, and valgrind is not installed"):
        counter(tmp_path)


@pytest.mark.slow
def test_a_machine_without_counters_is_counted_by_callgrind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, said in (("perf", "<not supported>,,instructions:u"), ("valgrind", ""), ("callgrind_control", "")):
        (tmp_path / name).write_text(f"#!/bin/sh\necho '{said}' >&2\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert counter(tmp_path).name == "callgrind"
    (tmp_path / "perf").write_text("#!/bin/sh\nprintf '17,,instructions:u\\n4,,cycles:u\\n' >&2\n")
    assert counter(tmp_path).name == "perf"


@pytest.mark.bench
@pytest.mark.timeout(900)
@pytest.mark.skipif(not (shutil.which("perf") or shutil.which("valgrind")), reason="neither perf nor valgrind")
def test_one_tree_under_two_names_costs_the_same_instructions() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench.hot_path.trees", f"a={ROOT}", f"b={ROOT}", "--cycles=1", "--seconds=1"],
        stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, "PYTHONPATH": str(ROOT / "tests")},
    )  # fmt: skip
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines()[2:]]
    assert [row[:2] for row in rows] == [["unary", "a"], ["unary", "b"], ["streams", "a"], ["streams", "b"]]
    assert {row[-1] for row in rows} == {"0"}
    a, b = (int(row[2].partition(" ")[0].replace(",", "")) for row in rows[:2])
    assert a == pytest.approx(b, rel=0.03)


@pytest.mark.bench
@pytest.mark.timeout(900)
def test_a_whole_run_has_every_part_and_no_fault(tmp_path: Path) -> None:
    try:
        found = run(Plan(launchers=COMMON, cycles=1, seconds=1.0), tmp_path, print)
    except NotHere as reason:
        pytest.skip(str(reason))
    assert found.faults() == []
    assert found.memory["biasmeter"] > 0
    assert {one.proxy for one in found.rounds} == {DIRECT, *found.versions}
    assert sum(one.exchanges for one in found.shipped) > 0
    assert found.versions.keys() | found.missing.keys() >= COMMON.keys()
