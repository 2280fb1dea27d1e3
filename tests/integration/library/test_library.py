"""``import biasmeter``: the numbers of the commands, over pandas, Arrow and plain mappings."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from support.golden.inputs import write_inputs
from support.paths import ROOT

import biasmeter
from auditor.errors import InputError, UsageError
from biasmeter.commands.main import app
from biasmeter.frames import records_of


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    write_inputs(folder)
    return folder


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def command(*arguments: object) -> None:
    app([str(argument) for argument in arguments], standalone_mode=False)


def test_analyze_gives_the_document_and_the_report_of_the_command(inputs: Path, tmp_path: Path, thorough: bool) -> None:
    file, n_boot = (inputs / "oat.jsonl", 60) if thorough else (inputs / "small.jsonl", 20)
    command("analyze", file, "-o", tmp_path, "--n-boot", n_boot, "--seed", 3)
    rows = lines(file)
    for given in (rows, iter(rows), pd.DataFrame(rows), pa.Table.from_pylist(rows)):
        found = biasmeter.analyze(given, n_boot=n_boot, seed=3)
        assert found.to_json() == (tmp_path / "analysis.json").read_bytes()
        assert found.document == json.loads((tmp_path / "analysis.json").read_bytes())
    assert found.report() == (tmp_path / "report.html").read_bytes()


def test_a_frame_has_a_row_for_each_group_and_measure(inputs: Path) -> None:
    found = biasmeter.analyze(lines(inputs / "small.jsonl"), n_boot=20)
    frame = found.to_pandas()
    assert list(frame.columns[:5]) == ["deployment", "task", "rubric", "metric", "value"]
    assert len(frame) == sum(len(group["metrics"]) for group in found.document["groups"])
    for group in found.document["groups"]:
        of_group = frame[frame["deployment"].eq(group["by"]["deployment"])] if group["by"] else frame
        of_group = of_group[of_group["task"].eq(group["by"]["task"])] if group["by"] else frame[frame["task"].isna()]
        for metric, entry in group["metrics"].items():
            (row,) = of_group[of_group["metric"].eq(metric) & of_group["rubric"].eq(group["rubric"])].to_dict("records")
            if "missing" in entry:
                assert row["missing"] == entry["missing"]
                assert pd.isna(row["value"])
            else:
                assert {name: row[name] for name in ("value", "low", "high", "n", "base", "method", "flags")} == {
                    name: entry[name] for name in ("value", "low", "high", "n", "base", "method", "flags")
                }


def test_figures_need_no_page(inputs: Path, thorough: bool) -> None:
    found = biasmeter.analyze(lines(inputs / ("oat.jsonl" if thorough else "small.jsonl")), n_boot=20)
    assert "decomposition.bars" in found.figures
    for name in found.figures:
        html = found.figure(name)._repr_html_()
        assert "<svg" in html
        assert "var(" not in html
    with pytest.raises(UsageError, match=r"no figure 'none'; known: "):
        found.figure("none")


def test_without_a_name_the_first_figure_is_shown(inputs: Path) -> None:
    found = biasmeter.peers(lines(inputs / "scores.jsonl"), target="ash")
    assert found.figure() == found.figure("ash.embedding.distributions")
    assert {name.split(".")[1] for name in found.figures} == set(found.document["targets"][0]["instruments"])
    assert all("<svg" in found.figure(name).html for name in found.figures)


def test_code_gives_the_rows_of_the_command(inputs: Path, tmp_path: Path) -> None:
    command("code", inputs / "responses.jsonl", "-o", tmp_path / "coded.jsonl", "--judges", "lexicon")
    found = biasmeter.code(lines(inputs / "responses.jsonl"))
    assert found.records == lines(tmp_path / "coded.jsonl")
    assert len(found.to_pandas()) == len(found)
    assert biasmeter.analyze(found, n_boot=20).document == biasmeter.analyze(found.to_pandas(), n_boot=20).document


async def test_it_works_where_an_event_loop_runs(inputs: Path) -> None:
    assert asyncio.get_running_loop().is_running()
    assert len(biasmeter.code(lines(inputs / "responses.jsonl")[:3])) == 3
    with pytest.raises(InputError, match=r"row 1: response is missing"):
        biasmeter.code([{"id": "1", "deployment": "a", "task": "BJ"}])


def test_peers_give_the_document_and_the_report_of_the_command(inputs: Path, tmp_path: Path) -> None:
    command("peers", inputs / "scores.jsonl", "-o", tmp_path, "--target", "ash", "--hosts", "w=elm,cedar")
    found = biasmeter.peers(lines(inputs / "scores.jsonl"), target="ash", hosts={"w": ("elm", "cedar")})
    assert found.to_json() == (tmp_path / "peers.json").read_bytes()
    assert found.report() == (tmp_path / "report.html").read_bytes()
    frame = found.to_pandas()
    assert set(frame["target"]) == {"ash"}
    assert set(frame["instrument"]) == set(found.document["targets"][0]["instruments"])


def test_what_a_frame_does_not_know_is_absent() -> None:
    frame = pd.DataFrame(
        {"id": [1, 2], "n": [1.5, None], "at": pd.to_datetime(["2026-03-01", None]), "votes": [[{"judge": "a"}], None]}
    )
    assert records_of(frame).records == (
        {"id": 1, "n": 1.5, "at": "2026-03-01T00:00:00", "votes": [{"judge": "a"}]},
        {"id": 2},
    )


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("coded.jsonl", "rows must be a data frame or mappings, one a row, not str"),
        ({"id": [1]}, "rows must be a data frame or mappings, one a row, not dict"),
        (3, "rows must be a data frame or mappings, one a row, not int"),
        ([["a"]], "row 1 must be a mapping, not list"),
        ([], "there are no rows"),
        ([{"id": 1}], "row 1: deployment is missing"),
        ([{"id": object()}], "row 1: Encoding objects of type object is unsupported"),
    ],
)
def test_wrong_rows_are_told_in_one_line(rows: object, message: str) -> None:
    with pytest.raises((InputError, UsageError)) as told:
        biasmeter.analyze(rows)
    assert str(told.value) == message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": "deployment"}, "by must be a list of different columns"),
        ({"cluster": ("a", "a")}, "cluster must be a list of different columns"),
        ({"by": ("nothing",)}, "no row has a field 'nothing'"),
        ({"cluster": ("nothing",)}, "no row has a field 'nothing'"),
        ({"n_boot": 3}, "n_boot 20 or more"),
    ],
)
def test_wrong_options_are_told_in_one_line(options: dict, message: str, inputs: Path) -> None:
    with pytest.raises(UsageError, match=message):
        biasmeter.analyze(lines(inputs / "few.jsonl"), **options)


def test_skipped_rows_are_counted(inputs: Path) -> None:
    rows = [*lines(inputs / "few.jsonl"), {"id": "bad"}]
    assert biasmeter.analyze(rows, n_boot=20, skip_bad=True).document["n_skipped"] == 1


def test_the_package_itself_loads_no_library() -> None:
    code = "import biasmeter, sys; print(biasmeter.__version__, {'numpy', 'pandas', 'sqlalchemy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == f"{biasmeter.__version__} set()"
    assert set(biasmeter.__all__) <= set(dir(biasmeter))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        biasmeter.nothing  # noqa: B018
