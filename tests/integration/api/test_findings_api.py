"""``/api/findings`` and ``biasmeter findings``: findings are shown, acknowledged, and answered with a new reference."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from support.documents.finding_entries import FINDING, SEEN, found
from support.servers.auditor_api import serving
from support.stores.audited_store import configuration, fetch
from typer.testing import CliRunner

from auditor.export.families import EstimateExposition
from auditor.store.engine import transaction
from auditor.store.findings import take_due
from biasmeter.commands.main import app

MORNING = SEEN + timedelta(hours=6)
ACKNOWLEDGE = {"action": "acknowledge", "by": "anna", "note": "looking"}
ACCEPT = {"action": "accept_reference", "by": "ben", "release": "v2"}


@asynccontextmanager
async def api(url: str, folder: Path) -> AsyncIterator[aiohttp.ClientSession]:
    config = configuration(folder, "monitor: {webhook: {url: 'http://127.0.0.1:1/'}}\n")
    async with serving(url, config, lambda: MORNING) as address, aiohttp.ClientSession(f"http://{address}") as client:
        yield client


async def get(client: aiohttp.ClientSession, path: str) -> tuple[int, Any]:
    async with client.get(path) as answer:
        return answer.status, await answer.json()


async def post(
    client: aiohttp.ClientSession, body: Any, finding: str = "finding_1", **headers: str
) -> tuple[int, dict[str, Any]]:
    async with client.post(f"/api/findings/{finding}", json=body, headers=headers) as answer:
        return answer.status, await answer.json()


@pytest.fixture
async def stored(migrated_url: str, engine: AsyncEngine, tmp_path: Path) -> str:
    config = configuration(tmp_path)
    await found(engine, config)
    await found(
        engine, config, id="finding_2", metric="ber_union_full", level="investigate", value=None, low=None, high=None
    )
    await found(engine, config, id="finding_3", deployment="d2", first_seen=SEEN + timedelta(days=1))
    return migrated_url


async def test_findings_are_listed_the_newest_first(stored: str, tmp_path: Path) -> None:
    async with api(stored, tmp_path) as client:
        _, everything = await get(client, "/api/findings")
        assert [one["id"] for one in everything["findings"]] == ["finding_3", "finding_1", "finding_2"]
        _, own = await get(client, "/api/findings?deployment=d1&level=page")
        (one,) = own["findings"]
        assert (one["value"], one["low"], one["high"], one["n"], one["n_statements"]) == (0.08, 0.05, 0.11, 900, 100)
        assert one["window"] == {"since": "2026-03-09", "until": "2026-03-11"}
        assert one["evidence"] == FINDING.evidence
        assert "note" not in one
        assert "value" not in everything["findings"][2]
        status, refused = await get(client, "/api/findings?colour=red")
        assert (status, refused["error"]["param"]) == (400, "colour")
        assert (await get(client, "/api/findings/finding_9"))[0] == 404


async def test_a_finding_is_acknowledged_then_answered_with_all_that_is_found_of_its_deployment(
    stored: str, tmp_path: Path
) -> None:
    async with api(stored, tmp_path) as client:
        status, acknowledged = await post(client, ACKNOWLEDGE)
        assert (status, acknowledged["state"], acknowledged["by"]) == (200, "acknowledged", "anna")
        status, answered = await post(client, ACCEPT)
        assert (status, answered["state"], answered["by"]) == (200, "answered", "ben")
        assert [event["action"] for event in answered["events"]] == ["opened", "acknowledged", "answered"]
        assert answered["events"][1]["note"] == "looking"
        (reference,) = await fetch(stored, "SELECT * FROM monitor_references")
        assert answered["events"][2]["reference"] == reference["id"]
        assert (reference["deployment"], reference["since"], reference["release"]) == ("d1", FINDING.day, "v2")
        assert (reference["accepted_by"], reference["accepted_at"], reference["content"]) == ("ben", MORNING, None)
        _, everything = await get(client, "/api/findings")
        assert {one["id"]: one["state"] for one in everything["findings"]} == {
            "finding_1": "answered", "finding_2": "answered", "finding_3": "open",
        }  # fmt: skip
        status, refused = await post(client, ACKNOWLEDGE)
        assert (status, refused["error"]["code"]) == (409, "finding_answered")
    posted = await fetch(stored, "SELECT finding_id, state FROM webhook_deliveries ORDER BY 1, 2")
    assert [tuple(row) for row in posted] == [
        ("finding_1", "acknowledged"), ("finding_1", "answered"), ("finding_2", "answered"),
    ]  # fmt: skip
    assert (await fetch(stored, "SELECT entrypoint FROM biasmeter_jobs"))[0]["entrypoint"] == "estimate"


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"action": "ignore", "by": "anna"}, "action"),
        ({"action": "acknowledge"}, "by"),
        ({"action": "acknowledge", "by": 7}, "by"),
        ({"action": "acknowledge", "by": "anna", "note": "x" * 2001}, "note"),
        ({"action": "acknowledge", "by": "anna", "since": "2026-03-01"}, "since"),
        ({"action": "accept_reference", "by": "anna", "since": "yesterday"}, "since"),
        ({"action": "accept_reference", "by": "anna", "colour": "red"}, "colour"),
    ],
)
async def test_what_cannot_be_meant_is_refused(stored: str, tmp_path: Path, body: Any, param: str) -> None:
    async with api(stored, tmp_path) as client:
        status, refused = await post(client, body)
    assert (status, refused["error"]["param"]) == (400, param)
    assert {row["state"] for row in await fetch(stored, "SELECT state FROM findings")} == {"open"}


async def test_a_reference_begins_no_later_than_today(stored: str, tmp_path: Path) -> None:
    async with api(stored, tmp_path) as client:
        status, refused = await post(client, {**ACCEPT, "since": "2026-03-13"})
        assert (status, "2026-03-13" in refused["error"]["message"]) == (409, True)
        assert (await post(client, {**ACCEPT, "since": "2026-03-12"}))[0] == 200


async def test_pages_of_other_sites_answer_nothing(stored: str, tmp_path: Path) -> None:
    async with api(stored, tmp_path) as client:
        assert (await post(client, ACCEPT, origin="http://elsewhere.example"))[0] == 403


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["findings", *arguments])


def test_the_command_shows_and_answers(stored: str, tmp_path: Path) -> None:
    config = tmp_path / "t.yaml"
    config.write_text(
        f"store: {{url: '{stored}'}}\ndeployments: [{{name: d1, base_url: 'http://127.0.0.1:1', model: m}}]\n"
        'routes: [{model: "*", deployments: [d1]}]\n'
    )
    file = ("-c", str(config))
    listed = run("list", *file, "--deployment", "d1").output.splitlines()
    assert [line.split()[:4] for line in listed] == [
        ["finding_1", "2026-03-12", "page", "open"], ["finding_2", "2026-03-12", "investigate", "open"],
    ]  # fmt: skip
    assert "+8.0 points (+5.0 to +11.0)" in listed[0]
    assert "by an unknown amount" in listed[1]
    shown = run("show", *file, "finding_1").output
    assert "log evidence (a detector alarms at 3.00): days 3.50, statements 4.25" in shown
    done = run("acknowledge", *file, "finding_1", "--by", "anna", "--note", "on it", "--json")
    assert (done.exit_code, json.loads(done.output)["state"]) == (0, "acknowledged")
    done = run("accept-reference", *file, "finding_1", "--by", "ben", "--since", "2026-03-10", "--release", "v2")
    assert "answered by ben with reference_" in done.output
    assert "acknowledged by anna: on it" in done.output
    listed = run("list", *file, "--state", "answered", "--json").output
    assert {one["id"] for one in json.loads(listed)["findings"]} == {"finding_1", "finding_2"}
    assert run("show", *file, "finding_9").exception.exit_status == 2
    assert "has been answered already, by ben" in str(run("acknowledge", *file, "finding_1").exception)
    assert run("list", *file, "--state", "lost").exit_code == 2
    assert run("list", *file, "--deployment", "d9").output == "no findings\n"


async def test_a_silenced_finding_is_not_posted_and_has_its_series(
    stored: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    config = configuration(tmp_path, "monitor: {webhook: {url: 'http://127.0.0.1:1/'}}\n")
    await found(engine, config, id="finding_4", metric="dni", level="investigate")
    until = MORNING + timedelta(days=3)
    silence = {"action": "silence", "by": "anna", "until": until.isoformat()}
    async with api(stored, tmp_path) as client:
        status, silenced = await post(client, silence, "finding_4")
        assert (status, silenced["silenced_until"], silenced["state"]) == (200, until.isoformat(), "open")
        assert silenced["events"][-1] == {
            "at": MORNING.isoformat(), "action": "silenced", "by": "anna", "until": until.isoformat(),
        }  # fmt: skip
        for bad, status in (
            ({**silence, "until": "soon"}, 400), ({**silence, "until": SEEN.isoformat()}, 409),
            ({**silence, "until": (MORNING + timedelta(days=91)).isoformat()}, 409),
            ({"action": "silence", "by": "anna"}, 400), ({**ACKNOWLEDGE, "until": until.isoformat()}, 400),
        ):  # fmt: skip
            assert (await post(client, bad, "finding_4"))[0] == status, bad
        assert (await post(client, {"action": "end_silence", "by": "anna"}, "finding_1"))[0] == 409
    series = 'biasmeter_drift_silenced{deployment="d1",level="investigate",metric="dni"} 1.0'
    for moment, waits in ((MORNING, True), (until, False)):
        async with transaction(engine) as connection:
            due = await take_due(connection, moment, timedelta(days=9))
        assert (due is None) == waits
        exposition = EstimateExposition(lambda at=moment: at)
        await exposition.refresh(engine)
        assert (series in exposition.text.decode()) == waits


def test_the_command_silences_and_ends_it(stored: str, tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(
        f"store: {{url: '{stored}'}}\ndeployments: [{{name: d1, base_url: 'http://127.0.0.1:1', model: m}}]\n"
        'routes: [{model: "*", deployments: [d1]}]\n'
    )

    def run(*arguments: str) -> Any:
        return CliRunner().invoke(app, ["findings", "silence", "-c", str(path), "finding_1", *arguments])

    assert "silenced until" in run("--for", "3d", "--by", "anna").output
    assert run("--for", "3 moons", "--by", "anna").exit_code != 0
    assert run("--by", "anna").exit_code != 0
    assert "silence_ended by anna" in run("--end", "--by", "anna").output
