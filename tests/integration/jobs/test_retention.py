"""The auditor removes what its configuration no longer keeps, without being asked."""

import asyncio
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import asyncpg
import httpx2
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from support.servers.console import console
from support.stores.aged_store import add_day, day_of_exchanges, open_store
from support.stores.audited_store import configuration, fetch, ship
from support.waiting import eventually

from auditor.export.process_series import metrics_page, process_registry
from auditor.jobs.queue_worker import run_jobs
from auditor.jobs.retention import repeat_retention
from auditor.work import Work

NOW = datetime(2026, 3, 31, 18, tzinfo=UTC)


async def test_the_auditor_drops_what_is_due(migrated_url: str, tmp_path: Path) -> None:
    connection = await asyncpg.connect(migrated_url)
    try:
        store = await open_store(connection)
        for age in (0, 2, 3, 9, 10):
            await add_day(store, NOW.date() - timedelta(days=age))
    finally:
        await connection.close()
    config = configuration(tmp_path, "retention: {content: 2d, facts: 9d}\n", migrated_url)
    stop = asyncio.Event()
    jobs = asyncio.create_task(run_jobs(config, migrated_url, stop, lambda: NOW))

    async def is_concluded() -> bool:
        assert not jobs.done()
        return await concluded(migrated_url) == ages(0, 2, 3, 9)

    try:
        await eventually(is_concluded, 120)
    finally:
        stop.set()
        await jobs
    assert await days_of(migrated_url, "exchange_content") == ages(0, 2)
    assert await days_of(migrated_url, "exchanges") == ages(0, 2, 3, 9)


async def test_what_is_held_is_logged_counted_and_a_problem(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await ship(migrated_url, day_of_exchanges(NOW.date(), 3))  # the newest: PostgreSQL's clock is months ahead
    config = configuration(tmp_path, f"store: {{url: '{migrated_url}'}}\n")
    work = Work(engine=engine, config=config, clock=lambda: NOW, coders={})
    repeating = asyncio.create_task(repeat_retention(work))
    try:
        await eventually(lambda: "biasmeter retention --yes" in caplog.text)
    finally:
        repeating.cancel()
    (line,) = [record.message for record in caplog.records if record.message.startswith("retention: ")]
    assert line.startswith("retention: content of 3 exchanges of 1 days before ")
    page = metrics_page(process_registry(), b"", "")[0].decode()
    assert 'biasmeter_retention_held_days{lifetime="content"} 1.0' in page
    assert 'biasmeter_retention_held_days{lifetime="facts"} 0.0' in page
    assert await days_of(migrated_url, "exchange_content") == ages(0)
    with console(migrated_url, config, lambda: NOW) as site:
        health = httpx2.get(site.url + "/api/health").json()
    assert health["store"]["retention"]["content_from"] == f"{NOW.date() - timedelta(days=30)}"
    assert health["store"]["retention"]["held"] == [line.removeprefix("retention: ")]
    assert f"Retention waits for somebody: {line.removeprefix('retention: ')}." in health["problems"]


async def concluded(url: str) -> set[date]:
    return {row[0] for row in await fetch(url, "SELECT (concluded_at AT TIME ZONE 'UTC')::date FROM exposures")}


def ages(*days: int) -> set[date]:
    return {NOW.date() - timedelta(days=age) for age in days}


async def days_of(url: str, table: str) -> set[date]:
    rows = await fetch(url, f"SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = '{table}'::regclass")
    return {datetime.strptime(row[0][-8:], "%Y%m%d").replace(tzinfo=UTC).date() for row in rows}
