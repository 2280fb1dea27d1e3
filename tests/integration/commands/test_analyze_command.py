"""``biasmeter analyze`` from outside: what it writes, what it prints, and one line for everything that is wrong."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.paths import ROOT
from support.servers import commands
from support.worlds.coded_rows import coded_rows, oat_conditions, write_rows

from auditor.report.wording import DASH
from biasmeter.commands.analysis import analyze as command
from biasmeter.commands.main import main

CONDITIONS = 2


def analyze(*arguments, cwd=None):
    return commands.run(["analyze", *arguments], folder=cwd or ROOT, environment=os.environ | {"COLUMNS": "200"})


@pytest.fixture(scope="module")
def coded(tmp_path_factory):
    rows = coded_rows(oat_conditions()[:CONDITIONS], deployments=2, statements=30)
    return write_rows(tmp_path_factory.mktemp("coded") / "coded.jsonl", rows)


@pytest.fixture(scope="module")
def done(coded):
    out = coded.parent / "out"
    return analyze(coded, "-o", out, "--n-boot", 100), out


def test_writes_both_files_and_prints_a_table(done):
    result, out = done
    assert (result.returncode, result.stderr) == (0, "")
    assert sorted(path.name for path in out.iterdir()) == ["analysis.json", "report.html"]
    lines = result.stdout.splitlines()
    assert lines[0].split()[:3] == ["deployment", "responses", "both"]
    assert [line.split()[0] for line in lines[1:3]] == ["m1", "m2"]
    assert "few_clusters" in lines[1]
    assert lines[-2:] == [str(out / "report.html"), str(out / "analysis.json")]


@pytest.mark.slow
@pytest.mark.parametrize(("statements", "flagged", "missing"), [(1, 1, 3), (5, 1, 3), (40, 1, 0), (150, 0, 0)])
def test_the_summary_of_small_and_large_files(tmp_path, capsys, statements, flagged, missing):
    rows = write_rows(tmp_path / "coded.jsonl", coded_rows(oat_conditions(), deployments=2, statements=statements))
    command(
        rows, tmp_path / "out", by="deployment,task", seed=0, n_boot=20, reviews=None, skip_bad=False, as_json=False
    )
    header, first, second, *rest = (line for line in capsys.readouterr().out.splitlines() if line)
    assert header.startswith("deployment  responses  both layers")
    for name, line in (("m1", first), ("m2", second)):
        assert line.split()[:2] == [name, f"{21 * statements:,}"]
        assert line.count("few_clusters") == flagged
        assert line.split().count(DASH) == missing
    assert rest[-2:] == [str(tmp_path / "out" / "report.html"), str(tmp_path / "out" / "analysis.json")]
    reasons = [line for line in rest[:-2] if line.startswith(DASH)]
    assert bool(reasons) == bool(missing)
    assert all(line.endswith(" statements in the full base, 15 needed: m1, m2") for line in reasons[:1])


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes(done, coded, tmp_path):
    _, out = done
    analyze(coded, "-o", tmp_path, "--n-boot", 100)
    for name in ("analysis.json", "report.html"):
        assert (tmp_path / name).read_bytes() == (out / name).read_bytes()
    analyze(coded, "-o", tmp_path, "--n-boot", 100, "--seed", 1)
    assert (tmp_path / "analysis.json").read_bytes() != (out / "analysis.json").read_bytes()


def test_json_for_machines(coded, tmp_path):
    result = analyze(coded, "-o", tmp_path / "a" / "b", "--n-boot", 50, "--by", "category", "--json")
    told = json.loads(result.stdout)
    assert told["n_rows"] == 2 * CONDITIONS * 30
    assert told["n_groups"] == 5
    assert [each["deployment"] for each in told["deployments"]] == ["m1", "m2"]
    assert json.loads(Path(told["analysis"]).read_text())["by"] == ["category"]


def test_files_are_readable_by_their_owner_only(done):
    _, out = done
    assert (out / "analysis.json").stat().st_mode & 0o777 == 0o600


def test_help_is_light():
    """The command line's help must not wait for numpy and scipy."""
    heavy = "'numpy', 'scipy', 'jinja2', 'pandas'"
    code = f"import sys, biasmeter.commands.main; print([m for m in ({heavy}) if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert result.stdout.strip() == "[]"


GOOD = {"id": "a", "deployment": "m", "task": "BJ", "sel": "E", "elab": "D"}


def line(**changes):
    """Change a good row; ``...`` leaves a field out."""
    row = {**GOOD, "id": "b", **changes}
    return json.dumps({name: value for name, value in row.items() if value is not ...})


BAD_LINES = [
    ("", "no rows", ""),
    ("{", "is not JSON", ""),
    ('{"id": "b"', "is not JSON", ""),
    ("[]", "is not a JSON object", ""),
    ("null", "is not a JSON object", ""),
    ('"text"', "is not a JSON object", ""),
    ("12", "is not a JSON object", ""),
    (line() + line(), "is not JSON", ""),
    (line().replace("}", ",}"), "is not JSON", ""),
    (line().replace('"E"', "NaN"), "is not JSON", ""),
    (line().replace('"E"', "'E'"), "is not JSON", ""),
    ('{"x": ' + "[" * 100_000, "is not JSON", ""),
    (line(id=...), "id is missing", ""),
    (line(id=None), "id", ""),
    (line(id=""), "id is empty", ""),
    (line(id=1.5), "id must be", ""),
    (line(id=True), "id must be", ""),
    (line(id="a"), "already that of line 1", ""),
    (line(deployment=...), "deployment is missing", ""),
    (line(deployment=None), "deployment is missing", ""),
    (line(deployment=""), "deployment is empty", ""),
    (line(deployment=3), "deployment must be text", ""),
    (line(task=...), "task is missing", ""),
    (line(task="bj"), "task 'bj' is not one of", ""),
    (line(task=["BJ"]), "task must be text, not a list", ""),
    (line(sel=...), "sel is missing", ""),
    (line(sel=None), "sel is missing", ""),
    (line(sel="e"), "sel 'e' is not one of", ""),
    (line(sel="QE"), "sel 'QE' is not one of", ""),
    (line(sel=1), "sel must be text", ""),
    (line(sel="Abstain", sel_reason="lazy"), "sel_reason 'lazy'", ""),
    (line(sel_reason="no_marker"), "sel is E, yet", ""),
    (line(task="Judge"), "no selection layer", ""),
    (line(elab=...), "elab is missing", ""),
    (line(elab="yes"), "elab 'yes' is not one of", ""),
    (line(elab="Abstain", elab_reason="no_marker"), "elab_reason 'no_marker'", ""),
    (line(elab_reason="tie"), "elab is D, yet", ""),
    (line(sel="Abstain", sel_reason="transport_error"), "transport_error, yet elab", ""),
    (line(statement_id=[1]), "statement_id must be", ""),
    (line(statement={}), "statement must be text", ""),
    (line(role=4), "role must be text", ""),
    (line(rubric="own"), "rubric 'own' is not one of", ""),
    (line(votes={}), "votes must be a list, not an object", ""),
    (line(votes=[{"label": "E"}]), "judge is missing", ""),
    (line(votes=[{"judge": "", "label": "E"}]), "judge is empty", ""),
    (line(votes=[{"judge": "j", "label": "yes"}]), "votes 'yes'", ""),
    (line(votes=[{"judge": "j", "label": "E"}, {"judge": "j", "label": "D"}]), "votes twice", ""),
    (line(votes=[{"judge": "j", "label": "E"}, {"judge": "j", "label": "D", "layer": "elab"}]), "votes twice", ""),
    (line(votes=[{"judge": "j", "label": "E", "layer": "selection"}]), "on the layer 'selection'", ""),
    (line(tag=["x"]), "list or an object", "tag"),
    (line(tag={"x": 1}), "list or an object", "tag"),
]


@pytest.mark.parametrize(
    ("bad", "says", "by"), BAD_LINES, ids=[f"{i}-{says}" for i, (_, says, _) in enumerate(BAD_LINES)]
)
def test_bad_lines_are_named_and_nothing_is_written(tmp_path, bad, says, by, capsys):
    """In this process, through the command line's own error handling."""
    path = tmp_path / "coded.jsonl"
    first = f"{json.dumps(GOOD)}\n" if bad else ""
    path.write_text(f"{first}{bad}\n")
    status, error = run_here(path, "-o", tmp_path / "out", *(["--by", by] if by else []), capsys=capsys)
    assert status == 1
    assert error.startswith(f"biasmeter: {path}")
    assert error.count("\n") == 1
    assert says in error
    assert f"{path}:2: " in error or not bad
    assert [each.name for each in tmp_path.iterdir()] == ["coded.jsonl"]


def run_here(*arguments, capsys):
    before, sys.argv = sys.argv, ["biasmeter", "analyze", *map(str, arguments)]
    try:
        main()
    except SystemExit as end:
        status = end.code or 0
    else:
        status = 0
    finally:
        sys.argv = before
    return status, capsys.readouterr().err


def test_bytes_that_are_no_text(tmp_path, capsys):
    path = tmp_path / "coded.jsonl"
    path.write_bytes(json.dumps(GOOD).encode().replace(b'"m"', b'"\xff"') + b"\n")
    status, error = run_here(path, "-o", tmp_path / "out", capsys=capsys)
    assert status == 1
    assert f"{path}:1: is not JSON" in error


@pytest.mark.parametrize("cut", [20, -5])
def test_a_cut_gzip_file(tmp_path, cut, capsys):
    rows = coded_rows(oat_conditions()[:2], deployments=1, statements=30)
    data = write_rows(tmp_path / "coded.jsonl.gz", rows).read_bytes()
    (tmp_path / "coded.jsonl.gz").write_bytes(data[:cut])
    status, error = run_here(tmp_path / "coded.jsonl.gz", "-o", tmp_path / "out", capsys=capsys)
    assert status == 1
    assert "coded.jsonl.gz:" in error
    assert "cut off or damaged" in error
    assert not (tmp_path / "out").exists()


def test_gz_that_is_none(tmp_path, capsys):
    (tmp_path / "coded.jsonl.gz").write_text(json.dumps(GOOD))
    assert run_here(tmp_path / "coded.jsonl.gz", "-o", tmp_path / "out", capsys=capsys)[0] == 1


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--by", "colour"], "no row has a field 'colour'"),
        (["--by", "category"], "no row has a field 'category'"),
        (["--by", "deployment,,task"], "an empty field name"),
        (["--by", "task,task"], "named twice"),
    ],
)
def test_wrong_fields_are_bad_usage(tmp_path, options, says, capsys):
    path = tmp_path / "coded.jsonl"
    path.write_text(json.dumps(GOOD))
    status, error = run_here(path, "-o", tmp_path / "out", *options, capsys=capsys)
    assert (status, error.count("\n")) == (2, 1)
    assert says in error
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("options", [["--n-boot", "0"], ["--seed", "-1"], ["--n-boot", "many"], ["--colour"]])
def test_wrong_options_are_bad_usage(coded, tmp_path, options, capsys):
    status, error = run_here(coded, "-o", tmp_path / "out", *options, capsys=capsys)
    assert status == 2
    assert "Traceback" not in error


def test_missing_file_and_folder_for_a_file(tmp_path, capsys):
    assert run_here(tmp_path / "none.jsonl", "-o", tmp_path / "out", capsys=capsys) == (
        2,
        f"biasmeter: {tmp_path / 'none.jsonl'}: no such file\n",
    )
    assert run_here(tmp_path, "-o", tmp_path / "out", capsys=capsys)[0] == 2


@pytest.mark.parametrize("below", ["", "deeper", "deeper/still"])
def test_output_under_a_file(coded, tmp_path, below, capsys):
    (tmp_path / "file").write_text("mine")
    status, error = run_here(coded, "-o", tmp_path / "file" / below, capsys=capsys)
    assert (status, error.count("\n")) == (2, 1)
    assert "file" in error
    assert (tmp_path / "file").read_text() == "mine"


def test_earlier_results_stand_when_the_work_fails(done, coded, tmp_path, capsys):
    _, out = done
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    (tmp_path / "bad.jsonl").write_text("{")
    assert run_here(tmp_path / "bad.jsonl", "-o", out, capsys=capsys)[0] == 1
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_bad_lines_are_skipped_and_counted_on_demand(tmp_path, capsys):
    rows = list(coded_rows(oat_conditions()[:2], deployments=1, statements=30))
    good = [json.dumps(row) for row in rows]
    path = tmp_path / "coded.jsonl"
    path.write_text("\n".join([*good[:10], "{", "", good[0], line(task="x"), *good[10:]]))
    result = run_here(path, "-o", tmp_path / "out", "--skip-bad", "--n-boot", 50, capsys=capsys)
    assert result[0] == 0
    assert f"skipped {path}:11: is not JSON" in result[1]
    document = json.loads((tmp_path / "out" / "analysis.json").read_text())
    assert (document["n_rows"], document["n_skipped"]) == (60, 3)
    assert document["groups"][-1]["n"] == 60
    assert len(document["deployments"]) == 1


def test_nothing_but_bad_lines(tmp_path, capsys):
    path = tmp_path / "coded.jsonl"
    path.write_text("{\n}\n")
    status, error = run_here(path, "-o", tmp_path / "out", "--skip-bad", capsys=capsys)
    assert status == 1
    assert "every row is bad" in error


def test_blank_lines_and_a_byte_order_mark_are_no_rows(tmp_path, capsys):
    rows = [json.dumps(row) for row in coded_rows(oat_conditions()[:1], deployments=1, statements=20)]
    path = tmp_path / "coded.jsonl"
    path.write_text("\ufeff" + "\n\n".join(rows) + "\r\n\n")
    assert run_here(path, "-o", tmp_path / "out", "--n-boot", 50, capsys=capsys)[0] == 0
    assert json.loads((tmp_path / "out" / "analysis.json").read_text())["n_rows"] == 20


def test_gzipped_without_the_name(tmp_path, capsys):
    rows = [json.dumps(row) for row in coded_rows(oat_conditions()[:1], deployments=1, statements=20)]
    path = tmp_path / "coded.jsonl"
    path.write_bytes(gzip.compress("\n".join(rows).encode()))
    assert run_here(path, "-o", tmp_path / "out", "--n-boot", 50, capsys=capsys)[0] == 0
