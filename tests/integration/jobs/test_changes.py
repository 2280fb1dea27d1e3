"""Rolling windows beside the reference that a watch was fitted to, in the stored estimates and on the API."""

from pathlib import Path

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from support.stores.audited_store import fetch
from support.stores.watched_store import Days, configuration, moment, simulated

from auditor.api.estimates import estimate_json
from auditor.jobs.estimate import estimate_all
from auditor.jobs.monitor import watch_days
from auditor.store.engine import transaction
from auditor.store.estimates import read_estimates
from auditor.work import open_work


@pytest.mark.slow
async def test_who_changes_has_changed_since_its_reference_by_drift_and_not_by_mix(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    config = configuration(tmp_path, ("moves", "stays"), "windows: [1d, 3d]")
    days = Days(migrated_url, engine, config, [simulated("moves", 8, 1.6), simulated("stays")])
    for day in range(9):
        await days.pass_of(day)
    async with open_work(engine, config, lambda: moment(8, 23)) as work:
        await watch_days(work)
        await estimate_all(work)
        async with transaction(engine) as connection:
            rows = await read_estimates(connection, metric="change", window="1d")
            level = await read_estimates(connection, metric="standardised", window="3d", deployment="stays")
    found = {(row.deployment, row.detail["measure"]): estimate_json(row) for row in rows}
    assert len(found) == 6
    moved, stayed = found["moves", "ber_union_full"], found["stays", "ber_union_full"]
    assert 0 < moved["low"] < moved["value"] < moved["high"]
    assert moved["drift"] > 5 * abs(moved["mix"])
    assert stayed["low"] < 0 < stayed["high"]
    assert (moved["reference_since"], moved["reference_until"]) == ("2026-03-02", "2026-03-08")
    assert (moved["conditions"], moved["left_out"], moved["n_statements"]) == (
        [f"{task}/self/none/neutral" for task in ("BJ", "CTO", "SC")], [], 110,
    )  # fmt: skip
    assert {row.detail["measure"] for row in level} == {"ber_union_full", "ir", "dni"}
    frozen = (
        """SELECT sum(value::int) AS n FROM window_tallies, jsonb_each_text(counts) WHERE "window" LIKE 'reference %'"""
    )
    assert (await fetch(migrated_url, frozen))[0]["n"] == 2 * 7 * 330
