"""``export-exchanges`` and then ``code``: the same codings as in the store, for probes and for client traffic."""

import asyncio
import json
from pathlib import Path

from sqlalchemy.ext.asyncio import AsyncEngine
from support.stores.audited_store import CTO, TRAFFIC, configuration, panel_answers, plan, ship, verdict
from support.stores.exchanges import exchange
from support.stores.exported_audit import SHARES, command, later, written
from typer.testing import CliRunner

import biasmeter
from auditor.coding.responses import read_responses
from auditor.domain.condition import Condition, Role, Task
from auditor.domain.exchange import Origin, Outcome
from auditor.instrument.pool import shipped_pool
from auditor.jobs.run_once import run_once
from auditor.reliability.sample import readable_items
from biasmeter.commands.main import app

FEW = {name: {kind: 2 * times // 5 for kind, times in kinds.items()} for name, kinds in SHARES.items()}
LABELS = ("sel", "sel_reason", "sel_via", "elab", "elab_reason", "votes", "rubric", "task", "statement_id", "inclusion")


def rows(path: Path) -> dict[str, dict]:
    return {row["id"]: row for row in map(json.loads, path.read_text().splitlines())}


def labels(found: dict[str, dict]) -> dict[str, dict]:
    return {key: {name: row.get(name) for name in LABELS} for key, row in found.items()}


async def test_probes_are_coded_as_in_the_store(migrated_url: str, engine: AsyncEngine, tmp_path: Path) -> None:
    conditions = [CTO, Condition(task=Task.CTO, role=Role.SOCIOLOGIST)]
    await plan(migrated_url, FEW, shipped_pool()[:40], conditions)
    await ship(migrated_url, panel_answers(FEW, conditions=conditions))
    config = written(tmp_path, migrated_url)
    await run_once(configuration(tmp_path), engine, later)
    await command("export-coded", "-c", config, "-o", tmp_path / "stored.jsonl")
    await command("export-exchanges", "-c", config, "--select", "all", "-o", tmp_path / "exchanges.jsonl.gz")
    await command(
        "code", tmp_path / "exchanges.jsonl.gz", "-c", config, "--judges", "lexicon", "-o", tmp_path / "coded.jsonl"
    )
    coded, stored = rows(tmp_path / "coded.jsonl"), rows(tmp_path / "stored.jsonl")
    assert labels(coded) == labels(stored)
    assert len(coded) == 2 * sum(sum(kinds.values()) for kinds in FEW.values())
    first = next(iter(coded.values()))
    assert first["template_id"] == "CTO-00"
    assert first["category"]
    assert "request" not in first
    by = ("deployment",)
    estimates = [
        biasmeter.analyze([row | {"template_id": None} for row in found.values()], by=by).document["groups"]
        for found in (coded, stored)
    ]
    assert estimates[0] == estimates[1]
    # A coded file can be coded again, and candidates for a panel can be asked about it.
    await command("code", tmp_path / "stored.jsonl", "--judges", "lexicon", "-o", tmp_path / "again.jsonl")
    assert labels(rows(tmp_path / "again.jsonl")) == labels(stored)
    items = readable_items(read_responses(tmp_path / "stored.jsonl"))
    assert {item.id for item in items} == {
        key for key, row in stored.items() if row.get("elab_reason") != "no_elaboration"
    }


async def test_client_traffic_is_read_by_the_profile_of_its_route(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    asked = [verdict("E", "D", i) for i in range(10)] + [verdict("D", "E", i) for i in range(10, 30)]
    await ship(migrated_url, [*asked, exchange(origin=Origin.JUDGE), exchange(outcome=Outcome.CUT, route="desk")])
    config = written(tmp_path, migrated_url, TRAFFIC)
    await run_once(configuration(tmp_path, TRAFFIC), engine, later)
    await command("export-coded", "-c", config, "-o", tmp_path / "stored.jsonl")
    await command("export-exchanges", "-c", config, "--select", "all", "-o", tmp_path / "exchanges.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "exchanges.jsonl").read_text().splitlines()]
    assert len(lines) == 31
    found = await asyncio.to_thread(biasmeter.code, lines, judges=["lexicon"], config=config)
    coded = {row["id"]: row for row in found}
    stored = rows(tmp_path / "stored.jsonl")
    names = ("sel", "sel_reason", "task", "statement_id", "rubric", "claim", "audit", "inclusion")
    assert {key: [row.get(name) for name in names] for key, row in coded.items()} == {
        key: [row.get(name) for name in names] for key, row in stored.items()
    }
    assert len(coded) == 30
    again = await asyncio.to_thread(biasmeter.code, list(stored.values()))
    assert {row["task"] for row in again} == {"traffic"}


def test_an_exchange_that_cannot_be_coded_is_left_out_with_its_reason(tmp_path: Path) -> None:
    line = {"id": "1", "at": "2026-03-01T12:00:00Z", "deployment": "d", "model": "m"}
    body = json.dumps({"choices": [{"message": {"content": "People are people."}, "finish_reason": "stop"}]})
    lines = [
        line | {"response": body},
        line | {"id": "2", "origin": "judge", "response": body},
        line | {"id": "3", "outcome": "cut"},
        line | {"id": "4"},
    ]
    file = tmp_path / "exchanges.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    done = CliRunner().invoke(app, ["code", str(file), "-o", str(tmp_path / "coded.jsonl"), "--json"])
    told = json.loads(done.stdout)
    assert told["rows"] == 1
    assert told["left_out"] == {"no_content": 1, "origin judge": 1, "outcome cut": 1}
    (row,) = rows(tmp_path / "coded.jsonl").values()
    assert (row["task"], row["rubric"], row["elab_reason"]) == ("traffic", "open", "no_judge")
