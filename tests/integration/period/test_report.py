"""``biasmeter report``: the same store gives the same bytes, later rows change nothing that was reported."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from support.documents.json_entries import typed
from support.documents.published_schemas import complaints
from support.servers.product import installation
from support.stores.audited_store import (
    CTO,
    TRAFFIC,
    audited_database,
    configuration,
    fetch,
    panel_answers,
    plan,
    ship,
    verdict,
)
from support.stores.databases import Databases
from support.stores.exchanges import NOON
from support.stores.postgres import copied_database

from auditor.errors import AuditError
from auditor.instrument.pool import shipped_pool
from auditor.jobs.run_once import run_once
from auditor.period.document import ReportDocument
from auditor.period.report import report_again, report_period
from auditor.report.period import render_period

SHARES = {"d1": {"E|E": 30, "E|D": 20, "D|D": 50}, "d2": {"D|D": 60, "D|E": 40}}
SINCE, UNTIL = NOON - timedelta(hours=1), NOON + timedelta(hours=1)


def at(minutes: int):
    return lambda: NOON + timedelta(minutes=minutes)


@pytest.fixture(scope="module")
def seeded(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of a database with the answers of two deployments, coded, to be copied."""
    config = configuration(tmp_path_factory.mktemp("audited"))
    with audited_database(databases, config, SHARES) as name:
        yield name


@pytest.fixture
def migrated_url(postgres_server: str, seeded: str) -> Iterator[str]:
    """The URL of a copy of the audited database, for a test and for its `engine`."""
    with copied_database(postgres_server, seeded) as url:
        yield url


async def test_the_same_store_gives_the_same_bytes(migrated_url: str, engine: AsyncEngine, tmp_path: Path) -> None:
    config = configuration(tmp_path)
    first = await report_period(engine, config, SINCE, UNTIL)
    assert await report_period(engine, config, SINCE, UNTIL) == first
    report = json.loads(first)
    assert list(complaints("report", report)) == []
    assert (report["from"], report["as_of"]) == ("2026-03-01T11:00:00+00:00", "2026-03-01T12:30:00+00:00")
    assert [coder["description"]["panel"]["judges"][0]["name"] for coder in report["coders"]] == ["lexicon"]
    (part,) = report["parts"]
    rates = {each["by"]["deployment"]: each["metrics"]["ir"]["value"] for each in part["analysis"]["deployments"]}
    assert rates == {"d1": 0.2, "d2": 0.4}
    assert [(day["day"], day["n"]) for day in report["inputs"][0]["days"]] == [("2026-03-01", 200)]


async def test_what_is_coded_later_is_not_in_a_report_made_again(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    config = configuration(tmp_path)
    first = await report_period(engine, config, SINCE, UNTIL)
    await plan(migrated_url, ["d1"], shipped_pool()[:100], [CTO], name="p2")
    late = panel_answers({"d1": {"E|E": 10}}, NOON + timedelta(minutes=1))
    refs = [row["ref"] for row in await fetch(migrated_url, "SELECT ref FROM planned_calls WHERE plan_id = 'p2'")]
    await ship(migrated_url, [one._replace(ref=ref) for one, ref in zip(late, refs, strict=False)])
    assert (await run_once(config, engine, at(40))).coded == 10
    assert await report_again(engine, json.loads(first)) == first
    assert await report_period(engine, config, SINCE, UNTIL) != first


async def test_what_is_gone_is_named(migrated_url: str, engine: AsyncEngine, tmp_path: Path) -> None:
    config = configuration(tmp_path)
    report = json.loads(await report_period(engine, config, SINCE, UNTIL))
    await fetch(migrated_url, "UPDATE codings SET sel = 'N' WHERE sel = 'E'")
    with pytest.raises(AuditError, match=r"the codings of 2026-03-01 by statement-[0-9a-f]{12} are not those"):
        await report_again(engine, report)
    await fetch(migrated_url, "DELETE FROM codings WHERE deployment = 'd1'")
    with pytest.raises(AuditError, match=r"of the 200 codings of 2026-03-01 by statement-\w+, 100 are left"):
        await report_again(engine, report)
    await fetch(migrated_url, "DELETE FROM codings")
    with pytest.raises(AuditError, match="the 200 codings of 2026-03-01 by statement-"):
        await report_again(engine, report)
    with pytest.raises(AuditError, match="no codings and no comparisons"):
        await report_period(engine, config, SINCE, UNTIL)


async def test_what_has_come_to_it_is_told(migrated_url: str, engine: AsyncEngine, tmp_path: Path) -> None:
    """A coding of a day that had none, stamped before the report's moment and stored after it."""
    config = configuration(tmp_path)
    report = json.loads(await report_period(engine, config, SINCE, UNTIL))
    await fetch(
        migrated_url,
        "INSERT INTO codings SELECT (jsonb_populate_record(c, jsonb_build_object('hour', c.hour - interval '1 day', "
        "'exchange_id', left(c.exchange_id::text, 24) || 'ffffffffffff'))).* FROM codings c LIMIT 1",
    )
    with pytest.raises(AuditError, match="additional codings"):
        await report_again(engine, report)


async def test_answers_are_quoted_while_they_are_kept(migrated_url: str, engine: AsyncEngine, tmp_path: Path) -> None:
    config = configuration(tmp_path)
    made = await report_period(engine, config, SINCE, UNTIL)
    silent = await report_period(engine, config, SINCE, UNTIL, quotes=False)
    report = json.loads(made)
    (part,) = report["parts"]
    cases = part["analysis"]["cases"]
    assert [(each["deployment"], each["stratum"], each["n"]) for each in cases] == [
        ("d1", "over", 20),
        ("d2", "under", 40),
    ]
    assert all(each["statement"] and each["response"] and each["votes"][0]["label"] == each["elab"] for each in cases)
    quoted = {each["exchange"] for each in report["inputs"][0]["quoted"]}
    assert {each["id"] for each in cases} <= quoted
    assert json.loads(silent)["parts"][0]["analysis"]["cases"] == []
    assert cases[0]["response"].encode() not in silent
    assert (
        b"<dt>quotes</dt><dd>left out</dd>" in render_period(typed(json.loads(silent), ReportDocument))["report.html"]
    )
    assert b"<dt>quotes</dt><dd>left out</dd>" not in render_period(typed(report, ReportDocument))["report.html"]
    await fetch(migrated_url, "DELETE FROM exchange_content")
    with pytest.raises(
        AuditError, match=r"the answer of exchange [0-9a-f-]{36}, which is quoted, is not kept any more"
    ):
        await report_again(engine, report)
    assert await report_again(engine, json.loads(silent)) == silent
    for key, says in (("seed", "its document has no 'seed'"), ("version", "biasmeter None made it")):
        with pytest.raises(AuditError, match=says):
            await report_again(engine, {name: value for name, value in report.items() if name != key})


async def test_tokens_and_statements_fields_reach_the_report(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    config = configuration(tmp_path)
    await fetch(migrated_url, "UPDATE exchanges SET completion_tokens = 30")
    report = json.loads(await report_period(engine, config, SINCE, UNTIL, by=("intersectional", "region")))
    (part,) = report["parts"]
    groups = {
        (each["by"]["intersectional"], each["by"]["region"]): each["n"]
        for each in part["analysis"]["groups"]
        if each["by"]
    }
    asked = [(one.intersectional, one.region) for one in shipped_pool()[:100]]
    assert groups == {key: asked.count(key) for key in set(asked)}
    assert report["by"] == ["intersectional", "region"]


async def test_probes_and_traffic_have_a_page_each(migrated_url: str, engine: AsyncEngine, tmp_path: Path) -> None:
    await ship(migrated_url, [verdict("E", "D", i) for i in range(40)])
    config = configuration(tmp_path, TRAFFIC)
    await run_once(config, engine, at(30))
    report = json.loads(await report_period(engine, config, SINCE, UNTIL))
    assert {(part["origin"], part["rubric"]) for part in report["parts"]} == {
        ("probe", "statement"),
        ("client", "proposition"),
    }
    made = render_period(typed(report, ReportDocument))
    assert set(made) == {"report.html", "report-client-moderation.html"}
    assert b"Answers to planned questions (probes), " in made["report.html"]
    assert b"audit moderation" in made["report-client-moderation.html"]
    assert b"<script" not in made["report.html"]


@pytest.mark.slow
async def test_elsewhere_and_later_the_bytes_are_the_same(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    config = configuration(tmp_path)
    with installation(tmp_path, settings(), migrated_url) as product:
        common = ("report", "-c", str(product.config), "-o")
        product.run(*common, "here", "--from", "2026-03-01", "--to", "2026-03-02", "--by", "category,intersectional")
        report = (tmp_path / "here" / "report.json").read_bytes()
        # More answers of the same hour are coded, and a coder reads the old ones again.
        await ship(migrated_url, panel_answers({"d1": {"E|E": 5}}, NOON + timedelta(minutes=2)))
        await plan(migrated_url, ["d1"], shipped_pool()[:5], [CTO], name="p2")
        refs = await fetch(migrated_url, "SELECT ref FROM planned_calls WHERE plan_id = 'p2'")
        late = panel_answers({"d1": {"E|E": 5}}, NOON + timedelta(minutes=3))
        await ship(migrated_url, [one._replace(ref=row["ref"]) for one, row in zip(late, refs, strict=True)])
        assert (await run_once(config, engine, at(50))).coded == 5
        (name,) = (await fetch(migrated_url, "SELECT current_database()"))[0]
        await fetch(migrated_url, f"ALTER DATABASE \"{name}\" SET timezone = 'Pacific/Chatham'")
        await fetch(migrated_url, f"ALTER DATABASE \"{name}\" SET datestyle = 'German'")
        product.environment |= {"TZ": "Pacific/Chatham", "LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONHASHSEED": "7"}
        product.environment["PYTHONCOERCECLOCALE"] = "0"
        product.run(*common, "there", "--replay", "here/report.json")
        assert (tmp_path / "there" / "report.json").read_bytes() == report
        page = "report.html"
        assert (tmp_path / "there" / page).read_bytes() == (tmp_path / "here" / page).read_bytes()


def settings() -> dict[str, Any]:
    return {
        "data_dir": "data",
        "deployments": [{"name": name, "base_url": "http://127.0.0.1:1/v1", "model": name} for name in SHARES],
        "routes": [{"model": "*", "deployments": ["d1"]}],
    }


async def test_the_command(migrated_url: str, engine: AsyncEngine, tmp_path: Path) -> None:
    with installation(tmp_path, settings(), migrated_url) as product:
        common = ("report", "-c", str(product.config), "-o")
        product.run(*common, "first", "--from", "2026-03-01", "--to", "2026-03-02")
        assert b"d1" in (tmp_path / "first" / "report.html").read_bytes()
        here = product.environment
        product.environment = here | {"TZ": "Pacific/Chatham", "LC_ALL": "POSIX", "PYTHONUTF8": "0"}
        product.run(*common, "again", "--replay", "first/report.json")
        product.environment = here
        for name in ("report.json", "report.html"):
            assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "first" / name).read_bytes()
        for arguments, status, said in (
            (("--from", "someday", "--to", "2026-03-02"), 2, "is not a date or time"),
            (("--from", "2026-03-02", "--to", "2026-03-01"), 2, "--from must be before --to"),
            (("--from", "2026-03-02"), 2, "name the period"),
            (("--from", "2025-03-02", "--to", "2025-03-03"), 1, "the store has no codings"),
            (
                ("--from", "2026-03-01", "--to", "2026-03-02", "--by", "colour"),
                2,
                "--by colour: 'colour' is not one of",
            ),
            (("--replay", "biasmeter.yaml"), 1, "biasmeter.yaml: is not JSON"),
            (("--replay", "nothing.json"), 2, "nothing.json: no such file"),
        ):
            done = product.run(*common, "bad", *arguments, check=False)
            assert (done.returncode, said in done.stderr) == (status, True), done.stderr
            assert done.stderr.count("\n") == 1
            assert not (tmp_path / "bad").exists()
