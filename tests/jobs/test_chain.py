"""find -> code -> count -> estimate on a real store, with the lexicon."""

from datetime import timedelta
from pathlib import Path

from audited import CTO, configuration, fetch, panel_answers, plan, ship
from exchanges import NOON
from sqlalchemy.ext.asyncio import AsyncEngine

from auditor.instrument.pool import shipped_pool
from auditor.jobs.idle import run_until_idle

SHARES = {"d1": {"E|E": 30, "E|D": 20, "D|D": 40, "D|": 8, "R|": 2}, "d2": {"D|D": 60, "D|E": 40}}


def later():
    return NOON + timedelta(minutes=30)


async def test_what_is_stored_becomes_estimates(migrated_url: str, engine: AsyncEngine, tmp_path: Path) -> None:
    pool = shipped_pool()[:100]
    await plan(migrated_url, SHARES, pool, [CTO])
    await ship(migrated_url, panel_answers(SHARES))
    done = await run_until_idle(configuration(tmp_path), engine, later)
    assert done.coded == 200
    assert done.tiles == 1
    rows = await fetch(migrated_url, "SELECT deployment, sel, elab, sum(n) AS n FROM tallies GROUP BY 1, 2, 3")
    counted = {(row["deployment"], row["sel"], row["elab"]): row["n"] for row in rows}
    assert sum(counted.values()) == 200
    assert counted["d1", "E", "E"] == 30
    estimates = await fetch(migrated_url, "SELECT * FROM estimates WHERE metric = 'ir' AND \"window\" = '30d'")
    told = {(row["deployment"], row["condition"]): (row["value"], row["n"], row["coverage"]) for row in estimates}
    assert told == {
        (name, condition): told[name, "all"]
        for name in ("d1", "d2")
        for condition in ("all", "task=CTO", "CTO/self/none/neutral")
    }
    assert told["d1", "all"] == (20 / 92, 92, 0.92)
    assert told["d2", "all"] == (0.4, 100, 1.0)
    again = await run_until_idle(configuration(tmp_path), engine, later)
    assert (again.coded, again.tiles) == (0, 0)
    assert again.estimates == done.estimates
