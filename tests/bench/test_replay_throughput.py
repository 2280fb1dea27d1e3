"""Sending costs little beside a bare loop: an instant upstream is kept as busy as by asyncio and httpx2 alone.

Run: make measurements PYTEST_ARGS="tests/bench/test_replay_throughput.py -s"
"""

import asyncio
import json
import os
import platform
import time
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from statistics import median

import httpx2
import pytest
from support.servers.product import Product, installation, settings
from support.upstreams.scripted_upstream import upstream_process

from auditor.access import GatewayAccess, gateway_access
from auditor.config import load
from auditor.domain.exchange import Origin
from auditor.instrument.designs import Design
from auditor.instrument.pool import shipped_pool
from auditor.probes.plan import Planned, PlanSpec, make_plan
from auditor.probes.send import CallTarget, Outgoing, RunBudget
from auditor.probes.session import open_session, target_of
from auditor.store.engine import make_engine

CALLS = 400  #: of one turn
TURNS = 9
#: A body, and its headers.
Request = tuple[bytes, dict[str, str]]


@pytest.fixture
def product(tmp_path: Path, migrated_url: str) -> Iterator[Product]:
    """A gateway before an upstream that answers at once, each in processes of its own."""
    with (
        upstream_process() as (url, _),
        installation(tmp_path, settings(url, workers=1), migrated_url) as made,
        made.running("gateway"),
    ):
        yield made


@dataclass
class Pace:
    """Seconds that one call took, turn by turn: of the clock, and of this process's work."""

    clock: list[float] = field(default_factory=list)
    work: list[float] = field(default_factory=list)

    async def time(self, sending: Awaitable[object]) -> None:
        clock, work = time.perf_counter(), time.process_time()
        await sending
        self.clock.append((time.perf_counter() - clock) / CALLS)
        self.work.append((time.process_time() - work) / CALLS)

    def __str__(self) -> str:
        return f"{1 / median(self.clock):,.0f} calls/s, {median(self.work) * 1e6:,.0f} us of work a call"


def outgoing(planned: Planned, turn: int) -> list[Outgoing]:
    """Questions of a plan as a replay asks them, under names of their own."""
    return [
        Outgoing(ref=f"turn-{turn}.{number}", messages=item.messages, members={"temperature": 0.7}, usd=1e-4)
        for number, item in enumerate(islice(planned.items, CALLS))
    ]


async def send_bare(client: httpx2.AsyncClient, url: str, requests: Iterator[Request], in_flight: int) -> None:
    """Send what was put together beforehand, and look at the status: less cannot be done."""

    async def work() -> None:
        for body, headers in requests:
            answer = await client.post(url, content=body, headers=headers)
            assert answer.status_code == 200

    await asyncio.gather(*(work() for _ in range(in_flight)))


def request_of(access: GatewayAccess, target: CallTarget, call: Outgoing) -> Request:
    messages = [{"role": one.role, "content": one.content} for one in call.messages]
    body = json.dumps({"model": target.model, "messages": messages, **call.members}).encode()
    return body, {
        "authorization": f"Bearer {access.key}",
        "content-type": "application/json",
        "x-biasmeter-origin": str(target.origin),
        "x-biasmeter-ref": call.ref,
        "x-biasmeter-deployment": target.deployment,
    }


@pytest.mark.bench
@pytest.mark.parametrize("in_flight", [8, 32])
async def test_a_replay_keeps_an_instant_upstream_as_busy_as_a_bare_loop(product: Product, in_flight: int) -> None:
    config, planned = load(product.config, {}), make_plan(PlanSpec(design=Design.PANEL, statements=shipped_pool()))
    target = replace(target_of(config, config.deployments[0], 1.0, Origin.REPLAY), in_flight=in_flight)
    access, engine = gateway_access(config), make_engine(config.database_url({}))
    ours, bare = Pace(), Pace()
    limits = httpx2.Limits(max_connections=in_flight, max_keepalive_connections=in_flight)
    async with (
        httpx2.AsyncClient(limits=limits, timeout=None, trust_env=False) as client,
        open_session(engine, access, "rpl-bench", [target]) as session,
    ):
        for turn in range(TURNS):
            calls = outgoing(planned, 2 * turn)
            requests = iter([request_of(access, target, call) for call in outgoing(planned, 2 * turn + 1)])
            runs = [
                (ours, session.send([(target, calls)], RunBudget())),
                (bare, send_bare(client, f"{access.url}/chat/completions", requests, in_flight)),
            ]
            # The other one first each time: what else the machine does meets both alike.
            for pace, sending in runs[:: 1 if turn % 2 else -1]:
                await pace.time(sending)
    await engine.dispose()
    (kept,) = await product.rows("SELECT count(*) FROM exchanges WHERE origin = 'replay' AND outcome = 'complete'")
    assert kept[0] == 2 * TURNS * CALLS
    busy, work = ratio(bare.clock, ours.clock), ratio(ours.work, bare.work)
    print(f"\nPython {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores, all on one machine")
    print(f"{in_flight} in flight, {TURNS} turns of {CALLS} calls each, one gateway worker between")
    print(f"a replay: {ours}\na bare loop: {bare}\nas busy: {busy:.0%}; as much work: {work:.0%}")
    assert busy >= 0.8


def ratio(these: list[float], those: list[float]) -> float:
    """The median over the turns."""
    return median(one / other for one, other in zip(these, those, strict=True))
