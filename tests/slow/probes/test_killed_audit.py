"""kill -9 of each process in the middle of an audit: it goes on after the restart, and every call counts once."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import text
from support.servers.product import Product, installation
from support.stores.embedded_processes import postgres_pids
from support.waiting import eventually

from auditor.config import Config, load
from auditor.demo.installation import choose_ports, configuration
from auditor.instrument.pool import record_of, shipped_pool
from auditor.jobs.run_once import run_once
from auditor.postgres.embedded import open_store
from auditor.simulate.config import default_text
from auditor.store.engine import make_engine, transaction
from auditor.store.estimates import read_estimates

STATEMENTS, TASKS, AUDITED = 30, 3, ("sim-level", "sim-tilted")
PLANNED = STATEMENTS * TASKS * len(AUDITED)
VICTIMS = (
    "gateway.processes.worker",
    "gateway.processes.ship",
    "postgres",
    "postgres.supervisor",
    "-m auditor",
    "audit run",
    "up",
)


@pytest.fixture
def product(tmp_path: Path) -> Iterator[Product]:
    """The demonstration's installation with fewer statements, its simulator running."""
    ports = choose_ports(0)
    pool = tmp_path / "statements.jsonl"
    pool.write_text("".join(json.dumps(record_of(each)) + "\n" for each in shipped_pool()[::3][:STATEMENTS]))
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(f"statements: {pool.name}\n{default_text()}")
    with installation(tmp_path, configuration(ports), None) as made:
        simulator = made.start_unconfigured(
            "simulate", "-c", str(scenario), "--port", str(ports.simulator), until="listening on"
        )
        yield made
        simulator.stop()


class Audit:
    """The product and an audit that runs on it; both are started again when they have been killed."""

    def __init__(self, product: Product) -> None:
        self.product = product
        self.up = product.start("up")
        self.runner = self._run()

    def _run(self) -> "subprocess.Popen[bytes]":
        asked = [option for name in AUDITED for option in ("--deployment", name)]
        pool = ("--statements", str(self.product.folder / "statements.jsonl"))
        command = ("audit", "run", "-c", str(self.product.config), "--design", "sentinel", *pool, *asked, "--yes")
        with (self.product.folder / "audit.log").open("ab") as log:
            return subprocess.Popen([sys.executable, "-m", "biasmeter", *command], stdout=log, stderr=log)

    async def kill(self, victim: str) -> None:
        if victim == "audit run":
            self.runner.kill()
            self.runner.wait()
        elif victim == "up":
            self.up.process.kill()
            self.up.process.wait()
        else:
            await eventually(lambda: bool(self._pids(victim)))
            killed = self._pids(victim)[0]
            os.kill(killed, signal.SIGKILL)
            await eventually(lambda: killed not in self._pids(victim))
        self.revive()

    def _pids(self, victim: str) -> list[int]:
        return postgres_pids(self.product) if victim == "postgres" else self.up.pids(victim)

    def revive(self) -> None:
        if self.up.process.poll() is not None:
            self.up = self.product.start("up")
        if self.runner.poll() is not None:
            self.runner = self._run()

    async def finish(self) -> None:
        """Run the command until it says that all is answered."""
        for _ in range(10):
            status = await asyncio.to_thread(self.runner.wait, 120)
            if status == 0:
                return
            self.revive()
        log = (self.product.folder / "audit.log").read_text()
        raise AssertionError(f"the audit does not end:\n{log[-2000:]}")


async def answered(config: Config) -> int:
    with open_store(config.data_dir, None) as url:
        engine = make_engine(url)
        async with transaction(engine) as connection:
            found = await connection.scalar(text("SELECT count(*) FROM planned_instances"))
        await engine.dispose()
    return int(found or 0)


async def test_every_planned_call_counts_once_whatever_is_killed(product: Product) -> None:
    config = load(product.config, {})
    audit = Audit(product)
    try:
        for number, victim in enumerate(VICTIMS):
            target = min(10 + number * 18, PLANNED - 20)

            async def far_enough(target: int = target) -> bool:
                return await answered(config) >= target

            await eventually(far_enough, patience=60)
            await audit.kill(victim)
        await audit.finish()
        assert await answered(config) == PLANNED
        await _recounted(config)
    finally:
        audit.runner.kill()
        audit.runner.wait()
        if audit.up.process.poll() is None:
            audit.up.stop()


async def _recounted(config: Config) -> None:
    """The estimates after the kills are those of an undisturbed coding and counting of the same answers."""
    as_of = datetime.now(UTC) + timedelta(minutes=10)
    with open_store(config.data_dir, None) as url:
        engine = make_engine(url)
        after_kills = await _estimated(config, engine, as_of)
        async with transaction(engine) as connection:
            counted = await connection.execute(
                text("SELECT deployment, sum(n) FROM tallies WHERE origin = 'probe' GROUP BY deployment")
            )
            assert {row.deployment: row.sum for row in counted} == dict.fromkeys(AUDITED, STATEMENTS * TASKS)
            made = "codings, coding_marks, votes, stale_tiles, tallies, ballots, windows, estimates"
            await connection.execute(text(f"TRUNCATE {made}"))
        undisturbed = await _estimated(config, engine, as_of)
        await engine.dispose()
    assert len(after_kills) > 50
    assert undisturbed == after_kills


async def _estimated(config: Config, engine, as_of: datetime) -> list[tuple[object, ...]]:
    await run_once(config, engine, clock=lambda: as_of)
    async with transaction(engine) as connection:
        rows = await read_estimates(connection)
    return sorted(
        (str(row.deployment), row.origin, row.condition, row.window, row.metric, str(row.layer), str(row.base),
         str(row.detail), str(row.value), str(row.low), str(row.high), row.n)
        for row in rows
    )  # fmt: skip
