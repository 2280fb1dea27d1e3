"""``/api/references`` and ``biasmeter references``: what is held against what, and a new one without a finding."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession
from sqlalchemy.ext.asyncio import AsyncEngine
from support.documents.finding_entries import SEEN, found
from support.servers.auditor_api import serving
from support.stores.audited_store import configuration, fetch
from typer.testing import CliRunner

from auditor.findings import watching_coder
from auditor.store.engine import transaction
from auditor.store.references import StoredReference, add_reference
from biasmeter.commands.main import app

MORNING = SEEN + timedelta(hours=6)
ASKED = {"deployment": "d1", "by": "anna", "note": "announced on Monday", "release": "v2"}


@asynccontextmanager
async def api(url: str, folder: Path) -> AsyncIterator[ClientSession]:
    config = configuration(folder, "monitor: {webhook: {url: 'http://127.0.0.1:1/'}}\n")
    async with serving(url, config, lambda: MORNING) as address, ClientSession(f"http://{address}") as client:
        yield client


async def get(client: ClientSession, path: str) -> Any:
    async with client.get(path) as answer:
        return await answer.json()


@pytest.fixture
async def stored(migrated_url: str, engine: AsyncEngine, tmp_path: Path) -> str:
    """Two deployments are watched, of both something is found."""
    config = configuration(tmp_path)
    coder = await watching_coder(config)
    for name in ("d1", "d2"):
        await found(engine, config, id=f"finding_{name}", coder=coder, deployment=name)
        await first_of(engine, coder, name)
    return migrated_url


async def first_of(engine: AsyncEngine, coder: str, deployment: str) -> None:
    first = StoredReference(
        id=f"reference_{deployment}", coder=coder, deployment=deployment, since=date(2026, 3, 2),
        accepted_at=SEEN - timedelta(days=9),
    )  # fmt: skip
    async with transaction(engine) as connection:
        await add_reference(connection, first)


async def post(client: ClientSession, body: Any, **headers: str) -> tuple[int, dict[str, Any]]:
    async with client.post("/api/references", json=body, headers=headers) as answer:
        return answer.status, await answer.json()


async def test_a_reference_is_accepted_without_a_finding_and_answers_what_is_found(stored: str, tmp_path: Path) -> None:
    async with api(stored, tmp_path) as client:
        status, accepted = await post(client, ASKED)
        assert (status, accepted["since"], accepted["in_force"]) == (201, "2026-03-12", True)
        assert (accepted["by"], accepted["note"], accepted["release"]) == ("anna", "announced on Monday", "v2")
        assert accepted["accepted_at"] == MORNING.isoformat()
        assert "until" not in accepted
        everything = await get(client, "/api/references")
        assert [(one["id"], one["in_force"]) for one in everything["references"]] == [
            (accepted["id"], True), ("reference_d1", False), ("reference_d2", True),
        ]  # fmt: skip
        own = await get(client, "/api/references?deployment=d1")
        assert own["references"] == [accepted, everything["references"][1]]
        assert "by" not in own["references"][1]
        answered = await get(client, "/api/findings/finding_d1")
        assert (answered["state"], answered["events"][-1]["reference"]) == ("answered", accepted["id"])
        assert answered["note"] == "announced on Monday"
        other = await get(client, "/api/findings/finding_d2")
        assert other["state"] == "open"
        assert (await post(client, {**ASKED, "since": "2026-03-10"}))[0] == 201
    posted = await fetch(stored, "SELECT finding_id, state FROM webhook_deliveries")
    assert [tuple(row) for row in posted] == [("finding_d1", "answered")]


@pytest.mark.parametrize(
    ("changed", "status", "says"),
    [
        ({"deployment": None}, 400, "deployment must say whose reference it is"),
        ({"by": ""}, 400, "by must say who accepts it"),
        ({"since": "soon"}, 400, "since must be a date"),
        ({"until": "2026-03-20"}, 400, "The body has an unknown field 'until'"),
        ({"since": "2026-03-13"}, 409, "2026-03-13: that day is in the future"),
        ({"deployment": "d9"}, 409, "d9 is not monitored yet"),
    ],
)
async def test_what_cannot_be_meant_is_refused(
    stored: str, tmp_path: Path, changed: dict[str, Any], status: int, says: str
) -> None:
    async with api(stored, tmp_path) as client:
        answered, refused = await post(client, {**ASKED, **changed})
        assert (answered, says in refused["error"]["message"]) == (status, True), refused
        assert (await post(client, ASKED, origin="http://elsewhere.example"))[0] == 403
        assert (await get(client, "/api/references?colour=red"))["error"]["param"] == "colour"
    assert len(await fetch(stored, "SELECT 1 FROM monitor_references")) == 2


def run(config: Path, *arguments: str) -> Any:
    return CliRunner().invoke(app, ["references", arguments[0], "-c", str(config), *arguments[1:]])


def test_the_command_lists_and_accepts(stored: str, tmp_path: Path) -> None:
    config = tmp_path / "t.yaml"
    declared = "".join(f"  - {{name: {name}, base_url: 'http://127.0.0.1:1', model: m}}\n" for name in ("d1", "d2"))
    config.write_text(
        f"store: {{url: '{stored}'}}\ndeployments:\n{declared}routes: [{{model: '*', deployments: [d1]}}]\n"
    )
    assert run(config, "list").output.splitlines() == [
        "reference_d1  d1  since 2026-03-02, not enough days yet  the first",
        "reference_d2  d2  since 2026-03-02, not enough days yet  the first",
    ]
    told = ("--deployment", "d1", "--by", "anna", "--note", "announced", "--release", "v2", "--since", "2026-03-10")
    done = run(config, "accept", *told)
    assert done.exit_code == 0
    assert "  d1  since 2026-03-10, not enough days yet  release v2  accepted 20" in done.output
    assert done.output.endswith(" by anna: announced\n")
    listed = json.loads(run(config, "list", "--deployment", "d1", "--json").output)["references"]
    assert [one["in_force"] for one in listed] == [True, False]
    assert run(config, "list", "--deployment", "d9").output == "no deployment is monitored yet\n"
    assert "d9 is not monitored yet" in str(run(config, "accept", "--deployment", "d9", "--by", "anna").exception)
    assert run(config, "accept", "--by", "anna").exit_code == 2
