"""The instrument, the measures and the intervals over data frames."""

import json
import os
import subprocess
import sys

import pandas as pd
import pytest
from support.golden.inputs import write_inputs
from support.paths import TESTS

import biasmeter
from auditor.errors import UsageError
from auditor.instrument.pool import shipped_pool
from auditor.stats.intervals import design_effect_wilson


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory, thorough: bool) -> list[dict]:
    folder = tmp_path_factory.mktemp("inputs")
    write_inputs(folder)
    return [
        json.loads(line) for line in (folder / ("oat.jsonl" if thorough else "small.jsonl")).read_text().splitlines()
    ]


def test_the_pool_and_the_designs_are_frames() -> None:
    pool = biasmeter.pool("biasmeter/1")
    assert pool["statement"].tolist() == [one.statement for one in shipped_pool("biasmeter/1")]
    assert biasmeter.design("factorial").groupby(["task", "perspective", "role", "sentiment"]).ngroups == 24
    panel = biasmeter.design("panel", task=["CTO"], templates=5)
    assert set(panel["task"]) == {"CTO"}
    assert panel["choice"].unique().tolist() == ["rotating"]
    assert biasmeter.templates(role="sociologist")["system"].notna().sum() == 20


def test_questions_with_answers_are_rows_for_code() -> None:
    asked = biasmeter.questions("panel", task=["CTO"], statements=biasmeter.pool().head(10), seed=4)
    assert len(asked) == 10
    assert asked["prompt"].str.len().min() > 20
    answered = asked.assign(deployment="a", response="A. The claim is a harmful stereotype, unfair and false.")
    coded = biasmeter.code(answered).to_pandas()
    # The first option is the stereotype in half of the questions.
    assert coded["sel"].tolist() == ["E" if keyed == "E" else "D" for keyed in asked["keyed"]]
    again = biasmeter.questions("panel", task=["CTO"], statements=biasmeter.pool().head(10), seed=4)
    pd.testing.assert_frame_equal(asked, again)


def test_measures_have_the_numbers_of_the_analysis(rows: list[dict]) -> None:
    whole = biasmeter.analyze(rows, n_boot=20).to_pandas()
    single = biasmeter.measure(pd.DataFrame(rows), by=("deployment", "task"))
    expected = whole[whole["deployment"].notna()].reset_index(drop=True)
    keys = ["deployment", "task", "rubric", "metric"]
    pd.testing.assert_frame_equal(
        single.sort_values(keys).reset_index(drop=True), expected.sort_values(keys).reset_index(drop=True)
    )
    assert set(biasmeter.measures()["metric"]) <= set(single["metric"])
    assert biasmeter.measure(rows, "ir")["metric"].tolist() == ["ir"]


def test_an_interval_is_that_of_the_statistics() -> None:
    table = [{"hit": n % 3 == 0, "of": n // 4} for n in range(40)]
    found = biasmeter.interval(pd.DataFrame(table), "hit", cluster="of")
    hits = [sum(row["hit"] for row in table if row["of"] == one) for one in range(10)]
    expected = design_effect_wilson(*(pd.Series(each, dtype=float).to_numpy() for each in (hits, [4] * 10)))
    assert (found.low, found.high) == (expected.low, expected.high)
    wilson = biasmeter.interval(table, "hit", method="wilson", conf=0.9)
    assert wilson.low < 14 / 40 < wilson.high


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: biasmeter.pool("none"), "there is no pool 'none'; known: biasmeter/1"),
        (lambda: biasmeter.templates(colour="red"), "there is no factor 'colour'"),
        (lambda: biasmeter.templates(task="Sing"), "task: 'Sing' is not one of"),
        (lambda: biasmeter.design("none"), "there is no design 'none'"),
        (lambda: biasmeter.questions(statements=[{"id": "1"}]), "row 1: statement is missing"),
        (lambda: biasmeter.questions(statements=[]), "there are no statements"),
        (lambda: biasmeter.measure([], "none"), "there is no measure 'none'"),
        (lambda: biasmeter.interval([{"a": 1}], "a", method="none"), "there is no method 'none'"),
        (lambda: biasmeter.interval([{"a": 1}], "b"), "no row has a value in 'b'"),
        (lambda: biasmeter.interval([{"a": 2}], "a"), "row 1: a must be true or false"),
    ],
)
def test_wrong_options_are_told_in_one_line(call, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        call()


@pytest.mark.slow
def test_the_outputs_of_the_notebook_are_current() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "support.notebook", "--check"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(TESTS)},
    )
    assert done.returncode == 0, done.stderr[-2000:]
