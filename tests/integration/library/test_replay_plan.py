"""`biasmeter.replay_plan`: what a replay would cost, as the command tells it before it sends."""

import asyncio
import json
from pathlib import Path

from support.stores.audited_store import CTO, panel_answers, plan, ship
from support.stores.exported_audit import SHARES, written
from typer.testing import CliRunner

import biasmeter
from auditor.instrument.pool import shipped_pool
from biasmeter.commands.main import app


async def test_the_plan_is_that_of_the_command(migrated_url: str, tmp_path: Path) -> None:
    await plan(migrated_url, SHARES, shipped_pool()[:100], [CTO])
    await ship(migrated_url, panel_answers(SHARES))
    config = written(tmp_path, migrated_url)
    options = {"select": "origin=probe,deployment=d1", "formats": ["BJ", "again"]}
    planned = await asyncio.to_thread(biasmeter.replay_plan, config, **options)
    arguments = ["--select", options["select"], "--formats", "BJ,again", "--json", "-o", str(tmp_path / "out")]
    told = await asyncio.to_thread(CliRunner().invoke, app, ["replay", "-c", str(config), *arguments])
    assert planned.document == json.loads(told.stdout)
    assert planned.document["parents"] == 100
    (row,) = planned.to_pandas().to_dict("records")
    assert (row["for"], row["deployment"], row["calls"]) == ("answers", "d1", 200)
