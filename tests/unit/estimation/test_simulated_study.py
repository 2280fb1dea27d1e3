"""A simulated study from its file to the document: what is said beside the groups, and of which rows."""

import json

import numpy as np
import pytest
from support.documents.row_tallies import tallied
from support.worlds.coded_rows import write_rows
from support.worlds.simulated_files import coded_records, responses
from support.worlds.simulated_rows import coded_rows

from auditor.documents.codec import canonical_bytes
from auditor.domain.condition import Task
from auditor.estimation.analysis import Options, analyse, read_tallies
from auditor.instrument.pool import shipped_pool
from auditor.simulate.config import load
from auditor.simulate.expected import Ask
from auditor.simulate.wire import tokens_of

SCENARIO = load().scenario
PLAN = {Ask(): 1, Ask(task=Task.CTO): 2, Ask(task=Task.SC): 1, Ask(role="ai_ethicist"): 1, Ask(task=Task.EXPLAIN): 1}
VENDORS = {deployment.name: deployment.name[:5] for deployment in SCENARIO.deployments}
ENTRIES = ("judge_means", "panel", "panel_swap", "vendors", "qe_fold", "condition_ranks", "tradeoff", "cases", "swing")


@pytest.fixture(scope="module")
def rows():
    statements = list(shipped_pool())
    columns = coded_rows(SCENARIO, PLAN, [one.statement for one in statements], rng=np.random.default_rng(0))
    return list(coded_records(SCENARIO, statements, PLAN, columns))


def analysed(folder, rows):
    options = Options(by=(), n_boot=40, vendors=VENDORS)
    return canonical_bytes(analyse(read_tallies(write_rows(folder / "coded.jsonl", rows), options), options))


@pytest.fixture(scope="module")
def content(rows, tmp_path_factory):
    return analysed(tmp_path_factory.mktemp("study"), rows)


def test_every_entry_has_a_value(content):
    document = json.loads(content)
    for name in ENTRIES:
        assert document[name], name
        assert not [entry for entry in document[name] if "missing" in entry], name


def test_the_rows_order_changes_no_byte(rows, content, tmp_path):
    assert analysed(tmp_path, rows[::-1]) == content


def test_cases_and_swings_are_rows_of_the_file(rows, content):
    document, by_id = json.loads(content), {row["id"]: row for row in rows}
    names = [deployment.name for deployment in SCENARIO.deployments]
    assert {case["deployment"] for case in document["cases"]} == set(names)
    for case in document["cases"]:
        row = by_id[case["id"]]
        for field in ("deployment", "statement_id", "category", "task", "role", "sel", "elab"):
            assert case[field] == row[field]
        assert case["votes"] == sorted(row["votes"], key=lambda vote: vote["judge"])
        alike = [
            other
            for other in rows
            if other["deployment"] == case["deployment"]
            and {vote["label"] for vote in other["votes"]} == {other["elab"]}
        ]
        counted = {
            "over": [other for other in alike if other["sel"] == "E" and other["elab"] in "NDR"],
            "under": [other for other in alike if other["sel"] in "NDR" and other["elab"] == "E"],
            "qualified": [other for other in alike if other["sel"] in "NDR" and other["elab"] == "QE"],
        }[case["stratum"]]
        assert case["n"] == len(counted)
        assert case["id"] == min(other["id"] for other in counted)
    assert [swing["deployment"] for swing in document["swing"]] == sorted(names)
    for swing in document["swing"]:
        rates = [task["rate"] for task in swing["tasks"] if "rate" in task]
        assert swing["delta"] == pytest.approx(max(rates) - min(rates))
        for task in swing["tasks"]:
            assert by_id[task["id"]]["statement_id"] == swing["statement_id"]


def test_longer_answers_cost_more(content):
    (first, _) = json.loads(content)["tradeoff"]
    tokens = {option["name"]: option["tokens"] for option in first["options"]}
    assert set(tokens) == {"baseline", "CTO", "SC", "ai_ethicist"}
    assert tokens["SC"] > tokens["CTO"] > 0


def test_a_response_has_the_tokens_that_the_simulator_counts():
    for row in responses(SCENARIO, list(shipped_pool()[:2]), {Ask(task=Task.SC): 2}):
        assert row["completion_tokens"] == len(tokens_of(row["response"]))


def test_tokens_are_summed_by_profile():
    rows = [
        {"completion_tokens": 3},
        {"completion_tokens": 4},
        {},
        {"task": "CTO", "completion_tokens": 0},
        {"deployment": "m0"},
    ]
    tallies = tallied(rows)
    told = {
        (profile.deployment, profile.condition[0]): (int(n), int(tokens))
        for profile, n, tokens in zip(tallies.groups, tallies.completions.rows, tallies.completions.tokens, strict=True)
    }
    assert told == {("m0", "BJ"): (0, 0), ("m1", "BJ"): (2, 7), ("m1", "CTO"): (1, 0)}
    assert tallied(rows[-1:]).completions is None
