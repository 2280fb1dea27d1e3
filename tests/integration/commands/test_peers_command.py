"""``biasmeter peers`` from outside: what it writes and prints, and one line for everything that is wrong."""

import gzip
import json
import os
import subprocess
import sys

import pytest
from support.documents.json_entries import typed
from support.paths import ROOT
from support.worlds.peer_scores import score_rows, write_scores

from auditor.documents.codec import canonical_bytes, decode
from auditor.documents.peers import PeersDocument
from auditor.report.peers import render_peers
from biasmeter.commands.main import main


@pytest.fixture
def peers(monkeypatch, capsys):
    """Run the command in this process; give its exit status, output and errors."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["biasmeter", "peers", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code, *capsys.readouterr()

    return run


@pytest.fixture(scope="module")
def scores(tmp_path_factory):
    return write_scores(tmp_path_factory.mktemp("peers") / "scores.jsonl", score_rows(odd=3.0))


@pytest.fixture(scope="module")
def one_judge(tmp_path_factory):
    return write_scores(tmp_path_factory.mktemp("peers") / "scores.jsonl", of_one_judge(score_rows(odd=3.0)))


def of_one_judge(rows):
    """Leave one instrument: each is drawn in figures of its own."""
    without = [{name: value for name, value in row.items() if name != "embedding"} for row in rows]
    return [row | {"score": {"x": row["score"]["x"]}} for row in without]


def test_writes_both_files_and_prints_a_table(scores, tmp_path, peers, thorough):
    out = tmp_path / "out"
    targets = ["ash", "elm"] if thorough else ["ash"]
    status, printed, errors = peers(scores, "-o", out, *(each for name in targets for each in ("--target", name)))
    assert (status, errors) == (0, "")
    assert sorted(path.name for path in out.iterdir()) == ["peers.json", "report.html"]
    lines = printed.splitlines()
    assert lines[0].startswith("target  instrument")
    assert [line.split()[:2] for line in lines[1:4]] == [["ash", name] for name in ("embedding", "judge:x", "judge:y")]
    assert "different" in lines[1]
    assert lines[1].endswith("Potentially Relatively Biased")
    assert lines[-2:] == [str(out / "report.html"), str(out / "peers.json")]
    document = json.loads((out / "peers.json").read_bytes())
    read = decode((out / "peers.json").read_bytes(), PeersDocument, "peers.json")
    assert canonical_bytes(read) == (out / "peers.json").read_bytes()
    assert (document["schema"], document["k"], document["alpha"]) == ("biasmeter.peers/1", 2.81, 0.05)
    assert [entry["target"] for entry in document["targets"]] == targets
    assert (out / "report.html").read_bytes() == render_peers(typed(document, PeersDocument))


def test_as_installed(one_judge, tmp_path):
    command = [sys.executable, "-m", "biasmeter", "peers", one_judge, "-o", tmp_path / "out", "--target", "ash"]
    done = subprocess.run(
        [*map(str, command), "--json"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert (done.returncode, done.stderr) == (0, "")
    (target,) = json.loads(done.stdout)["targets"]
    assert target["instruments"]["judge:x"]["verdict"] == "different"


def test_the_order_of_rows_and_gzip_change_no_byte(tmp_path, peers):
    rows = of_one_judge(score_rows(questions=10))
    backwards = tmp_path / "backwards.jsonl.gz"
    backwards.write_bytes(gzip.compress(write_scores(tmp_path / "b.jsonl", rows[::-1]).read_bytes()))
    for place, source in enumerate((write_scores(tmp_path / "a.jsonl", rows), backwards)):
        assert peers(source, "-o", tmp_path / str(place), "--target", "ash")[0] == 0
    for name in ("peers.json", "report.html"):
        assert (tmp_path / "0" / name).read_bytes() == (tmp_path / "1" / name).read_bytes()


def test_names_are_text_on_the_page_whatever_they_hold(tmp_path, peers):
    odd = '<script>alert(1)</script> & "$x^2$"'
    rows = of_one_judge(score_rows(questions=6))
    for row in rows:
        row["theme"] = f"{odd} theme"
        row["deployment"] = odd if row["deployment"] == "ash" else row["deployment"]
    assert peers(write_scores(tmp_path / "s.jsonl", rows), "-o", tmp_path / "out", "--target", odd)[0] == 0
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_scores_alone_and_embeddings_alone(tmp_path, peers):
    for gone, left in (("embedding", ["judge:x", "judge:y"]), ("score", ["embedding"])):
        rows = [
            {name: value for name, value in row.items() if name not in {gone, "theme", "response"}}
            for row in score_rows()
        ]
        out = tmp_path / gone
        assert peers(write_scores(tmp_path / "s.jsonl", rows), "-o", out, "--target", "ash")[0] == 0
        (entry,) = json.loads((out / "peers.json").read_bytes())["targets"]
        assert sorted(entry["instruments"]) == left
        assert all(one["themes"] == [] and "missing" in one["length"] for one in entry["instruments"].values())


def test_too_few_peers_are_no_failure(tmp_path, peers):
    rows = [row for row in score_rows() if row["deployment"] in {"ash", "elm"}]
    status, printed, _ = peers(write_scores(tmp_path / "s.jsonl", rows), "-o", tmp_path / "out", "--target", "ash")
    assert status == 0
    assert "fewer than 2 peers have values" in printed


def test_rows_with_nothing_to_compare_are_no_failure(tmp_path, peers):
    rows = [{"question_id": 1, "deployment": name, "response": "yes"} for name in ("a", "b", "c")]
    assert peers(write_scores(tmp_path / "s.jsonl", rows), "-o", tmp_path / "out", "--target", "a")[0] == 0
    assert json.loads((tmp_path / "out" / "peers.json").read_bytes())["targets"][0]["instruments"] == {}


ROW = {"question_id": "q", "deployment": "b", "theme": "t", "score": {"x": 3}, "embedding": [1.0, 2.0]}
BAD = {
    "question_id is missing": {"question_id": None},
    "question_id is empty": {"question_id": " "},
    "question_id must be a whole number or text, not true or false": {"question_id": True},
    "deployment must be text, not a whole number": {"deployment": 3},
    "score must be an object, not a whole number": {"score": 3},
    "score of 'x' must be from 1 to 10, not 11": {"score": {"x": 11}},
    "score of 'x' must be from 1 to 10, not 0.5": {"score": {"x": 0.5}},
    "must be a number, not text": {"score": {"x": "7"}},
    "must be a number, not true or false": {"score": {"x": True}},
    "score: a judge's name is empty": {"score": {" ": 3}},
    "embedding[1] must be a number, not text": {"embedding": [1.0, "2"]},
    "embedding[0] must be a number, not true or false": {"embedding": [True, 2.0]},
    "embedding[1] is missing": {"embedding": [1.0, None]},
    "embedding is all zeros: it has no direction": {"embedding": [0.0, 0]},
    "embedding is empty": {"embedding": []},
    "embedding has 3 numbers, the ones before it 2": {"embedding": [1.0, 2.0, 3.0]},
    "blocked must be true or false, not text": {"blocked": "yes"},
    "response must be text, not a list": {"response": []},
    "the answer of 'a' to 'q' is already that of line 1": {"deployment": "a"},
    "question 'q' has theme 'other' here and 't' before": {"theme": "other"},
}


@pytest.mark.parametrize(("says", "changed"), BAD.items(), ids=BAD)
def test_bad_lines_are_named_and_nothing_is_written(tmp_path, peers, says, changed):
    path = write_scores(tmp_path / "s.jsonl", [ROW | {"deployment": "a"}, ROW | changed])
    status, printed, errors = peers(path, "-o", tmp_path / "out", "--target", "a")
    assert (status, printed) == (1, "")
    assert errors.startswith(f"biasmeter: {path}:2: ")
    assert says in errors
    assert errors.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e999", "0x1", "1 2"])
def test_numbers_that_are_none(tmp_path, peers, text):
    path = tmp_path / "s.jsonl"
    path.write_text(f'{{"question_id": 1, "deployment": "a", "embedding": [1.0, {text}]}}\n', encoding="utf-8")
    status, _, errors = peers(path, "-o", tmp_path / "out", "--target", "a")
    assert status == 1
    assert errors.startswith(f"biasmeter: {path}:1: is not JSON")


def test_bad_lines_are_skipped_and_counted_on_demand(tmp_path, peers):
    rows = [{name: value for name, value in row.items() if name != "score"} for row in score_rows(questions=8)]
    bad = [
        rows[0],
        rows[9] | {"question_id": "new", "score": {"x": 12}},
        rows[9] | {"question_id": "newer", "embedding": [1]},
    ]
    path = write_scores(tmp_path / "s.jsonl", rows + bad)
    status, _, errors = peers(path, "-o", tmp_path / "out", "--target", "ash", "--skip-bad")
    assert status == 0
    assert [line.split(": ")[0] for line in errors.splitlines()] == [f"skipped {path}:{n}" for n in (49, 50, 51)]
    skipped = json.loads((tmp_path / "out" / "peers.json").read_bytes())
    assert skipped["n_skipped"] == 3
    assert peers(write_scores(path, rows), "-o", tmp_path / "whole", "--target", "ash")[0] == 0
    assert skipped | {"n_skipped": 0} == json.loads((tmp_path / "whole" / "peers.json").read_bytes())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--target", "pine"], "--target: the file has no 'pine'; it has: ash, birch, cedar, elm, fir, oak"),
        (["--target", "ash", "--peers", "ash,pine"], "--peers: the file has no 'pine'"),
        (["--target", "ash", "--peers", "elm,,oak"], "--peers 'elm,,oak': an empty name"),
        (["--target", "ash", "--k", "-1"], "--k must be greater than 0 and at most 1000, not -1"),
        (["--target", "ash", "--margin", "0"], "--margin must be greater than 0 and at most 1000, not 0"),
        (["--target", "ash", "--margin", "wide"], "--margin 'wide': must be a number, or INSTRUMENT=number"),
        (["--target", "ash", "--margin", "1", "--margin", "2"], "--margin '2': given twice"),
        (["--target", "ash", "--margin", "judge:z=1"], "--margin: the file has no 'judge:z'"),
        (["--target", "ash", "--hosts", "elm,oak"], "--hosts 'elm,oak': must be WEIGHTS=A,B"),
        (["--target", "ash", "--hosts", "w=elm"], "--hosts: 'w' takes two deployments or more"),
        (["--target", "ash", "--hosts", "w=elm,elm"], "--hosts: a deployment is named twice"),
        (["--target", "ash", "--hosts", "w=elm,"], "--hosts 'elm,': an empty name"),
        (["--target", "ash", "--hosts", "w=elm,pine"], "--hosts: the file has no 'pine'"),
        (["--target", "ash", "--hosts", "w=elm,oak", "--hosts", "w=ash,fir"], "'w' is given twice"),
        (["--target", "ash", "--alpha", "1"], "--alpha must be between 0 and 0.5"),
        (["--target", "ash", "--blocked", "maybe"], "maybe"),
        ([], "--target"),
    ],
)
def test_wrong_options_are_bad_usage(scores, tmp_path, peers, options, says):
    status, _, errors = peers(scores, "-o", tmp_path / "out", *options)
    assert status == 2
    assert says in errors
    assert not (tmp_path / "out").exists()


def test_files_that_hold_nothing_to_read(scores, tmp_path, peers):
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    for path, status, says in ((empty, 1, "holds no rows"), (tmp_path / "none", 2, "no such file")):
        found = peers(path, "-o", tmp_path / "out", "--target", "a")
        assert (found[0], found[2]) == (status, f"biasmeter: {path}: {says}\n")
    assert peers(scores, "-o", empty / "below", "--target", "ash")[0] == 2


def test_a_name_that_holds_an_id_is_refused(tmp_path, peers):
    rows = [{"question_id": 1, "deployment": f"call-{place}"} for place in range(201)]
    status, _, errors = peers(write_scores(tmp_path / "s.jsonl", rows), "-o", tmp_path / "out", "--target", "call-1")
    assert (status, errors.partition("s.jsonl: ")[2]) == (1, "names 201 deployments; at most 200 are read\n")


def test_the_same_weights_at_two_hosts(scores, one_judge, tmp_path, peers):
    options = ["--target", "cedar", "--margin", "1", "--hosts", "w=ash,elm", "--hosts", "v=cedar,fir"]
    status, printed, _ = peers(scores, "-o", tmp_path / "out", *options)
    assert status == 0
    lines = printed.splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith("same weights"))
    assert lines[start + 2].split()[:4] == ["cedar", "/", "fir", "judge:x"]
    assert lines[start + 5].endswith("different")
    summary = json.loads(peers(one_judge, "-o", tmp_path / "again", *options, "--json")[1])
    assert [(pair["weights"], pair["deployments"]) for pair in summary["hosts"]] == [
        ("v", ["cedar", "fir"]),
        ("w", ["ash", "elm"]),
    ]
    assert summary["hosts"][1]["instruments"]["judge:x"]["verdict"] == "different"


def test_one_margin_for_an_instrument(scores, tmp_path, peers):
    options = ["--margin", "0.7", "--margin", "embedding=0.01"]
    assert peers(scores, "-o", tmp_path / "out", "--target", "ash", *options)[0] == 0
    (entry,) = json.loads((tmp_path / "out" / "peers.json").read_bytes())["targets"]
    assert {name: one["delta"] for name, one in entry["instruments"].items()} == {
        "embedding": 0.01,
        "judge:x": 0.7,
        "judge:y": 0.7,
    }
