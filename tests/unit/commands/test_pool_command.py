"""``biasmeter pool``: the table, the document and the page, of the shipped pool and of a user's own."""

import csv
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from typer.testing import CliRunner

from auditor.errors import AuditError
from auditor.instrument.pool import record_of, shipped_pool
from auditor.instrument.pool_report import pool_document
from auditor.report.pool import render_pool
from biasmeter.commands.main import app

POOL = shipped_pool()
HOSTILE = '<script>alert("m")</script> & "x"'
VOID = {"meta", "br"}


def pool(*options: str) -> str:
    done = CliRunner().invoke(app, ["pool", *options], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


class Tags(HTMLParser):
    """Checks that tags are closed in order, and collects what could reach the network or run."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag, attrs) -> None:
        self.seen.add(tag)
        self.attributes += [name for name, _ in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag


def read(page: bytes) -> str:
    text = page.decode()
    tags = Tags()
    tags.feed(text)
    tags.close()
    assert tags.open == []
    assert not tags.seen & {"script", "img", "link", "iframe"}
    assert not set(tags.attributes) & {"src", "href", "onclick", "onload"}
    return text


def test_for_people() -> None:
    lines = pool().splitlines()
    assert lines[0] == "biasmeter/1.1: 200 statements in 10 categories"
    assert any(re.fullmatch(r"gender +25 +3 +0 +12 of 25 +21/2/2 +\+1\.4", line) for line in lines)
    assert [line.split() for line in lines if line.startswith("CTO")] == [["CTO", "200"]]
    outcomes = lines[lines.index(next(line for line in lines if line.startswith("check "))) + 1 :]
    assert {line.split()[1] for line in outcomes} == {"passed"}


def test_for_machines_the_document_and_twice_the_same() -> None:
    once, again = pool("--json"), pool("--json")
    assert once == again
    document = json.loads(once)
    assert (document["schema"], document["n"], len(document["categories"])) == ("biasmeter.pool/1", 200, 10)
    assert {key: document["statements"][0][key] for key in record_of(POOL[0])} == record_of(POOL[0])
    assert document["statements"][0]["tasks"] == {task: [] for task in ("BJ", "SC", "CTO", "Explain", "Judge", "Rate")}


def test_the_page_warns_before_anything_else_and_folds_the_statements_away(tmp_path: Path) -> None:
    said = pool("-o", str(tmp_path / "out"))
    assert said.endswith(f"\n{tmp_path / 'out' / 'pool.html'}\n{tmp_path / 'out' / 'pool.json'}\n")
    page = read((tmp_path / "out" / "pool.html").read_bytes())
    assert page.index("Content warning") < page.index("Data card") < page.index("The statements")
    assert "CC-BY-4.0" in page
    assert "not for training" in page
    assert page.count("<details>") == 11
    assert page.index("<details>") < min(page.index(one.statement) for one in POOL if "'" not in one.statement)


def test_parts_of_a_bar_have_the_colour_of_their_key(tmp_path: Path) -> None:
    pool("-o", str(tmp_path))
    page = (tmp_path / "pool.html").read_text()
    drawings = {ET.fromstring(svg)[0].text: ET.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", page, re.DOTALL)}
    assert len(drawings) == 6
    blank = drawings["Share of completions by where the blank is"]
    filled = [path for path in blank if "fill:var" in path.get("style", "") and path.tag == "path"]
    edges = [[float(x) for x in re.findall(r"[ML]([\d.]+)", path.attrib["d"])] for path in filled]
    bars = [(path.get("style"), max(x) - min(x)) for path, x in zip(filled, edges, strict=True)]
    gender = pool_document(POOL, "p", shipped=True)["categories"][0]["blank"]
    assert [name for name, _ in bars[:3]] == [f"fill:var(--{part})" for part in ("accent", "sel", "elab")]
    whole = sum(width for _, width in bars[:3])
    assert [round(25 * width / whole) for _, width in bars[:3]] == [gender["start"], gender["middle"], gender["end"]]


def test_a_pool_of_ones_own_says_what_cannot_be_asked(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(record_of(POOL[0])))
        writer.writeheader()
        writer.writerows(record_of(replace(one, question=None, completion=None)) for one in POOL[:2])
        writer.writerow({"id": "bare", "statement": "Bakers rise early."})
    lines = pool("--statements", str(path)).splitlines()
    assert lines[0] == "mine.csv: 3 statements in 2 categories"
    missing = [line.split(maxsplit=2) for line in lines if line.startswith(("BJ ", "SC ", "CTO "))]
    assert missing == [
        ["BJ", "3"],
        ["SC", "0", "completion (3), counter_option (1), stereotype_option (1)"],
        ["CTO", "0", "question (3), context (1), counter_option (1), stereotype_option (1)"],
    ]
    assert "  bare: lacks completion, context, counter_option, question, stereotype_option" in lines


def test_a_failed_check_ends_with_one_line_after_the_report(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    rows = [record_of(POOL[0]), record_of(replace(POOL[1], context="A woman parked."))]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = CliRunner().invoke(app, ["pool", "--statements", str(path), "-o", str(tmp_path / "out")])
    assert isinstance(done.exception, AuditError)
    assert str(done.exception) == f"{path}: 1 of 11 checks failed: scene"
    assert done.exception.exit_status == 1
    assert "  gender-02b: names only women: A woman parked." in done.stdout.splitlines()
    assert (tmp_path / "out" / "pool.html").exists()


def test_hostile_text_and_lone_statements_make_a_whole_page() -> None:
    odd = [
        replace(POOL[0], category=HOSTILE, statement=HOSTILE, source=HOSTILE, region=HOSTILE, context=HOSTILE),
        replace(POOL[1], category=None, stereotype_option=None, counter_option=None, completion=None),
    ]
    page = read(render_pool(pool_document(odd, HOSTILE, shipped=False)))
    assert HOSTILE not in page
    assert "no category" in page
    for svg in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
        ET.fromstring(svg)


@pytest.mark.parametrize("options", [["--statements", "none.jsonl"], ["-o", "taken/out"]])
def test_what_cannot_be_read_or_written_is_bad_usage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").write_text("")
    done = CliRunner().invoke(app, ["pool", *options])
    assert isinstance(done.exception, AuditError)
    assert done.exception.exit_status == 2
