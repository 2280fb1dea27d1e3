"""What parts on a request's way cost, and the largest plan: figures of ``docs/probes.md`` and ``docs/design``.

Run: make measurements PYTEST_ARGS="tests/bench/test_costs.py -s"
"""

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import make_dataclass
from pathlib import Path
from statistics import median
from typing import get_type_hints

import msgspec
import pytest
from support.documents.hostile_texts import HOSTILE
from support.paths import ROOT
from support.stores.exchanges import count, exchange

from auditor.config import Price
from auditor.domain.exchange import Exchange
from auditor.domain.ids import new_id, new_id_text
from auditor.domain.keys import Key
from gateway.errors import Limited
from gateway.limits.key_limits import KeyLimits, TokenCount
from gateway.recording.counters import Counters
from gateway.recording.recorder import Recorder
from gateway.recording.redaction import Redactor
from gateway.recording.spool import SpoolWriter

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]

MIB = 1 << 20
SECRET = "write to jo.doe@example.com "
WORDS = "The ground is level where the two of them stand. "


def microseconds(work: Callable[[], object], least: float = 0.3) -> float:
    """The median time of one call; as many are made as fill `least` seconds, three at least."""
    taken: list[float] = []
    began = time.perf_counter()
    while len(taken) < 3 or time.perf_counter() - began < least:
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return median(taken) * 1e6


def of_many(work: Callable[[], object], calls: int = 1000) -> float:
    """The time of one call where it is too short to be taken by itself."""

    def many() -> None:
        for _ in range(calls):
            work()

    return microseconds(many) / calls


def conditions() -> str:
    return f"\nPython {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores"


def asked(text: str) -> bytes:
    return json.dumps({"model": "gpt", "messages": [{"role": "user", "content": text}]}).encode()


def streamed(pieces: list[str]) -> bytes:
    chunks = [{"choices": [{"index": 0, "delta": {"content": piece}}], "id": "c" * 120} for piece in pieces]
    return b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks)


def test_redaction() -> None:
    redactor = Redactor(("keys", "email", "phone", "card"))
    ordinary = {"request": asked(WORDS * 20), "response": asked(WORDS * 10)}
    pieces = ["level "] * 128
    kinds: dict[str, tuple[Exchange, bool]] = {
        "1 KB and 0.5 KB, nothing in it": (exchange(**ordinary), False),
        "the same with one address": (exchange(**ordinary | {"request": asked(WORDS * 20 + SECRET)}), True),
        "128 events, nothing in them": (exchange(stream=True, response=streamed(pieces)), False),
        "128 events, an address in three": (
            exchange(stream=True, response=streamed([*pieces[:125], "jo@exa", "mple", ".com"])), True
        ),
        "1 MiB, nothing in it": (exchange(response=asked(WORDS * (MIB // len(WORDS)))), False),
        "1 MiB with one address": (exchange(response=asked(WORDS * (MIB // len(WORDS)) + SECRET)), True),
        "1 MiB of addresses": (exchange(response=asked(SECRET * (MIB // len(SECRET)))), True),
    }  # fmt: skip
    print(conditions())
    for name, (one, found) in kinds.items():
        assert redactor.redact(one).redacted is found
        print(f"redaction, {name}: {microseconds(lambda one=one: redactor.redact(one)):,.0f} us")
    worst = max(
        microseconds(lambda one=one: redactor.redact(one), least=0)
        for part in HOSTILE
        for one in [exchange(response=(part * (MIB // len(part))).encode())]
    )
    print(f"redaction, 1 MiB of the worst of {len(HOSTILE)} hostile texts: {worst:,.0f} us")


def test_records() -> None:
    one = exchange(request=None, response=None)
    facts = one._asdict()
    kinds = get_type_hints(Exchange)
    Frozen = make_dataclass("Frozen", kinds.items(), frozen=True, kw_only=True, slots=True)  # noqa: N806 -- a class
    written = {"a tuple": (Exchange, one), "a frozen dataclass": (Frozen, Frozen(**facts))}
    encoder = msgspec.msgpack.Encoder()
    print(conditions())
    for name, (kind, made) in written.items():
        payload, decoder = encoder.encode(made), msgspec.msgpack.Decoder(kind)
        assert decoder.decode(payload) == made
        calls = {
            "made": lambda kind=kind: kind(**facts),
            "written": lambda made=made: encoder.encode(made),
            "read": lambda payload=payload, decoder=decoder: decoder.decode(payload),
        }
        took = ", ".join(f"{what} in {of_many(call):.1f} us" for what, call in calls.items())
        print(f"an exchange as {name}, without content: {len(payload)} bytes, {took}")


def test_ids_and_counts(tmp_path: Path) -> None:
    counters = Counters(tmp_path / "w.counters")
    recorder = Recorder(SpoolWriter(tmp_path / "spool", "w"), counters, Redactor(()))
    one = exchange(prompt_tokens=3, completion_tokens=7, total_us=5000, upstream_us=4900)
    series = recorder.series(one.endpoint, one.route, one.deployment, one.origin)
    calls: dict[str, Callable[[], object]] = {
        "the text of a new id": lambda: new_id_text(1_700_000_000_000),
        "a new id, and its text twice": lambda: (made := new_id(1_700_000_000_000), str(made), made.hex),
        "an exchange in order": lambda: Exchange._make((*one,)),
        "all counts of an exchange": lambda: count(recorder, one),
        "the same, its series being known": lambda: series.count(200, 3, 7, 5000, 4900, None),
    }
    print(conditions())
    for name, call in calls.items():
        print(f"{name}: {of_many(call):.2f} us")
    counters.close()


def test_limits(tmp_path: Path) -> None:
    limits = KeyLimits(tmp_path / "limits.table")
    tokens, price = TokenCount(prompt=100, completion=100), Price(input=1, output=1)
    kinds = {
        "no limit": Key(id="none", name="k", hash=b"0" * 32),
        "one limit": Key(id="one", name="k", hash=b"1" * 32, rpm=2**31 - 1),
        "two limits": Key(id="two", name="k", hash=b"4" * 32, rpm=2**31 - 1, tpm=2**31 - 1),
        "three limits": Key(id="three", name="k", hash=b"2" * 32, rpm=2**31 - 1, tpm=2**31 - 1, budget=1e6),
    }

    def admitted(key: Key) -> None:
        grant = limits.admit(key, 0, tokens)
        if grant is not None:
            grant.settle(100, 100, price, failed=False)

    full = Key(id="full", name="k", hash=b"3" * 32, rpm=1)
    limits.admit(full, 0, tokens)

    def refused() -> None:
        with pytest.raises(Limited) as error:
            limits.admit(full, 0, tokens)
        assert error.value.headers()["retry-after"]

    print(conditions())
    for name, key in kinds.items():
        print(f"limits, {name}: {microseconds(lambda key=key: admitted(key)):.1f} us")
    print(f"limits, a refusal: {microseconds(refused):.0f} us")
    limits.close()


PLAN = """
import time
from pathlib import Path
from auditor.instrument.designs import Design
from auditor.instrument.pool import shipped_pool
from auditor.probes.forecast import count_plan_tokens
from auditor.probes.plan import PlanSpec, make_plan
def most() -> int:
    # What getrusage tells begins with the parent's.
    return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])

before = most()
began = time.perf_counter()
planned = make_plan(PlanSpec(design=Design.OAT, statements=shipped_pool()))
count_plan_tokens(planned)
calls = sum(1 for number in range(8) for _ in planned.calls(f"deployment-{number}"))
after = most()
print(calls, time.perf_counter() - began, before / 1024, after / 1024)
"""


def test_the_largest_plan() -> None:
    done = subprocess.run([sys.executable, "-c", PLAN], capture_output=True, text=True, check=True, cwd=ROOT)
    calls, seconds, before, after = map(float, done.stdout.split())
    assert calls == 641_600
    own = after - before
    print(f"{conditions()}\na plan of {calls:,.0f} calls: {seconds:.1f} s, {after:.0f} MiB, {own:.0f} of them its own")
