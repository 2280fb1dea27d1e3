"""The auditor removes what its configuration no longer keeps, without being asked."""

import asyncio
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import asyncpg
from support.stores.aged_store import add_day, open_store
from support.stores.audited_store import configuration, fetch
from support.waiting import eventually

from auditor.jobs.queue_worker import run_jobs

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


async def concluded(url: str) -> set[date]:
    return {row[0] for row in await fetch(url, "SELECT (concluded_at AT TIME ZONE 'UTC')::date FROM exposures")}


def ages(*days: int) -> set[date]:
    return {NOW.date() - timedelta(days=age) for age in days}


async def days_of(url: str, table: str) -> set[date]:
    rows = await fetch(url, f"SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = '{table}'::regclass")
    return {datetime.strptime(row[0][-8:], "%Y%m%d").replace(tzinfo=UTC).date() for row in rows}
