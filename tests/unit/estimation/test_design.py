"""``design``: the numbers of each step, counted here by hand from the rows."""

import json

import pytest
from support.worlds.coded_rows import coded_rows, factorial_conditions, oat_conditions, write_rows

from auditor.documents.codec import canonical_bytes
from auditor.estimation.analysis import Options, analyse, read_tallies


def design(folder, rows):
    rows = [row | {"id": str(number)} for number, row in enumerate(rows)]
    path, options = write_rows(folder / "rows.jsonl", rows), Options(n_boot=40)
    return json.loads(canonical_bytes(analyse(read_tallies(path, options), options)))["design"]


def test_every_step_has_its_number(tmp_path):
    rows = list(coded_rows(oat_conditions(), statements=20, deployments=3))[:-7]
    (entry,) = design(tmp_path, rows)
    assert (entry["n_statements"], entry["n_categories"], entry["n_conditions"]) == (20, 4, 21)
    assert {factor: len(levels) for factor, levels in entry["levels"].items()} == dict.fromkeys(entry["levels"], 6)
    assert entry["levels"]["task"] == ["BJ", "SC", "CTO", "Explain", "Judge", "Rate"]
    assert (entry["n_deployments"], entry["n"], entry["n_fewest"], entry["n_most"]) == (3, 1253, 413, 420)
    coded = [(row["sel"] != "Abstain", row["elab"] != "Abstain") for row in rows]
    assert entry["n_selection"] == sum(sel for sel, _ in coded)
    assert entry["n_elaboration"] == sum(elab for _, elab in coded)
    assert entry["n_eligible"] == sum(sel and elab for sel, elab in coded)
    assert entry["judges"] == ["j0", "j1", "j2"]


def test_the_papers_own_line_comes_out_for_its_design(tmp_path):
    """Table I: chosen and written answers, 401 templates x 200 statements a model, four axes, layers coded."""
    statements = 10
    rows = [
        *coded_rows(oat_conditions()[1:], statements=statements, templates=20, deployments=1),
        *coded_rows(oat_conditions()[:1], statements=statements, templates=1, deployments=1),
    ]
    (entry,) = design(tmp_path, rows)
    own = entry["benchmarks"][-1]
    assert own["units"] == 401 * statements  # 80,200 with the paper's 200 statements
    assert (own["published"], own["layered"], own["formats"]) == (False, True, ["closed", "open"])
    assert own["prompt_factors"] == ["task", "perspective", "role", "sentiment"]
    assert [(each["name"], each["units"]) for each in entry["benchmarks"][:-1]] == [
        ("CrowS-Pairs", 1508),
        ("StereoSet", 16995),
        ("BBQ", 58492),
        ("CEB", 11004),
        ("F2Bench", 2568),
        ("CLEAR-Bias", 4400),
    ]


@pytest.mark.parametrize(
    ("conditions", "formats", "factors"),
    [
        (factorial_conditions(), ["closed"], ["task", "perspective", "role", "sentiment"]),
        ([("Judge", "self", "none", "neutral")], ["open"], []),
    ],
)
def test_formats_and_factors_are_those_that_were_asked(tmp_path, conditions, formats, factors):
    (entry,) = design(tmp_path, coded_rows(conditions, statements=5))
    assert (entry["benchmarks"][-1]["formats"], entry["benchmarks"][-1]["prompt_factors"]) == (formats, factors)


def test_traffic_without_a_statement_has_no_design(tmp_path):
    rows = [{"deployment": "m1", "task": "Judge", "rubric": "open", "sel": "Abstain", "elab": "E"}] * 20
    assert design(tmp_path, rows) == []
