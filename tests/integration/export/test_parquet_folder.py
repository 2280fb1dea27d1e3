"""``export-parquet`` and ``analyze --from parquet``: the store's counts, from files."""

import asyncio
import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import duckdb
import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine
from support.stores.audited_store import CTO, configuration, panel_answers, plan, ship
from support.stores.databases import Databases, seeded_database
from support.stores.exchanges import NOON
from support.stores.postgres import apart, copied_database

from auditor.coding.coders import open_coders
from auditor.domain.condition import BASELINE, Condition, Role, Task
from auditor.errors import InputError, UsageError
from auditor.export.parquet.counts import counting_folder, folder_tallies
from auditor.export.parquet.days import export_days
from auditor.export.parquet.tables import CODINGS, TABLES, file_of, written_days
from auditor.instrument.pool import shipped_pool
from auditor.jobs.run_once import run_once
from auditor.store.engine import make_engine, transaction
from auditor.store.tallies import OUTCOME, SUBJECT
from biasmeter.commands.main import app

SHARES = {"d1": {"E|E": 30, "E|D": 20, "D|D": 40, "D|": 8, "R|": 2}, "d2": {"D|D": 50, "D|E": 40, "E|E": 10}}
CONDITIONS = [CTO, BASELINE, Condition(task=Task.EXPLAIN), Condition(task=Task.CTO, role=Role.SOCIOLOGIST)]
DAY = NOON.date()
#: Those that quote answers.
QUOTING = {"cases", "swing"}


def later():
    return NOON + timedelta(minutes=30)


async def fill(url: str, folder: Path) -> None:
    """Store a day of coded answers."""
    await plan(url, SHARES, shipped_pool()[:60], CONDITIONS)
    await ship(url, panel_answers(SHARES, conditions=CONDITIONS))
    engine = make_engine(url)
    await run_once(configuration(folder), engine, later)
    await engine.dispose()


@pytest.fixture(scope="module")
def filled(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of a database with a day of coded answers, to be copied."""
    folder = tmp_path_factory.mktemp("filled")
    with seeded_database(databases, lambda url: apart(fill(url, folder))) as name:
        yield name


@pytest.fixture
def migrated_url(postgres_server: str, filled: str) -> Iterator[str]:
    """The URL of a copy of the filled database, for a test and for its `engine`."""
    with copied_database(postgres_server, filled) as url:
        yield url


@pytest.fixture
async def coders(tmp_path: Path) -> list[str]:
    """The ids of the coders."""
    async with open_coders(configuration(tmp_path), asking=False) as opened:
        return [coder.id for coder in opened]


async def test_counts_of_the_files_are_the_tallies(engine: AsyncEngine, coders: list[str], tmp_path: Path) -> None:
    await export_days(engine, tmp_path / "columns", coders)
    names = ", ".join((*SUBJECT, *OUTCOME))
    query = f"SELECT {names}, sum(n)::bigint AS n FROM tallies WHERE uncoded IS NULL GROUP BY {names}"
    async with transaction(engine) as connection:
        stored = {tuple(row) for row in await connection.execute(text(query))}
    assert len(stored) > 20

    columns = tmp_path / "columns"
    for table, n in (("tallies", "sum(n)::bigint"), ("codings", "count(*)")):
        source = f"read_parquet('{columns}/{table}/*/*.parquet')"
        found = duckdb.sql(f"SELECT {names}, {n} FROM {source} WHERE uncoded IS NULL GROUP BY ALL").fetchall()
        assert set(found) == stored

    with counting_folder(columns, extra=("audit", "origin", "invites_reason")) as counted:
        found = {tuple(row[name] for name in (*SUBJECT, *OUTCOME, "n")) for row in counted.rows}
    assert found == stored


@pytest.mark.slow
async def test_analyze_of_the_folder_is_analyze_of_the_rows(migrated_url: str, tmp_path: Path) -> None:
    config = tmp_path / "biasmeter.yaml"
    config.write_text(
        f"data_dir: {tmp_path / 'data'}\nstore: {{url: '{migrated_url}'}}\nretention: {{facts: 36500d}}\n"
        'deployments:\n  - {name: d1, base_url: "http://127.0.0.1:1/v1", model: m1}\n'
        '  - {name: d2, base_url: "http://127.0.0.1:1/v1", model: m2}\nroutes: [{model: "*", deployments: [d1]}]\n'
    )

    async def run(*arguments: object) -> None:
        await asyncio.to_thread(app, [str(one) for one in arguments], standalone_mode=False)

    await run("export-coded", "-c", config, "-o", tmp_path / "coded.jsonl")
    await run("export-parquet", "-c", config, "-o", tmp_path / "columns")
    await run("analyze", tmp_path / "coded.jsonl", "-o", tmp_path / "rows", "--by", "deployment,origin")
    options = ("--from", "parquet", "--memory", "200MB", "--by", "deployment,origin")
    await run("analyze", tmp_path / "columns", "-o", tmp_path / "files", *options)
    rows, files = (json.loads((tmp_path / one / "analysis.json").read_text()) for one in ("rows", "files"))
    assert {name: rows[name] for name in rows.keys() - QUOTING} == {
        name: files[name] for name in files.keys() - QUOTING
    }
    assert rows["n_rows"] == 2 * 60 * len(CONDITIONS)


async def test_an_empty_store_has_no_days(databases: Databases, tmp_path: Path) -> None:
    with databases.fresh() as url:
        engine = make_engine(url)
        assert await export_days(engine, tmp_path / "columns", ["none"]) == []
        await engine.dispose()


async def test_only_days_that_changed_are_written(engine: AsyncEngine, coders: list[str], tmp_path: Path) -> None:
    columns = tmp_path / "columns"
    first = await export_days(engine, columns, coders)
    assert {file.path for file in first} == {file_of(columns, table.name, DAY) for table in TABLES}
    assert all(file.written and file.rows for file in first)
    assert not any(file.written for file in await export_days(engine, columns, coders))

    async with transaction(engine) as connection:
        query = "DELETE FROM codings WHERE elab = 'E' RETURNING 1"
        gone = (await connection.execute(text(query))).all()
    assert gone
    again = await export_days(engine, columns, coders)
    assert [file.path.stem for file in again if file.written] == ["codings"]
    kept = int(folder_tallies(columns, ()).count.sum())
    assert kept == sum(file.rows for file in first if file.path.stem == "codings") - len(gone)

    file_of(columns, "codings", DAY).write_bytes(b"PAR1 cut")
    with pytest.raises(InputError, match="columns: "):
        folder_tallies(columns, ())
    assert [file.path.stem for file in await export_days(engine, columns, coders) if file.written] == ["codings"]
    assert not list(columns.rglob("*.part"))

    written = await export_days(engine, columns, ["another"])
    assert {file.path.stem: file.rows for file in written if file.written} == {"codings": 0, "tallies": 0}


async def test_days_that_are_no_longer_kept_are_deleted(engine: AsyncEngine, coders: list[str], tmp_path: Path) -> None:
    columns = tmp_path / "columns"
    await export_days(engine, columns, coders)
    own = columns / "codings" / f"day={DAY}" / "notes.txt"
    own.write_text("kept")
    later_day = DAY + timedelta(days=1)
    await export_days(engine, columns, [], since=later_day, keep_from=later_day)
    assert list(written_days(columns, CODINGS.name)) == []
    assert own.read_text() == "kept"


def test_wrong_folders_and_options_are_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there are no codings of these days; write them with: biasmeter export-parq"):
        folder_tallies(tmp_path, ())
    with pytest.raises(UsageError, match="codings have no column 'topic'; further columns: origin, audit"):
        folder_tallies(tmp_path, ["topic"])
    for option in (["--cluster", "topic"], ["--skip-bad"]):
        with pytest.raises(UsageError, match=f"{option[0]} does not work with --from parquet"):
            app(["analyze", str(tmp_path), "-o", "out", "--from", "parquet", *option], standalone_mode=False)
    with pytest.raises(UsageError, match="--last and --memory need --from parquet"):
        app(["analyze", str(tmp_path), "-o", "out", "--last", "7d"], standalone_mode=False)
