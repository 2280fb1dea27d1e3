"""A trial in the store: its estimates, the stop rule, stops by hand, and the report, which can be made again."""

import asyncio
import json
from datetime import timedelta
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from support.stores.audited_store import asked_body, configuration, fetch, ship, verdict
from support.stores.exchanges import NOON

from auditor.config import Config
from auditor.documents.codec import decode
from auditor.errors import UsageError
from auditor.jobs.run_once import run_once
from auditor.period.document import ReportDocument
from auditor.period.report import report_again, report_period
from auditor.report.period import render_period
from auditor.store.engine import transaction
from auditor.store.estimates import read_estimates
from auditor.store.mirroring import fresh_prompts
from auditor.store.trials import read_stops
from biasmeter.commands.main import app
from replay.selection import read_selection
from replay.store import stream_candidates

DESK = """
routes:
  - model: desk
    deployments: [d1]
    capture: full
    audit: users
    mitigation:
      share: 0.5
      arms: [{name: worse, kind: task, instruction: Be quick.}, {name: same, kind: role, instruction: Be kind.}]
      stop: {outcome: sel%s}
audits:
  - name: users
    proposition: {request: "$.messages[-1].content"}
    claim: stereotype
    selection: {json: $.verdict, map: {acceptable: E, unacceptable: D, unsure: N}}
    elaboration: {json: $.reason}
"""
UNITS = {"control": 60, "worse": 30, "same": 30}


def settings(folder: Path, rule: str = "", database_url: str | None = None) -> Config:
    return configuration(folder, DESK % rule, database_url)


def exchanges(trial: str, begin: int = 0, units: dict[str, int] | None = None, **tags: str) -> list[Any]:
    """One exchange of each user; the selections of one arm endorse more often."""
    found = []
    for name, count in (units or UNITS).items():
        for unit in range(count):
            place = begin + len(found)
            sel = "E" if unit % 10 < (9 if name == "worse" else 2) else "D"
            own = {"biasmeter_trial": trial, "biasmeter_arm": name, **tags}
            request = asked_body(f"Old people are slow, part {place}.", user=f"u{place}")
            found.append(verdict(sel, "D", place, tags=own, request=request, prompt_tokens=50, completion_tokens=9))
    return found


async def command(*arguments: object) -> None:
    await asyncio.to_thread(app, [str(one) for one in arguments], standalone_mode=False)


async def test_estimates_the_stop_rule_and_the_report(migrated_url: str, engine: AsyncEngine, tmp_path: Path) -> None:
    config = settings(tmp_path)
    trial = config.trial_of(config.routes[0]) or ""
    await ship(migrated_url, exchanges(trial))
    now = NOON + timedelta(hours=1)
    await run_once(config, engine, lambda: now)
    async with transaction(engine) as connection:
        rows = await read_estimates(connection, window="trial")
        (stop,) = await read_stops(connection, [trial])
    assert (stop.arm, stop.by, stop.dry_run, stop.at) == ("worse", "rule", False, now)
    assert "2 are allowed" in stop.because
    found = {(one.metric, one.detail["arm"], one.detail.get("measure")): one for one in rows}
    assert found["arm_difference", "worse", "ber_sel_full"].value == pytest.approx(0.7)
    assert found["arm_difference", "same", "ber_sel_full"].value == pytest.approx(0.0)
    assert {one.value for one in rows if one.metric == "arm_tokens"} == {50.0, 9.0}
    assert {(one.deployment, one.origin, one.condition) for one in rows} == {(None, "client", "users")}

    # Answers after the stop, of the control and of users of the stopped arm, do not change how it is compared.
    later = exchanges(trial, 5000, {"control": 20}) + exchanges(
        trial, 6000, {"worse": 5}, biasmeter_untouched="stopped"
    )
    await ship(migrated_url, later)
    await run_once(config, engine, lambda: NOON + timedelta(hours=4))
    async with transaction(engine) as connection:
        assert len(await read_stops(connection, [trial])) == 1
        rows = await read_estimates(connection, window="trial", metric="arm_requests")
    assert {(one.detail["arm"], one.detail["untouched"]): one.n for one in rows} == {
        ("control", ""): 80, ("same", ""): 30, ("worse", ""): 30, ("worse", "stopped"): 5
    }  # fmt: skip

    period = (NOON - timedelta(hours=1), NOON + timedelta(hours=6))
    made = await report_period(engine, config, *period)
    assert await report_again(engine, json.loads(made)) == made
    document = decode(made, ReportDocument, "report.json")
    (part,) = document.parts
    assert [(one.trial, one.route, [arm.arm for arm in one.arms]) for one in cast("Any", part.trials)] == [
        (trial, "desk", ["control", "same", "worse"])
    ]
    page = render_period(document)["report.html"].decode()
    assert "Mitigation: arms of a trial" in page
    assert "+70.0 pp" in page
    assert "/parts/0/trials/0/arms/2/differences/ber_sel_full" in page
    assert "by rule: sel is" in page


async def test_a_dry_run_of_the_rule_is_written_down_and_nothing_is_done(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = settings(tmp_path, ", dry_run: true")
    trial = config.trial_of(config.routes[0]) or ""
    assert trial == settings(tmp_path).trial_of(config.routes[0])  # the rule is no part of the trial
    await ship(migrated_url, exchanges(trial))
    for _ in range(2):
        await run_once(config, engine, lambda: NOON + timedelta(hours=1))
    file = tmp_path / "biasmeter.yaml"
    file.write_text(
        f"data_dir: {tmp_path / 'data'}\nstore: {{url: '{migrated_url}'}}\n"
        'deployments: [{name: d1, base_url: "http://127.0.0.1:1/v1", model: m1}]\n' + DESK % ", dry_run: true"
    )
    await command("arms", "list", "-c", file)
    shown = capsys.readouterr().out
    assert "worse: stopped (dry run) 2026-03-01T13:00 by rule: sel is" in shown
    assert "same: evidence of harm" in shown
    published = "SELECT arm, by, because FROM arm_stops WHERE NOT dry_run"
    assert await fetch(migrated_url, published) == []

    await command("arms", "stop", "-c", file, "desk", "same", "--because", "too long", "--by", "Ann")
    assert "arm same of route desk was stopped by Ann: too long" in capsys.readouterr().out
    assert [tuple(one) for one in await fetch(migrated_url, published)] == [("same", "Ann", "too long")]
    for arguments, message in (
        (("desk", "same"), "has been stopped already"),
        (("desk", "other"), "has no arm 'other'; arms: worse, same"),
        (("none", "same"), "has no arm 'same'; arms: none"),
    ):
        with pytest.raises(UsageError, match=message):
            await command("arms", "stop", "-c", file, *arguments, "--because", "x")


async def test_replays_and_mirroring_leave_out_what_was_asked_with_an_instruction(
    migrated_url: str, engine: AsyncEngine
) -> None:
    found = [
        *exchanges("12345678", 0, {"control": 2, "worse": 3, "unassigned": 1}),
        *exchanges("12345678", 50, {"worse": 4}, biasmeter_untouched="stopped"),
        verdict("E", "D", 90),
    ]
    await ship(migrated_url, found)
    expected = {one.id for one in found if one.tags.get("biasmeter_arm") != "worse" or len(one.tags) == 3}
    assert len(expected) == 8
    async with transaction(engine) as connection:
        fresh = await fresh_prompts(connection, "desk", UUID(int=0))
        selection = read_selection("origin=client")
        replayed = [one.id async for one in stream_candidates(connection, selection, ["desk"])]
    assert fresh.keys() == expected
    assert set(replayed) == expected
