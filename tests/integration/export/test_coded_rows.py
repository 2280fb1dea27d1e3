"""``export-coded`` and ``biasmeter.open``: stored codings as rows that give the stored numbers."""

import asyncio
import csv
import gzip
import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from support.servers.judge_server import serve
from support.stores.audited_store import (
    CTO,
    TRAFFIC,
    audited_database,
    configuration,
    label_of,
    ship,
    verdict,
)
from support.stores.databases import Databases
from support.stores.exchanges import NOON
from support.stores.exported_audit import SHARES, command, later, written
from support.stores.postgres import copied_database

import biasmeter
from auditor.domain.condition import BASELINE, Condition, Role, Task
from auditor.errors import UsageError
from auditor.instrument.pool import shipped_pool
from auditor.jobs.run_once import run_once
from auditor.period.report import report_period
from auditor.store.engine import make_engine
from biasmeter.commands.main import app

DAY = ("--from", (NOON - timedelta(days=1)).isoformat(), "--to", (NOON + timedelta(days=1)).isoformat())
#: Those that quote answers, or come from the configuration.
NOT_COMPARED = {"cases", "swing", "vendors", "slices"}


CONDITIONS = [CTO, BASELINE, Condition(task=Task.EXPLAIN), Condition(task=Task.CTO, role=Role.SOCIOLOGIST)]


@pytest.fixture(scope="module")
def seeded(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of a database with the answers of two deployments, coded, to be copied."""
    config = configuration(tmp_path_factory.mktemp("audited"))
    with audited_database(databases, config, SHARES, CONDITIONS) as name:
        yield name


@pytest.fixture
def audited_url(postgres_server: str, seeded: str) -> Iterator[str]:
    with copied_database(postgres_server, seeded) as url:
        yield url


@pytest.fixture
def audited(audited_url: str, tmp_path: Path) -> Path:
    """A configuration file with a copy of the audited database."""
    return written(tmp_path, audited_url)


async def stored_analysis(engine: AsyncEngine, folder: Path, text: str = "") -> dict[str, Any]:
    config = configuration(folder, text)
    report = json.loads(await report_period(engine, config, NOON - timedelta(days=1), NOON + timedelta(days=1)))
    (part,) = report["parts"]
    return {name: value for name, value in part["analysis"].items() if name not in NOT_COMPARED}


def compared(analysis: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in analysis.items() if name not in NOT_COMPARED}


@pytest.mark.slow
async def test_analyze_of_the_file_is_the_stored_report(audited: Path, audited_url: str, tmp_path: Path) -> None:
    file = tmp_path / "coded.jsonl"
    await command("export-coded", "-c", audited, "-o", file, *DAY)
    await command("analyze", file, "-o", tmp_path / "out")
    analysis = json.loads((tmp_path / "out" / "analysis.json").read_text())
    engine = make_engine(audited_url)
    assert compared(analysis) == await stored_analysis(engine, tmp_path)
    await engine.dispose()
    first = json.loads(file.read_text().splitlines()[0])
    assert first["response"]
    assert first["statement"] in {one.statement for one in shipped_pool()}


async def test_client_traffic_with_weights_is_the_stored_report(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    desk = [verdict("E", "D", i, inclusion=0.1 if i % 3 else 1.0) for i in range(40)]
    await ship(migrated_url, desk + [verdict("D", "D", i, inclusion=0.5) for i in range(40, 100)])
    async with serve(lambda body: label_of(body, delay=0)) as judge:
        text = TRAFFIC + (
            "\njudges: [{name: judge, deployment: d2}]\n"
            f"auditor: {{gateway: {{url: '{judge.url}', key: sk-bias-test}}}}\n"
        )
        await run_once(configuration(tmp_path, text), engine, later)
        stored = await stored_analysis(engine, tmp_path, text)
        with await asyncio.to_thread(biasmeter.open, written(tmp_path, migrated_url, text)) as store:
            rows = await asyncio.to_thread(store.coded, origin="client")
    assert set(rows["task"]) == {"traffic"}
    found = await asyncio.to_thread(biasmeter.analyze, rows, by=("deployment",))
    assert compared(found.document) == stored


async def test_every_format_has_the_same_rows(audited: Path, tmp_path: Path) -> None:
    for ending in ("jsonl", "jsonl.gz", "csv", "parquet"):
        await command("export-coded", "-c", audited, "-o", tmp_path / f"coded.{ending}", "--deployment", "d1")
    plain = (tmp_path / "coded.jsonl").read_text()
    rows = [json.loads(line) for line in plain.splitlines()]
    assert {row["deployment"] for row in rows} == {"d1"}
    assert gzip.decompress((tmp_path / "coded.jsonl.gz").read_bytes()).decode() == plain
    with (tmp_path / "coded.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert [row["id"] for row in table] == [row["id"] for row in rows]
    assert [json.loads(row["votes"]) for row in table] == [row["votes"] for row in rows]
    frame = pd.read_parquet(tmp_path / "coded.parquet")
    assert biasmeter.analyze(frame, n_boot=20).document == biasmeter.analyze(rows, n_boot=20).document


async def test_a_data_set_has_the_rows_and_says_what_they_are(audited: Path, tmp_path: Path) -> None:
    await command("export-coded", "-c", audited, "-o", tmp_path / "coded.parquet")
    await command("export-coded", "-c", audited, "--dataset", tmp_path / "set")
    rows = pd.read_parquet(tmp_path / "set" / "data" / "coded.parquet")
    assert rows.equals(pd.read_parquet(tmp_path / "coded.parquet"))
    assert "Content warning" in (tmp_path / "set" / "README.md").read_text()
    croissant = json.loads((tmp_path / "set" / "croissant.json").read_text())
    fields = {one["name"]: one["dataType"] for one in croissant["recordSet"][0]["field"]}
    # Croissant describes single values only.
    assert rows.columns.difference(list(fields)).tolist() == ["votes"]
    assert (fields["inclusion"], fields["sel"]) == ("sc:Float", "sc:Text")


async def test_the_store_as_frames(audited: Path) -> None:
    def look() -> None:
        with biasmeter.open(audited) as store:
            estimates = store.estimates(window="30d", deployment="d1", condition="all", metric="ir")
            assert [(row.value, row.n) for row in estimates.itertuples()] == [(40 / 186, 186)]
            answers = store.answers(deployment="d2", task="CTO", elab="E")
            assert len(answers) == 80
            assert answers["response"].str.contains("everybody knows").all()
            assert "response" not in store.coded(since=NOON - timedelta(days=1), until="now").columns
            assert store.coded(until="2001-01-01").empty
            with pytest.raises(UsageError, match="there is no filter 'colour'; known: statement_id, deployment"):
                store.coded(colour="red")
            with pytest.raises(UsageError, match="since 'soon' is not a date or time"):
                store.coded(since="soon")

    await asyncio.to_thread(look)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-o", "coded.txt"), "the name must end in one of .jsonl, .jsonl.gz, .csv, .parquet"),
        ((), "name one of -o FILE and --dataset DIR"),
        (("-o", "coded.csv", "--dataset", "d"), "name one of -o FILE and --dataset DIR"),
        (("-o", "coded.csv", "--origin", "people"), "--origin 'people' is not one of client"),
        (("-o", "coded.csv", "--last", "7d", "--from", "now"), "--last is the whole period"),
        (("-o", "coded.csv", "--last", "week"), "--last 'week' is not a length of time"),
        (("-o", "coded.csv", "--from", "now", "--to", "7d"), "--from must be before --to"),
        (("-o", "none/coded.csv"), "no such directory"),
    ],
)
def test_wrong_options_are_told_in_one_line(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        app(["export-coded", "-c", str(tmp_path / "none.yaml"), *arguments], standalone_mode=False)
