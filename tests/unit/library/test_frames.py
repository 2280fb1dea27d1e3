"""Rows of other libraries' data frames give the numbers of the same rows as mappings."""

import json
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from support.golden.inputs import write_inputs

import biasmeter


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("inputs")
    write_inputs(folder)
    return [json.loads(line) for line in (folder / "small.jsonl").read_text().splitlines()]


class Interchanged:
    """A frame that speaks the data frame interchange protocol, and nothing else."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame

    def __dataframe__(self, *arguments: Any, **options: Any) -> Any:
        # pandas tells that it will give up the protocol; others speak it on.
        return pa.Table.from_pandas(self._frame).__dataframe__(*arguments, **options)


def test_any_frame_of_the_interchange_protocol(rows: list[dict[str, Any]]) -> None:
    simple = [{name: value for name, value in row.items() if not isinstance(value, list)} for row in rows]
    found = biasmeter.analyze(Interchanged(pd.DataFrame(simple)), n_boot=20)
    assert found.to_json() == biasmeter.analyze(simple, n_boot=20).to_json()


def test_polars(rows: list[dict[str, Any]]) -> None:
    polars = pytest.importorskip("polars")
    found = biasmeter.analyze(polars.DataFrame(rows), n_boot=20)
    assert found.to_json() == biasmeter.analyze(rows, n_boot=20).to_json()


def test_duckdb(rows: list[dict[str, Any]]) -> None:
    duckdb = pytest.importorskip("duckdb")
    frame = pd.DataFrame(rows)  # noqa: F841 -- the query names it
    found = biasmeter.analyze(duckdb.sql("SELECT * FROM frame"), n_boot=20)
    assert found.to_json() == biasmeter.analyze(rows, n_boot=20).to_json()
