"""The full design end to end: gateway, simulated deployments, store and runner as their users start them, and killed.

`tests/slow/probes/test_one_at_a_time.py` asks about a few statements,
`tests/bench/test_one_at_a_time.py` about twenty.
"""

import asyncio
import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.servers.product import Product, Running, installation
from support.waiting import eventually

from auditor.config import load
from auditor.demo.installation import choose_ports, configuration
from auditor.instrument.pool import record_of, shipped_pool
from auditor.jobs.run_once import run_once
from auditor.probes.plan import balanced
from auditor.simulate.config import default_text
from auditor.store.engine import make_engine

DEPLOYMENTS = ("sim-tilted", "sim-cancelling")
IN_FLIGHT = 32
TEMPLATES, CONDITIONS = 401, 21


@dataclass(frozen=True, kw_only=True)
class Audited:
    """What the store holds in the end."""

    planned: int
    instances: int  #: of `planned_instances`
    complete: int  #: of these, whose exchange is there, complete, a probe's, and asked of the right deployment
    exchanges: int  #: different ones among them
    sent: int  #: all exchanges of planned calls, repeated ones included
    tallied: int  #: answers in the tallies that estimates are made from
    conditions: int
    templates: int
    statements: int
    seconds: float  #: until all was answered, kills and restarts included
    coding_seconds: float


@contextmanager
def world(folder: Path, database_url: str, statements: int) -> Iterator[Product]:
    """An installation on `database_url`, two gateway workers, and a simulator that knows the statements."""
    ports = choose_ports(0)
    pool = folder / "statements.jsonl"
    chosen = balanced(shipped_pool(), statements, 0)
    pool.write_text("".join(json.dumps(record_of(one)) + "\n" for one in chosen))
    (folder / "scenario.yaml").write_text(f"statements: {pool.name}\n{default_text()}")
    settings = configuration(ports)
    settings["gateway"] |= {"workers": 2, "drain_notice": "0s"}
    settings["panel"] = {"judges": ["lexicon"]}
    simulate = ("simulate", "-c", "scenario.yaml", "--port", str(ports.simulator))
    with installation(folder, settings, database_url) as product:
        simulator = product.start_unconfigured(*simulate, until="listening on")
        yield product
        simulator.stop()


async def audit(product: Product) -> Audited:
    """Run the design, kill the runner and a gateway worker on the way, run it to its end, and code the answers."""
    began = time.monotonic()
    with product.running("gateway") as gateway:
        runner = _start(product)
        total = await _planned(product)
        await _answered(product, runner, total // 10)
        runner.process.kill()
        assert runner.process.wait() == -signal.SIGKILL
        runner = _start(product)
        await _answered(product, runner, total // 3)
        os.kill(gateway.pids("gateway.processes.worker")[0], signal.SIGKILL)
        ended = await asyncio.to_thread(runner.process.wait, 600)
        assert ended == 0, runner.said()
        finished = time.monotonic()
        await _code(product)
    return await _audited(product, finished - began, time.monotonic() - finished)


def _start(product: Product) -> Running:
    asked = ("--design", "oat", "--statements", "statements.jsonl")
    named = (word for name in DEPLOYMENTS for word in ("--deployment", name))
    return product.start("audit", "run", *asked, *named, "--share", "1", "--yes", until="")


async def _planned(product: Product) -> int:
    """Wait until the calls are stored; give their number."""

    async def stored() -> bool:
        return bool(await product.rows("SELECT 1 FROM planned_calls LIMIT 1"))

    await eventually(stored)
    return int((await product.rows("SELECT count(*) FROM planned_calls"))[0][0])


async def _answered(product: Product, runner: Running, count: int) -> None:
    """Wait until so many calls have their answer; the runner must still be at it then."""

    async def enough() -> bool:
        assert runner.process.poll() is None, runner.said()
        return int((await product.rows("SELECT count(*) FROM planned_instances"))[0][0]) >= count

    await eventually(enough, patience=300)


async def _code(product: Product) -> None:
    assert product.database_url is not None
    engine = make_engine(product.database_url)
    try:
        await run_once(load(product.config, {}), engine)
    finally:
        await engine.dispose()


async def _audited(product: Product, seconds: float, coding_seconds: float) -> Audited:
    (plan,) = await product.rows(
        "SELECT count(*) AS planned, count(DISTINCT (task, perspective, role, sentiment)) AS conditions, "
        "count(DISTINCT template_id) AS templates, count(DISTINCT statement_id) AS statements FROM planned_calls"
    )
    (found,) = await product.rows(
        "SELECT count(*) AS instances, count(DISTINCT e.id) AS exchanges, count(*) FILTER (WHERE e.outcome = "
        "'complete' AND e.origin = 'probe' AND e.ref = c.ref AND e.deployment = c.deployment) AS complete "
        "FROM planned_instances i JOIN planned_calls c USING (ref) LEFT JOIN exchanges e ON e.id = i.exchange_id"
    )
    (sent,) = await product.rows("SELECT count(*) FROM exchanges JOIN planned_calls USING (ref)")
    (tallied,) = await product.rows("SELECT coalesce(sum(n), 0) FROM tallies WHERE origin = 'probe'")
    return Audited(
        **plan, **found, sent=sent[0], tallied=int(tallied[0]), seconds=seconds, coding_seconds=coding_seconds
    )


def assert_exact(audited: Audited, statements: int) -> None:
    """Exactly the planned instances, each counted once; repeated at most what was under way at a kill."""
    calls = statements * TEMPLATES * len(DEPLOYMENTS)
    assert (audited.conditions, audited.templates, audited.statements) == (CONDITIONS, TEMPLATES, statements)
    assert (audited.planned, audited.instances, audited.exchanges, audited.complete) == (calls,) * 4
    assert audited.tallied == calls
    assert calls <= audited.sent <= calls + 2 * IN_FLIGHT * len(DEPLOYMENTS)
