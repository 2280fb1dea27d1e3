"""Simulated deployments are watched day by day: from codings in the store to findings, series and what is posted."""

import asyncio
import json
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, text, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
from support.stores.audited_store import fetch
from support.stores.watched_store import FIRST, TWO_JUDGES, Days, configuration, moment, simulated
from support.waiting import eventually

from auditor.config import Config
from auditor.domain.ids import day_bounds
from auditor.errors import UsageError
from auditor.export.families import EstimateExposition
from auditor.findings import AcceptedReference, Person, accept_reference, accept_unasked
from auditor.jobs.estimate import estimate_all
from auditor.jobs.monitor import GRACE, repeat_watching, watch_days
from auditor.simulate.model import Drift, Shift
from auditor.store import monitor
from auditor.store.engine import transaction
from auditor.store.findings import read_findings
from auditor.store.monitor import monitor_days, monitor_watches
from auditor.store.references import monitor_references
from auditor.work import open_work


async def forget_watches(connection: AsyncConnection, coder: str) -> None:
    """Delete everything that follows from the codings, so that the closed days are tested again.

    These are the states and the fitted references. Closed days, accepted references and findings are kept.
    """
    references, days = monitor_references, monitor_days
    await connection.execute(delete(monitor_watches).where(monitor_watches.c.coder == coder))
    own = references.c.coder == coder
    await connection.execute(delete(references).where(own, references.c.accepted_by.is_(None)))
    await connection.execute(update(references).where(own).values(until=None, content=None))
    await connection.execute(update(days).where(days.c.coder == coder).values(watched=False))


ANCHORED = "anchor: pinned"


async def watch(engine: AsyncEngine, config: Config, day: float) -> int:
    """Look at the store two hours into a day."""
    async with open_work(engine, config, lambda: moment(0, 24 * day + 2)) as work:
        return await watch_days(work)


async def shown(engine: AsyncEngine, config: Config, day: float) -> list[str]:
    """The drift series at that moment."""
    async with open_work(engine, config, lambda: moment(0, 24 * day + 3)) as work:
        await estimate_all(work)
    exposition = EstimateExposition()
    await exposition.refresh(engine)
    lines = exposition.text.decode().splitlines()
    return [line for line in lines if line.startswith(("biasmeter_drift", "biasmeter_minimal"))]


async def everything(url: str) -> dict[str, list[tuple[Any, ...]]]:
    """What follows from the codings."""
    tables = {
        "monitor_references": "id", "monitor_watches": "deployment, metric", "findings": "id",
        "finding_events": "finding_id", "monitor_days": "day",
    }  # fmt: skip
    columns = {"finding_events": "finding_id, at, action, by, note, reference_id"}
    return {
        name: [tuple(row) for row in await fetch(url, f"SELECT {columns.get(name, '*')} FROM {name} ORDER BY {order}")]
        for name, order in tables.items()
    }


async def test_who_changes_is_paged_and_nobody_else_and_the_same_again(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path, thorough: bool
) -> None:
    """A week of reference, then `moves` changes. Everybody is watched every day, beside an anchor."""
    changes, last, size = (9, 13, 1.1) if thorough else (8, 11, 1.6)
    still = ("stays", "pinned") if thorough else ("pinned",)
    config = configuration(tmp_path, ("moves", *still), ANCHORED)
    world = [simulated("moves", changes, size), *map(simulated, still)]
    days = Days(migrated_url, engine, config, world)
    for day in range(last):
        await days.pass_of(day)
        assert await watch(engine, config, day + 1) == 1
        found = await fetch(migrated_url, "SELECT count(*) FROM findings")
        assert day >= changes or found[0][0] == 0
    rows = await fetch(migrated_url, "SELECT * FROM findings WHERE level = 'page' ORDER BY metric")
    assert {row["deployment"] for row in await fetch(migrated_url, "SELECT deployment FROM findings")} == {"moves"}
    page = next(row for row in rows if row["metric"] == "ber_union_full")
    assert page["day"] <= FIRST + timedelta(days=changes + 2)
    assert page["first_seen"] == moment((page["day"] - FIRST).days + 1, 2)
    assert 0.02 < page["low"] < page["value"] < page["high"]
    assert (page["n_statements"], page["state"]) == (110, "open")
    evidence = json.loads(page["evidence"])
    assert evidence["direction"] == "up"
    assert evidence["detectors"]["statements"] >= 3.0 <= evidence["detectors"]["anchor"]

    series = await shown(engine, config, last)
    assert 'biasmeter_drift_alarm{deployment="moves",level="page",metric="ber_union_full"} 1.0' in series
    for name in still:
        for metric in ("ber_union_full", "ir", "dni"):
            for level in ("page", "investigate", "instrument"):
                assert f'biasmeter_drift_alarm{{deployment="{name}",level="{level}",metric="{metric}"}} 0.0' in series
    kinds = {line.split("{")[0] for line in series if "{" in line}
    assert kinds == {"biasmeter_drift_evidence", "biasmeter_drift_alarm", "biasmeter_minimal_detectable_shift"}
    fleet = [line for line in series if 'deployment=""' in line]
    assert len(fleet) == 4

    before = await everything(migrated_url)
    async with transaction(engine) as connection:
        coder = (await connection.execute(text("SELECT DISTINCT coder FROM monitor_days"))).scalar_one()
        await forget_watches(connection, coder)
        await connection.execute(text("DELETE FROM finding_events"))
        await connection.execute(text("DELETE FROM findings"))
    assert await watch(engine, config, last) == last
    assert await everything(migrated_url) == before


async def alone(url: str, engine: AsyncEngine, folder: Path, drifts_on: int | None, last: int) -> tuple[Config, Days]:
    """One deployment without an anchor, asked for so many days, and watched."""
    config = configuration(folder, ["moves"])
    days = Days(url, engine, config, [simulated("moves", drifts_on, 1.6)])
    for day in range(last):
        await days.pass_of(day)
        await watch(engine, config, day + 1)
    return config, days


@pytest.mark.parametrize(
    "judges", [pytest.param(TWO_JUDGES, marks=pytest.mark.slow), ""], ids=["two judges", "the lexicon"]
)
async def test_the_lexicon_alone_makes_no_finding_on_ir_or_dni(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path, judges: str
) -> None:
    """The same answers: two judges find that IR moved, the lexicon only finds that the endorsement did."""
    config = configuration(tmp_path, ["moves"], judges=judges)
    apart = replace(simulated("moves"), drift=Drift(at=moment(7), shift=Shift(sel=2.5, elab=-1.0)))
    days = Days(migrated_url, engine, config, [apart])
    for day in range(11):
        await days.pass_of(day)
    await watch(engine, config, 11)
    found = {row["metric"] for row in await fetch(migrated_url, "SELECT metric FROM findings")}
    assert "ber_union_full" in found
    assert ("ir" in found) == bool(judges)
    async with open_work(engine, config, lambda: moment(11, 2)) as work:
        await estimate_all(work)
    query = "SELECT missing, detail->>'measure' AS measure FROM estimates WHERE metric = 'drift_alarm'"
    reasons = {row["measure"]: row["missing"] for row in await fetch(migrated_url, query)}
    why = None if judges else "the lexicon alone read the texts: no verdict on IR or DNI without a second judge"
    assert reasons == {"ber_union_full": None, "ir": why, "dni": why}
    traps = await fetch(migrated_url, "SELECT missing FROM estimates WHERE metric = 'cancellation_trap'")
    assert judges or {row["missing"] for row in traps} == {why}


async def test_what_comes_after_a_day_has_closed_is_counted_and_changes_nothing(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config, days = await alone(migrated_url, engine, tmp_path, None, 7)
    readings = await days.answered(7)
    async with open_work(engine, config, lambda: moment(8, 2)) as work:
        await fetch(migrated_url, "CREATE TABLE kept AS SELECT * FROM exchanges WHERE id = $1", readings[0].exchange_id)
        await days.code(work, readings[1:], moment(7, 12))
        # One answer is stored and not read: the day stays open, whatever the hour.
        assert await watch_days(work) == 0
        await fetch(migrated_url, "DELETE FROM exchanges WHERE id = $1", readings[0].exchange_id)
        assert await watch_days(work) == 1
        states = await fetch(migrated_url, "SELECT * FROM monitor_watches")
        assert {row["through"] for row in states} == {FIRST + timedelta(days=7)}
        await fetch(migrated_url, "INSERT INTO exchanges SELECT * FROM kept")
        await days.code(work, readings[:1], moment(8, 3))
    await days.pass_of(8)
    await watch(engine, config, 9)
    late = await fetch(migrated_url, "SELECT day, late FROM monitor_days WHERE late > 0")
    assert [tuple(row) for row in late] == [(FIRST + timedelta(days=7), 1)]
    assert "1 answers of 2026-03-09 were coded after that day had been processed" in caplog.text
    before = await everything(migrated_url)
    async with transaction(engine) as connection:
        await forget_watches(connection, before["monitor_days"][0][0])
    assert await watch(engine, config, 9) == 9
    assert await everything(migrated_url) == before


async def test_a_day_is_left_alone_until_it_has_been_over_for_a_while(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    config = configuration(tmp_path, ["moves"])
    assert await watch(engine, config, 1) == 0
    await Days(migrated_url, engine, config, [simulated("moves")]).pass_of(0)
    early = moment(1) + GRACE - timedelta(seconds=1)
    async with open_work(engine, config, lambda: early) as work:
        assert await watch_days(work) == 0
    assert await watch(engine, config, 1) == 1
    assert await watch(engine, config, 1) == 0
    # Days without a pass are closed, too, and are no passes.
    assert await watch(engine, config, 4) == 3
    assert await fetch(migrated_url, "SELECT * FROM monitor_watches") == []
    async with open_work(engine, config, lambda: moment(4, 3)) as work:
        await estimate_all(work)
    rows = await fetch(migrated_url, "SELECT missing FROM estimates WHERE metric = 'drift_evidence'")
    assert {row["missing"] for row in rows} == {"its reference has not got its 7 days since 2026-03-02 yet"}


@pytest.mark.slow
async def test_another_panel_begins_anew_beside_the_old_one(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    config, days = await alone(migrated_url, engine, tmp_path, None, 8)
    assert any("minimal_detectable" in line for line in await shown(engine, config, 8))
    before = await everything(migrated_url)
    changed = configuration(tmp_path, ["moves"], judges="")
    assert await watch(engine, changed, 8) == 0
    assert await shown(engine, changed, 8) == []
    async with open_work(engine, changed, lambda: moment(8, 1)) as work:
        await days.code(work, days.asked, moment(8, 1))
    assert await watch(engine, changed, 8) == 8
    states = await fetch(migrated_url, "SELECT coder, metric, through FROM monitor_watches ORDER BY coder, metric")
    assert len({row["coder"] for row in states}) == 2
    assert [tuple(row)[1:] for row in states[:3]] == [tuple(row)[1:] for row in states[3:]]
    # The old coder's states have ended, as they were.
    after = await everything(migrated_url)
    assert set(before["monitor_watches"]) < set(after["monitor_watches"])


async def test_watching_a_day_reads_that_day_alone(migrated_url: str, engine: AsyncEngine, tmp_path: Path) -> None:
    await alone(migrated_url, engine, tmp_path, None, 4)
    coder = (await fetch(migrated_url, "SELECT coder FROM monitor_days LIMIT 1"))[0][0]
    low, high = day_bounds(FIRST + timedelta(days=3))
    given = {"coder": coder, "low": low, "high": high, "designs": ["panel"], "deployments": None}
    async with transaction(engine) as connection:
        rows = await monitor.count_passes(connection, coder, FIRST, FIRST)
        assert sum(row["n"] for row in rows) == 330
        # On tables this small a scan is the cheaper plan: with scans dear, one that is left means a lost index.
        await connection.execute(text("SET LOCAL enable_seqscan = off"))
        lines = [row[0] for row in await connection.execute(text(f"EXPLAIN {monitor._PASSES}"), given)]
    read = {name for line in lines for name in re.findall(r"(?:codings|exchanges)_20\d{6}\b", line)}
    assert read == {"codings_20260305", "exchanges_20260305"}
    assert not any("Seq Scan" in line for line in lines)


@pytest.mark.slow
async def test_a_new_reference_takes_its_days_and_then_counts(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    """The change of day 8 is found and accepted; what comes after it is held against what came with it."""
    config, days = await alone(migrated_url, engine, tmp_path, 8, 11)
    async with transaction(engine) as connection:
        found = await read_findings(connection)
        assert {one.level for one in found} == {"investigate"}
        first = min(found, key=lambda one: one.day)
        assert first.day <= FIRST + timedelta(days=10)
        person = Person(by="anna", note="the new release", now=moment(11, 5))
        reference = await accept_reference(connection, config, first, AcceptedReference(release="v2"), person)
    assert reference.since == first.day
    began = (first.day - FIRST).days
    for day in range(11, began + 9):
        await days.pass_of(day)
        await watch(engine, config, day + 1)
        if day == 11:
            told = await fetch(migrated_url, "SELECT count(*) FROM monitor_watches")
            assert told[0][0] == 0
            assert await shown(engine, config, 12) == []
    (kept,) = await fetch(migrated_url, "SELECT * FROM monitor_references WHERE accepted_by = 'anna'")
    assert (kept["release"], kept["until"]) == ("v2", first.day + timedelta(days=6))
    series = await shown(engine, config, began + 9)
    assert all(line.endswith(" 0.0") for line in series if line.startswith("biasmeter_drift_alarm"))
    assert any("drift_evidence" in line for line in series)
    async with transaction(engine) as connection:
        assert {one.state for one in await read_findings(connection)} == {"answered"}
        before = await everything(migrated_url)
        await forget_watches(connection, first.coder)
    assert await watch(engine, config, began + 9) == began + 9
    assert await everything(migrated_url) == before


@pytest.mark.slow
async def test_a_reference_is_accepted_though_nothing_was_found(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    config, days = await alone(migrated_url, engine, tmp_path, None, 8)
    person = Person(by="anna", note="announced", now=moment(8, 5))
    async with transaction(engine) as connection:
        reference = await accept_unasked(connection, config, "moves", AcceptedReference(release="v2"), person)
        with pytest.raises(UsageError, match="others is not monitored yet"):
            await accept_unasked(connection, config, "others", AcceptedReference(), person)
    assert reference.since == FIRST + timedelta(days=8)
    for day in range(8, 15):
        await days.pass_of(day)
        await watch(engine, config, day + 1)
        missing = await fetch(migrated_url, "SELECT 1 FROM monitor_watches WHERE state IS NOT NULL") == []
        assert missing == (day < 14)
    (kept,) = await fetch(migrated_url, "SELECT * FROM monitor_references WHERE accepted_by IS NOT NULL")
    assert (kept["id"], kept["release"], kept["note"]) == (reference.id, "v2", "announced")
    assert kept["until"] == FIRST + timedelta(days=14)


async def test_it_goes_on_of_itself_and_asks_for_new_estimates(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    config = configuration(tmp_path, ["moves"])
    await Days(migrated_url, engine, config, [simulated("moves")]).pass_of(0)
    async with open_work(engine, config, lambda: moment(1, 2)) as work:
        watching = asyncio.create_task(repeat_watching(work))

        async def asked() -> bool:
            return bool(await fetch(migrated_url, "SELECT 1 FROM biasmeter_jobs WHERE dedupe_key ~ 'estimate:monitor'"))

        await eventually(asked)
        watching.cancel()
    assert [row["watched"] for row in await fetch(migrated_url, "SELECT watched FROM monitor_days")] == [True]
