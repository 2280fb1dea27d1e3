"""``analyze --model`` and ``biasmeter.regress``: the same numbers, beside an analysis that stays as it is."""

import json
import os
from pathlib import Path

import pytest
from support.paths import ROOT
from support.servers import commands
from support.worlds.coded_rows import coded_rows, oat_conditions, write_rows

import biasmeter

ROWS = [
    {**row, "dialect": "north" if number % 3 else "south", "completion_tokens": number % 200}
    for number, row in enumerate(coded_rows(oat_conditions()[:3], deployments=2, statements=40))
]
FORMULA = "sel ~ deployment + task*dialect + length"


def analyze(coded: Path, out: Path, *arguments: str):
    options = ["analyze", coded, "-o", out, "--n-boot", 20, *arguments]
    return commands.run(options, folder=ROOT, environment=os.environ | {"COLUMNS": "200"})


@pytest.fixture(scope="module")
def coded(tmp_path_factory):
    return write_rows(tmp_path_factory.mktemp("model") / "coded.jsonl", ROWS)


@pytest.fixture(scope="module")
def done(coded):
    return analyze(coded, coded.parent / "with", "--model", FORMULA), coded.parent / "with"


def test_command_library_and_analysis_have_the_same_model(done):
    result, out = done
    assert (result.returncode, result.stderr) == (0, "")
    model = biasmeter.regress(ROWS, FORMULA)
    assert (out / "model.json").read_bytes() == model.to_json()
    assert json.loads((out / "analysis.json").read_bytes())["model"] == model.document
    assert f"\n{model.document['formula']}\n" in result.stdout
    frame = model.to_pandas()
    assert list(frame["term"].unique()) == ["deployment", "task", "dialect", "length"]
    assert list(frame[frame["term"] == "length"]["level"]) == ["32 to 127 tokens", "128 to 511 tokens"]
    assert "deployment:m2" in {
        ":".join(pair) for pair in model.coefficients()[["term", "level"]].itertuples(index=False)
    }
    assert "<svg" in model.figure("differences").html


def test_the_page_shows_the_model_and_only_numbers_of_the_analysis(done):
    _, out = done
    page = (out / "report.html").read_text()
    assert 'id="model"' in page
    assert 'data-v="/model/differences/0"' in page


def test_the_rest_of_the_analysis_does_not_change(done, coded):
    _, out = done
    analyze(coded, coded.parent / "without")
    plain = json.loads((coded.parent / "without" / "analysis.json").read_bytes())
    modelled = json.loads((out / "analysis.json").read_bytes())
    del modelled["model"]
    assert modelled == plain
    assert not (coded.parent / "without" / "model.json").exists()


@pytest.mark.parametrize(
    ("formula", "message"),
    [("sel ~ region", "no row has a field 'region'"), ("sel + task", "must be OUTCOME ~ TERM + TERM")],
)
def test_an_error_is_one_line(coded, formula, message):
    result = analyze(coded, coded.parent / "none", "--model", formula)
    assert result.returncode == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
