"""The auditor copies changed days to the folder of ``parquet.directory``."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from support.stores.audited_store import CTO, configuration, panel_answers, plan, ship
from support.stores.exchanges import NOON
from support.waiting import eventually

from auditor.export.parquet import job
from auditor.export.parquet.tables import TABLES, file_of
from auditor.instrument.pool import shipped_pool
from auditor.jobs.run_once import run_once
from auditor.work import open_work

SHARES = {"d1": {"E|E": 50, "D|D": 50}}


async def test_the_job_writes_the_folder(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "_PAUSE", 0.01)
    await plan(migrated_url, SHARES, shipped_pool()[:10], [CTO])
    await ship(migrated_url, panel_answers(SHARES, conditions=[CTO]))
    folder = tmp_path / "columns"
    config = configuration(tmp_path, f"parquet: {{directory: {folder}, every: 1h}}\n")
    clock = lambda: NOON + timedelta(minutes=30)  # noqa: E731
    await run_once(config, engine, clock)
    async with open_work(engine, config, clock) as work:
        task = asyncio.create_task(job.repeat_export(work))
        files = [file_of(folder, table.name, NOON.date()) for table in TABLES]
        await eventually(lambda: all(file.exists() for file in files))
        task.cancel()
