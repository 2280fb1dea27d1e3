"""Estimates from a store that was filled under faults are those from an undisturbed one, to the last digit."""

import asyncio
import os
import signal
from datetime import timedelta
from pathlib import Path
from random import Random

from support.servers.product import STARTUP, installation, settings
from support.stores.audited_store import CTO, configuration, fetch, panel_answers, plan, ship
from support.stores.databases import Databases
from support.stores.exchanges import NOON
from support.waiting import eventually

from auditor.domain.condition import BASELINE, Condition, Role, Task
from auditor.domain.exchange import Exchange
from auditor.instrument.pool import shipped_pool
from auditor.jobs.run_once import run_once
from auditor.store.engine import make_engine
from gateway.recording import codec
from gateway.recording.spool import SpoolWriter

SHARES = {"d1": {"E|E": 30, "E|D": 20, "D|D": 40, "D|": 8, "R|": 2}, "d2": {"D|D": 60, "D|E": 40}}
CONDITIONS = [CTO, BASELINE, Condition(task=Task.EXPLAIN), Condition(task=Task.CTO, role=Role.SOCIOLOGIST)]


async def test_estimates_are_those_of_an_undisturbed_run(
    tmp_path: Path, migrated_url: str, databases: Databases
) -> None:
    answers = panel_answers(SHARES, conditions=CONDITIONS)
    with installation(tmp_path, settings("http://127.0.0.1:1/v1", workers=1), migrated_url) as product:
        _spool(product.data_dir / "gateway" / "spool", answers)
        with product.running("gateway") as running:
            random = Random(0)
            for _ in range(3):
                for pid in running.pids("gateway.processes.ship"):
                    os.kill(pid, signal.SIGKILL)
                await product.rows(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
                    " AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
                )
                await asyncio.sleep(random.uniform(0.2, 0.8))
            await eventually(lambda: product.spooled() == 0, STARTUP)
    with databases.fresh() as undisturbed_url:
        await ship(undisturbed_url, answers)
        disturbed = await _estimates(migrated_url, tmp_path)
        assert len(disturbed) > 100
        assert disturbed == await _estimates(undisturbed_url, tmp_path)


def _spool(folder: Path, answers: list[Exchange]) -> None:
    """Write the answers to the spool in segments of a few, each of them twice, as after a crash."""
    for name in ("first", "second"):
        writer = SpoolWriter(folder, f"0000000000000-{name}", segment_bytes=1 << 14)
        for answer in answers:
            writer.append(codec.encode(answer), 1)
        writer.close()


async def _estimates(url: str, folder: Path) -> list[tuple[object, ...]]:
    await plan(url, SHARES, shipped_pool()[:100], CONDITIONS)
    engine = make_engine(url)
    done = await run_once(configuration(folder), engine, lambda: NOON + timedelta(minutes=30))
    await engine.dispose()
    assert done.coded == 800
    rows = await fetch(url, "SELECT * FROM estimates")
    return sorted((tuple(value for name, value in row.items() if name != "id") for row in rows), key=repr)
