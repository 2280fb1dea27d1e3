"""``biasmeter code`` from outside: rows in, coded rows out, and what it says of bad input."""

import gzip
import json

import pytest
from support.servers import commands

GOOD = {
    "id": "a",
    "deployment": "m",
    "task": "BJ",
    "statement": "Old people drive badly.",
    "response": "No. Ability varies.",
}
PAIR = {"stereotype_option": "the grandfather", "counter_option": "the grandson"}
CTO = {"task": "CTO", **PAIR}


def biasmeter(*arguments, cwd):
    return commands.run(arguments, folder=cwd)


def lines(*rows):
    return "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows).encode()


def code(tmp_path, content, *more, name="responses.jsonl", out="coded.jsonl"):
    (tmp_path / name).write_bytes(content)
    return biasmeter("code", name, "-o", out, *more, cwd=tmp_path)


def coded(tmp_path, name="coded.jsonl"):
    opened = gzip.open if name.endswith(".gz") else open
    with opened(tmp_path / name, "rt", encoding="utf-8") as rows:
        return [json.loads(row) for row in rows]


def row(**changes):
    return {**GOOD, **changes}


def without(name):
    return {key: value for key, value in GOOD.items() if key != name}


def test_rows_are_coded_in_order_and_unknown_fields_travel(tmp_path):
    rows = [row(id=str(number), note={"x": [1, None]}, role=None) for number in range(50)]
    done = code(tmp_path, lines(*rows))
    assert (done.returncode, done.stderr) == (0, "")
    written = coded(tmp_path)
    assert [one["id"] for one in written] == [one["id"] for one in rows]
    assert written[0] == {
        **rows[0],
        "sel": "D",
        "sel_reason": None,
        "sel_via": "rule",
        "elab": "Abstain",
        "elab_reason": "no_judge",
        "elaboration_text": "Ability varies.",
        "votes": [],
        "rubric": "statement",
    }
    assert "50 rows" in done.stdout
    assert "no_judge 50" in done.stdout


def test_every_task_and_every_way_to_have_no_answer(tmp_path):
    letters = {"option_a": "The grandson", "option_b": "The grandfather"}
    options = [{"marker": "1", "text": "Agree", "label": "E"}, {"marker": "2", "text": "Disagree", "label": "D"}]
    rows = [
        row(id="1", response="No"),
        row(id="2", response="I cannot help with that."),
        row(id="3", response=None, error="connection reset"),
        row(id="4", response=None, finish_reason="content_filter"),
        row(id="5", response=""),
        row(id="6", response="Well, ", finish_reason="length"),
        row(id="7", response="I agree. I disagree."),
        row(id="8", task="Judge", response="I disagree."),
        row(id="9", task="Rate", response="4/5 because"),
        row(id="10", **CTO, **letters, response="(B)") | {"task": "CTO"},
        row(id="11", options=options, response="2"),
        row(id="12", response="Ability varies."),
        row(id="13", statement=None, response="No. Ability varies."),
        row(id="14", task="Explain", response=None, finish_reason="content_filter"),
        row(id="15", task="Judge", response="It is", finish_reason="content_filter"),
        row(id="16", task="Explain", response="", finish_reason="length"),
        row(id="17", task="Explain", response=None, error="connection reset"),
    ]
    assert code(tmp_path, lines(*rows), "--judges", "lexicon").returncode == 0
    seen = [(one["id"], one["sel"], one["sel_reason"], one["elab_reason"]) for one in coded(tmp_path)]
    assert [one[:3] for one in seen] == [
        ("1", "D", None),
        ("2", "R", None),
        ("3", "Abstain", "transport_error"),
        ("4", "R", "filtered"),
        ("5", "Abstain", "empty"),
        ("6", "Abstain", "truncated"),
        ("7", "Abstain", "both_markers"),
        ("8", "Abstain", "no_selection_layer"),
        ("9", "E", None),
        ("10", "E", None),
        ("11", "D", None),
        ("12", "Abstain", "no_marker"),
        ("13", "Abstain", "no_selection_layer"),
        ("14", "Abstain", "no_selection_layer"),
        ("15", "Abstain", "no_selection_layer"),
        ("16", "Abstain", "no_selection_layer"),
        ("17", "Abstain", "transport_error"),
    ]
    reasons = {one[0]: one[3] for one in seen}
    assert [reasons[name] for name in ("1", "3", "4", "5", "7", "10", "11")] == [
        "no_elaboration",
        "transport_error",
        "no_elaboration",
        "no_elaboration",
        "no_elaboration",
        "no_elaboration",
        "no_elaboration",
    ]
    assert [one["id"] for one in coded(tmp_path) if one["rubric"] == "open"] == ["13"]
    analyzed = biasmeter("analyze", "coded.jsonl", "-o", "out", "--n-boot", 20, cwd=tmp_path)
    assert (analyzed.returncode, analyzed.stderr) == (0, "")


def test_gzip_in_and_out_gives_the_same_bytes_twice(tmp_path):
    content = gzip.compress(lines(*(row(id=str(number)) for number in range(20))))
    assert code(tmp_path, content, name="r.jsonl.gz", out="one.jsonl.gz").returncode == 0
    assert code(tmp_path, content, name="r.jsonl.gz", out="two.jsonl.gz").returncode == 0
    assert (tmp_path / "one.jsonl.gz").read_bytes() == (tmp_path / "two.jsonl.gz").read_bytes()
    assert len(coded(tmp_path, "two.jsonl.gz")) == 20


def test_the_lexicon_votes(tmp_path):
    text = "No. That is a harmful stereotype and an unfair generalization."
    assert code(tmp_path, lines(row(response=text)), "--judges", "lexicon").returncode == 0
    assert coded(tmp_path)[0]["votes"] == [{"judge": "lexicon", "label": "D"}]
    assert coded(tmp_path)[0]["elab"] == "D"


def test_summary_for_machines(tmp_path):
    done = code(tmp_path, lines(GOOD, row(id="b", response="")), "--json")
    assert json.loads(done.stdout) == {
        "out": "coded.jsonl",
        "rows": 2,
        "skipped": 0,
        "left_out": {},
        "selection": {"D": 1, "Abstain": 1},
        "elaboration": {"Abstain": 2},
        "reasons": {"sel": {"empty": 1}, "elab": {"no_judge": 1, "no_elaboration": 1}},
    }


def test_bad_rows_can_be_skipped_and_are_counted(tmp_path):
    done = code(tmp_path, lines(GOOD, "{", row(id="b"), GOOD, row(id="c", task="X")), "--skip-bad")
    assert done.returncode == 0
    assert [one["id"] for one in coded(tmp_path)] == ["a", "b"]
    assert "3 bad rows skipped" in done.stdout
    assert "responses.jsonl:2" in done.stderr


def test_options_that_nobody_named_are_told(tmp_path):
    done = code(tmp_path, lines(row(task="CTO", response="(B)")))
    assert done.returncode == 0
    assert "1 CTO or SC rows have no options" in done.stderr


def test_without_a_statement_nothing_is_selected_but_by_options_that_have_a_meaning(tmp_path):
    options = [{"marker": "1", "text": "Agree", "label": "E"}, {"marker": "2", "text": "Disagree", "label": "D"}]
    rows = [
        row(id="1", statement=None, response="Sure, here is a story about two people."),
        row(id="2", statement=" ", task="Rate", response="4"),
        row(id="3", statement=None, task="CTO", response="(B)"),
        row(id="4", statement=None, statement_id="s1", response="Yes, they do."),
        row(id="5", statement=None, **CTO, response="The grandfather.") | {"task": "CTO"},
        row(id="6", statement=None, options=options, response="1"),
    ]
    done = code(tmp_path, lines(*rows))
    assert done.returncode == 0
    assert "3 rows have no statement" in done.stderr
    assert "no options" not in done.stderr
    written = coded(tmp_path)
    assert [(one["sel"], one["sel_reason"], one["rubric"]) for one in written] == [
        *[("Abstain", "no_selection_layer", "open")] * 3,
        *[("E", None, "statement")] * 3,
    ]
    assert written[0]["elaboration_text"] == rows[0]["response"]


BAD_ROWS = {
    "no JSON": "{",
    "half a row": '{"id": "b", "deployment":',
    "a list": "[1]",
    "a number": "7",
    "text": '"x"',
    "null": "null",
    "single quotes": "{'id': 'b'}",
    "trailing comma": '{"id": "b",}',
    "NaN": '{"id": "b", "x": NaN}',
    "two objects": json.dumps(GOOD) * 2,
    "comment": "// responses",
    "CSV": "id,deployment,task,response",
    "nested too deeply": "[" * 100_000,
    "lone surrogate": '{"id": "\\ud800"}',
    "no id": without("id"),
    "null id": row(id=None),
    "empty id": row(id=" "),
    "id of a wrong kind": row(id=["b"]),
    "id true": row(id=True),
    "same id": row(id="a"),
    "no deployment": row(id="b") | {"deployment": None},
    "deployment of a wrong kind": row(id="b", deployment=3),
    "empty deployment": row(id="b", deployment=""),
    "no task": row(id="b", task=None),
    "unknown task": row(id="b", task="bj"),
    "task of a wrong kind": row(id="b", task=1),
    "no response": row(id="b", response=None),
    "response of a wrong kind": row(id="b", response={"text": "No"}),
    "response a list": row(id="b", response=["No"]),
    "statement of a wrong kind": row(id="b", statement=["x"]),
    "statement_id of a wrong kind": row(id="b", statement_id=1.5),
    "category of a wrong kind": row(id="b", category=3),
    "intersectional of a wrong kind": row(id="b", intersectional="yes"),
    "draw of a wrong kind": row(id="b", draw="1"),
    "finish_reason of a wrong kind": row(id="b", finish_reason=0),
    "role of a wrong kind": row(id="b", role={}),
    "prompt of a wrong kind": row(id="b", prompt=[]),
    "options no list": row(id="b", options="A,B"),
    "one option": row(id="b", options=[{"marker": "A", "text": "x", "label": "E"}]),
    "option no object": row(id="b", options=["A", "B"]),
    "option without label": row(id="b", options=[{"marker": "A", "text": "x"}, {"marker": "B", "text": "y"}]),
    "option label unknown": row(
        id="b", options=[{"marker": "A", "text": "x", "label": "QE"}, {"marker": "B", "text": "y", "label": "D"}]
    ),
    "option without text": row(id="b", options=[{"label": "E"}, {"marker": "B", "text": "y", "label": "D"}]),
    "two options alike": row(
        id="b", options=[{"marker": "A", "text": "x", "label": "E"}, {"marker": "a", "text": "y", "label": "D"}]
    ),
    "same option twice": row(id="b", option_a="x", option_b="x"),
    "options that are neither": row(id="b", **PAIR, option_a="The aunt", option_b="The uncle"),
    "one option that is neither": row(id="b", **PAIR, option_a="The grandson", option_b="Nobody"),
    "both options are one": row(id="b", **PAIR, option_a="the grandson", option_b="a grandson of hers"),
    "an option that is both": row(id="b", **PAIR, option_a="the grandfather or the grandson"),
    "stereotype is counter": row(id="b", stereotype_option="Old", counter_option="old"),
}


def one_line(done, *, status=1):
    assert done.returncode == status, done.stderr
    assert done.stderr.startswith("biasmeter: ")
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
    return done.stderr


def nothing_written(tmp_path, *known):
    assert {path.name for path in tmp_path.iterdir()} == set(known)


@pytest.mark.parametrize("bad", BAD_ROWS)
def test_a_bad_row_is_named_by_file_and_line(tmp_path, bad, capsys):
    """In one process: forty interpreters would take minutes. The exit status is tested from outside below."""
    from auditor.errors import InputError  # noqa: PLC0415
    from biasmeter.commands.coding import code as command  # noqa: PLC0415 -- beside the one test that needs it

    path = tmp_path / "responses.jsonl"
    path.write_bytes(lines(GOOD, "", BAD_ROWS[bad], row(id="z")))
    with pytest.raises(InputError) as error:
        command(path, tmp_path / "coded.jsonl", None, None, skip_bad=False, as_json=False)
    assert str(error.value).startswith(f"{path}:3: ")
    assert "\n" not in str(error.value)
    nothing_written(tmp_path, "responses.jsonl")


@pytest.mark.parametrize(
    ("content", "name", "says"),
    [
        (b"", "r.jsonl", "r.jsonl: holds no rows"),
        (b"\n \n", "r.jsonl", "r.jsonl: holds no rows"),
        (b"\xff\xfe{\x00", "r.jsonl", "r.jsonl:1: is not JSON"),
        (b'{"id": "\xff"}\n', "r.jsonl", "r.jsonl:1: is not JSON"),
        (b"not gzipped", "r.jsonl.gz", "r.jsonl.gz: is named .gz but is not gzipped"),
        (
            gzip.compress(lines(*[row(id=str(i)) for i in range(2000)]), mtime=0)[:400],
            "r.jsonl.gz",
            "cut off or damaged",
        ),
        (gzip.compress(lines(GOOD), mtime=0)[:-6] + b"garbage", "r.jsonl.gz", "cut off or damaged"),
        (lines("{"), "r.jsonl", "r.jsonl:1: is not JSON"),
        (b"PK\x03\x04 a zip archive", "r.jsonl", "r.jsonl:1: is not JSON"),
    ],
)
def test_a_bad_file_is_one_line(tmp_path, content, name, says):
    assert says in one_line(code(tmp_path, content, name=name))
    nothing_written(tmp_path, name)


def test_only_bad_rows_are_an_error_even_when_skipped(tmp_path):
    assert "every row is bad" in one_line(code(tmp_path, lines("{", "7"), "--skip-bad"))
    nothing_written(tmp_path, "responses.jsonl")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nowhere.jsonl", "-o", "coded.jsonl"], "nowhere.jsonl: no such file"),
        ([".", "-o", "coded.jsonl"], "is a directory"),
        (["r.jsonl", "-o", "r.jsonl"], "is the input"),
        (["r.jsonl", "-o", "r.jsonl/coded.jsonl"], "is not a directory"),
        (["r.jsonl", "-o", "missing/coded.jsonl"], "no such directory"),
        (["r.jsonl", "-o", "."], "is a directory"),
        (["r.jsonl", "-o", "c.jsonl", "--judges", "nobody"], "unknown judge 'nobody'"),
        (["r.jsonl", "-o", "c.jsonl", "--judges", "lexicon,lexicon"], "named twice"),
        (["r.jsonl", "-o", "c.jsonl", "-c", "nowhere.yaml"], "nowhere.yaml"),
    ],
)
def test_bad_usage_is_one_line_and_status_2(tmp_path, arguments, says):
    (tmp_path / "r.jsonl").write_bytes(lines(GOOD))
    assert says in one_line(biasmeter("code", *arguments, cwd=tmp_path), status=2)
    nothing_written(tmp_path, "r.jsonl")
    assert (tmp_path / "r.jsonl").read_bytes() == lines(GOOD)


def test_a_target_that_was_there_stays_when_the_input_is_bad(tmp_path):
    (tmp_path / "coded.jsonl").write_text("kept\n")
    one_line(code(tmp_path, lines(GOOD, "{")))
    assert (tmp_path / "coded.jsonl").read_text() == "kept\n"
    nothing_written(tmp_path, "responses.jsonl", "coded.jsonl")


def test_a_byte_order_mark_and_windows_lines_are_read(tmp_path):
    content = b"\xef\xbb\xbf" + lines(GOOD, row(id="b")).replace(b"\n", b"\r\n")
    assert code(tmp_path, content).returncode == 0
    assert len(coded(tmp_path)) == 2
