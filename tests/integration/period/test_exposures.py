"""Exposures in ``biasmeter report``: those of the replays that were concluded in the period, or that there was none."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from support.documents.json_entries import typed
from support.documents.published_schemas import complaints
from support.stores.audited_store import audited_database, configuration
from support.stores.databases import Databases
from support.stores.exchanges import NOON
from support.stores.postgres import copied_database

from auditor.config import Config
from auditor.errors import AuditError
from auditor.period.document import ReportDocument
from auditor.period.report import report_again, report_period
from auditor.report.period import render_period
from auditor.store.engine import transaction
from auditor.store.exposures import ExposureRow, replace_exposures

SINCE, UNTIL = NOON - timedelta(hours=1), NOON + timedelta(hours=1)
SHARES = {"d1": {"E|E": 30, "D|D": 70}}
#: What one replay came to: scores of two sides, and what could not be said.
TOLD: dict[str, Any] = {
    "lowest": {"side": "BJ", "value": 0.125, "low": 0.05, "high": 0.2, "flags": []},
    "highest": {"side": "CTO", "value": 0.5, "low": 0.4, "high": 0.6, "flags": []},
    "range": {"value": 0.375, "corrected": 0.36, "low": 0.25, "high": 0.45},
    "n_statements": 60,
    "left_out": [],
    "flags": [],
    "repetition": {"missing": "no question was repeated unchanged"},
}
#: One of two scores is so rare that only its bounds may be claimed.
LOWEST = {"side": "BJ", "value": 0.01, "low": 0.0, "high": 0.02, "flags": ["bounds_only"]}
RARE = TOLD | {"flags": ["bounds_only"], "lowest": LOWEST}
ROW = ExposureRow(
    replay_id="rpl-1", concluded_at=NOON + timedelta(minutes=40), selection="task=BJ", deployment="d1", origin="probe",
    route=None, task="BJ", rubric="statement", claim=None, metric="ber_union_full", exposure=TOLD,
)  # fmt: skip


def rows() -> Iterator[ExposureRow]:
    yield ROW
    yield replace(ROW, metric="ber_sel_full", exposure=RARE)
    yield replace(ROW, metric="ir", exposure={"missing": "fewer than two formats with 15 statements"})
    yield replace(ROW, metric="dni", exposure=TOLD | {"lowest": TOLD["lowest"] | {"value": -0.25, "low": -0.3}})


async def keep(engine: AsyncEngine, *kept: ExposureRow) -> None:
    async with transaction(engine) as connection:
        await replace_exposures(connection, kept[0].replay_id, kept)


@pytest.fixture(scope="module")
def seeded(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of a database in which a hundred probes are coded, to be copied."""
    config = configuration(tmp_path_factory.mktemp("audited"))
    with audited_database(databases, config, SHARES) as name:
        yield name


@pytest.fixture
def migrated_url(postgres_server: str, seeded: str) -> Iterator[str]:
    """The URL of a copy of the audited database, for a test's `engine`."""
    with copied_database(postgres_server, seeded) as url:
        yield url


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return configuration(tmp_path)


async def test_a_report_shows_what_replays_of_its_period_came_to(engine: AsyncEngine, config: Config) -> None:
    await keep(engine, *rows())
    other = replace(ROW, replay_id="cmp-2", origin="client", route="app", task=None, selection="")
    await keep(engine, replace(other, concluded_at=NOON))
    await keep(engine, replace(other, replay_id="rpl-3", concluded_at=UNTIL))
    content = await report_period(engine, config, SINCE, UNTIL)
    report = json.loads(content)
    assert list(complaints("report", report)) == []
    assert [each["replay"] for each in report["exposures"]] == ["cmp-2", "rpl-1"]
    assert datetime.fromisoformat(report["as_of"]) == ROW.concluded_at
    (group,) = report["exposures"][1]["groups"]
    assert group["by"] == {"deployment": "d1", "origin": "probe", "route": None, "task": "BJ"}
    assert group["exposure"] == {row.metric: row.exposure for row in rows()}
    page = render_period(typed(report, ReportDocument))["report.html"].decode()
    assert "12.5 %<small>[5.0, 20.0]</small><small>BJ</small>" in page
    assert "37.5 pp<small>[25.0, 45.0]</small>" in page
    assert ">[0.0, 2.0] %<small>BJ</small>" in page
    assert page.count("50.0 %<small>[40.0, 60.0]</small><small>CTO</small>") == 3
    assert "fewer than two formats with 15 statements" in page
    assert "d1, client traffic of app" in page


async def test_where_no_replay_was_done_the_report_says_so(engine: AsyncEngine, config: Config) -> None:
    report = json.loads(await report_period(engine, config, SINCE, UNTIL))
    assert list(complaints("report", report)) == []
    assert report["exposures"] == []
    assert (
        "No replay and no comparison of stored traffic finished"
        in render_period(typed(report, ReportDocument))["report.html"].decode()
    )


async def test_made_again_it_shows_the_same_or_names_the_replay(engine: AsyncEngine, config: Config) -> None:
    await keep(engine, *rows())
    content = await report_period(engine, config, SINCE, UNTIL)
    # Concluded again to the same, and another replay later.
    await keep(engine, *(replace(row, concluded_at=NOON + timedelta(minutes=50)) for row in rows()))
    await keep(engine, replace(ROW, replay_id="rpl-2", concluded_at=NOON + timedelta(minutes=55)))
    assert await report_again(engine, json.loads(content)) == content
    await keep(engine, replace(ROW, concluded_at=NOON + timedelta(minutes=58), exposure=RARE))
    with pytest.raises(AuditError, match="the result of replay rpl-1 has changed or is gone"):
        await report_again(engine, json.loads(content))
