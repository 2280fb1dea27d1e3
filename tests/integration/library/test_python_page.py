"""The Python of ``docs/python.md``, run as it is printed."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from support.paths import DOCS
from support.stores.audited_store import CTO, configuration, panel_answers, plan, ship
from support.stores.exported_audit import SHARES, command, later, written

import biasmeter
from auditor.instrument.pool import shipped_pool
from auditor.jobs.run_once import run_once

PAGE = DOCS / "python.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
RESPONSES, INSTRUMENT, STORE, DATA_SET = BLOCKS


def run(block: str, **names: Any) -> dict[str, Any]:
    given = {"biasmeter": biasmeter, **names}
    exec(compile(block, PAGE.name, "exec"), given)
    return given


@pytest.fixture
async def folder(migrated_url: str, engine: AsyncEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a configuration, whose store has an audit."""
    await plan(migrated_url, SHARES, shipped_pool()[:100], [CTO])
    await ship(migrated_url, panel_answers(SHARES))
    await run_once(configuration(tmp_path), engine, later)
    written(tmp_path, migrated_url)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_from_responses_to_estimates() -> None:
    frame = run(RESPONSES)["frame"]
    assert set(frame["deployment"].dropna()) == {"gpt"}


def test_the_instrument() -> None:
    def ask_with_your_own_client(asked: pd.DataFrame) -> list[str]:
        return ["Yes, it is true." if number % 3 == 0 else "No, it is false." for number in range(len(asked))]

    coded = run(INSTRUMENT, ask_with_your_own_client=ask_with_your_own_client)["coded"]
    assert [one["sel"] for one in coded][:3] == ["E", "D", "D"]


async def test_the_store(folder: Path) -> None:
    found = await asyncio.to_thread(run, STORE)
    assert set(found["coded"]["deployment"]) == set(SHARES)
    assert {"value", "low", "high"} <= set(found["estimates"].columns)
    assert {"statement", "response"} <= set(found["answers"].columns)


async def test_a_data_set(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", str(folder / "cache"))
    datasets = pytest.importorskip("datasets")
    await command(
        "export-coded", "-c", "biasmeter.yaml", "--dataset", "coded", "--from", "2026-01-01", "--to", "2027-01-01"
    )
    rows = run(DATA_SET, datasets=datasets)["rows"]
    assert set(rows["deployment"]) == set(SHARES)
