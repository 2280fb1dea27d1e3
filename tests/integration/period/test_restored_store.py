"""A report of a period is made again from a restored backup, byte for byte."""

import json
from datetime import timedelta
from pathlib import Path

from sqlalchemy.ext.asyncio import AsyncEngine
from support.stores.audited_store import CTO, configuration, panel_answers, plan, ship
from support.stores.dump_restore import restore
from support.stores.exchanges import NOON

from auditor.domain.ids import floor_id
from auditor.instrument.pool import shipped_pool
from auditor.jobs.run_once import run_once
from auditor.period.report import report_again, report_period
from auditor.store.chain import verify_chain
from auditor.store.engine import make_engine

SHARES = {"d1": {"E|E": 30, "D|D": 70}}


async def test_a_restored_backup_gives_the_same_report_and_verifies(
    migrated_url: str, database_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    config = configuration(tmp_path)
    await plan(migrated_url, SHARES, shipped_pool()[:100], [CTO])
    await ship(migrated_url, panel_answers(SHARES))
    await run_once(config, engine, lambda: NOON + timedelta(minutes=30))
    content = await report_period(engine, config, NOON - timedelta(hours=1), NOON + timedelta(hours=1))
    restore(migrated_url, database_url, tmp_path)
    other = make_engine(database_url)
    try:
        assert await report_again(other, json.loads(content)) == content
        state = await verify_chain(other, floor_id(NOON - timedelta(days=400)))
    finally:
        await other.dispose()
    assert (state.fault, state.rows) == (None, 100)
