"""Averages, levels, factors, cells and the crossing of task and tone: by hand, and against declared truth."""

import json
from functools import cache

import numpy as np
import pytest
from support.documents.json_entries import writing, written
from support.documents.row_tallies import tallied
from support.worlds.coded_rows import coded_rows, factorial_conditions, oat_conditions, write_rows
from support.worlds.simulated_files import coded_records
from support.worlds.simulated_rows import coded_rows as simulated_rows

from auditor.counting.rows import CodedRow
from auditor.documents.codec import canonical_bytes
from auditor.domain.condition import Task
from auditor.estimation import entries
from auditor.estimation import levels as estimated
from auditor.estimation.analysis import Options, analyse, read_tallies
from auditor.estimation.variation import Scope, Variation
from auditor.instrument.pool import shipped_pool
from auditor.simulate.config import load
from auditor.simulate.expected import Ask, expect
from auditor.simulate.truth import variance_share

interaction, levels, means, pool = (
    writing(each) for each in (estimated.interaction, estimated.levels, estimated.means, entries.pool)
)
OPTIONS = {"panel_differs": False, "seed": 0, "n_boot": 100}
SCENARIO = load().scenario


def ask_at(factor, level):
    """The question with one factor off its baseline."""
    return Ask(**{factor: Task(level) if factor == "task" else level})


PLAN = {
    Ask(): 4,
    Ask(task=Task.CTO): 2,
    Ask(task=Task.EXPLAIN): 2,
    Ask(role="ai_ethicist"): 4,
    Ask(sentiment="negative"): 2,
}


def document(folder, rows, **options):
    chosen = Options(**{"n_boot": 200, **options})
    return json.loads(canonical_bytes(analyse(read_tallies(write_rows(folder / "rows.jsonl", rows), chosen), chosen)))


@pytest.fixture(scope="module")
def study():
    statements = list(shipped_pool())
    columns = simulated_rows(SCENARIO, PLAN, [one.statement for one in statements], rng=np.random.default_rng(5))
    kept = CodedRow.__struct_fields__
    rows = coded_records(SCENARIO, statements, PLAN, columns)
    return tallied({name: row[name] for name in kept if name in row and name != "votes"} for row in rows)


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """One factor at a time, and a crossed design in the same file."""
    rows = [*coded_rows(oat_conditions(), statements=40), *coded_rows(factorial_conditions(), statements=40)]
    rows = [row | {"id": f"{number}"} for number, row in enumerate(rows)]
    return document(tmp_path_factory.mktemp("both"), rows)


def answers(shares, *, statements=20, **fields):
    """Rows about each statement, so many of each pair of labels."""
    for statement in range(statements):
        for (sel, elab), times in shares.items():
            for _ in range(times):
                yield {"statement_id": statement, "sel": sel, "elab": elab, **fields}


def numbered(*parts):
    return [row | {"id": number} for number, row in enumerate(row for part in parts for row in part)]


def truth(ask, name):
    """The mean over the deployments that an endless audit of all statements would find."""
    return np.mean([values[name] for values in expected(ask)])


@cache
def expected(ask):
    return [expect(SCENARIO, deployment, ask).limit.values for deployment in SCENARIO.deployments]


def test_the_pool_is_counted_in_all_and_by_category():
    rows = numbered(
        answers({("D", "D"): 1}, statements=5, category="gender"),
        answers({("D", "D"): 2}, statements=3, category="age"),
        answers({("E", "D"): 1}, statements=2),
        answers({("D", "D"): 1}, statements=9, rubric="open"),
    )
    categories = [("age", 3), ("gender", 5), (None, 2)]
    assert pool(tallied(rows)) == [
        {
            "rubric": "statement",
            "n_statements": 5,
            "categories": [{"category": name, "n_statements": n} for name, n in categories],
        }
    ]


def test_traffic_has_neither_a_pool_nor_conditions(tmp_path):
    rows = list(coded_rows([("BJ", "self", "none", "neutral")], statements=30))
    rows = [row | {"rubric": "open", "sel": "Abstain", "sel_reason": "no_selection_layer"} for row in rows]
    found = document(tmp_path, [row for row in rows if row["elab_reason"] != "transport_error"])
    for name in ("pool", "levels", "cells", "factors", "mitigation", "interaction", "slices"):
        assert found[name] == []
    assert [entry["rubric"] for entry in found["means"]] == ["open"]
    assert "deployment" not in {entry["design"] for entry in found["eta_squared"]}


def test_a_mean_weighs_deployments_alike_and_the_pool_responses():
    """Rates of .1 of 200 and .5 of 600 responses: the mean is .3, all together .4."""
    rows = numbered(
        answers({("E", "D"): 1, ("D", "D"): 9}, deployment="a"),
        answers({("E", "D"): 15, ("D", "D"): 15}, deployment="b"),
    )
    tallies = tallied(rows)
    (mean,) = means(tallies, **OPTIONS)
    assert (mean["n_deployments"], mean["metrics"]["ber_sel_full"]["value"]) == (2, pytest.approx(0.3))
    level = levels(tallies, range(2), **OPTIONS)[0]
    assert (level["n"], level["n_deployments"], level["level"]) == (800, 2, "BJ")
    assert level["metrics"]["ber_sel_full"]["value"] == pytest.approx(0.3)
    assert level["pooled"]["ber_sel_full"]["value"] == pytest.approx(0.4)
    assert level["pooled"]["dni"]["value"] == pytest.approx(0.4)


def test_a_rubric_without_a_claim_has_no_mean_rate_of_endorsement():
    rows = numbered(answers({("E", "D"): 1, ("D", "D"): 1}, rubric="proposition"))
    (mean,) = means(tallied(rows), **OPTIONS)
    assert "without claim" in mean["metrics"]["ber_union"]["missing"]
    assert mean["metrics"]["ir"]["value"] == 0.5


def test_deployments_that_other_panels_read_have_no_mean():
    rows = numbered(*(answers({("E", "D"): 1, ("D", "D"): 1}, deployment=name) for name in "ab"))
    (mean,) = means(tallied(rows), **(OPTIONS | {"panel_differs": True}))
    assert all("different panels" in metric["missing"] for metric in mean["metrics"].values())


def test_each_factor_has_its_own_slice_with_the_baseline_first(both):
    """Conditions that depart in two factors are in no slice."""
    found = [(entry["factor"], entry["level"]) for entry in both["levels"]]
    assert len(found) == 6 * 4 == len(set(found))
    assert found[::6] == [("task", "BJ"), ("perspective", "self"), ("role", "none"), ("sentiment", "neutral")]
    baselines = [entry for entry in both["levels"] if entry["level"] in {"BJ", "self", "none", "neutral"}]
    assert len({json.dumps(entry["metrics"]) for entry in baselines}) == 1
    media = next(entry for entry in both["levels"] if entry["level"] == "media")
    same = next(cell for cell in both["cells"] if cell["by"]["perspective"] == "media")
    assert (media["pooled"], media["n"], media["coverage"]) == (same["metrics"], same["n"], same["coverage"])


def test_levels_of_one_s_own_come_last_by_name():
    rows = numbered(*(answers({("E", "D"): 1, ("D", "D"): 1}, role=role) for role in ("pilot", "cook", "military")))
    rows += [row | {"id": f"b{row['id']}", "role": None} for row in rows[:40]]
    found = [entry["level"] for entry in levels(tallied(rows), range(4), **OPTIONS) if entry["factor"] == "role"]
    assert found == ["none", "military", "cook", "pilot"]


def test_cells_pool_the_deployments_by_condition(both):
    assert len(both["cells"]) == 21 + 24 - 6  # the baseline and five levels are in both designs
    for cell in both["cells"]:
        own = [entry for entry in both["conditions"] if cell["by"].items() <= entry["by"].items()]
        assert cell["n"] == sum(entry["n"] for entry in own)
        assert set(cell) == set(own[0])


def test_levels_hold_the_declared_truth(study):
    """Of 95 % intervals for the deployments' means, nine of ten or more."""
    held = {}
    for entry in levels(study, range(len(study.groups)), **(OPTIONS | {"n_boot": 400})):
        ask = ask_at(entry["factor"], entry["level"])
        for name, found in entry["metrics"].items():
            if "missing" not in found:
                held[ask, name] = found["low"] <= truth(ask, name) <= found["high"]
    assert len(held) == 4 * 6 + 2  # of free responses there is no selection
    assert np.mean(list(held.values())) >= 0.9


def test_factors_hold_the_declared_shares(study):
    scope = Scope(by={}, rubric="statement", group_indices=tuple(range(len(study.groups))))
    entries = written(Variation(study, seed=0, n_boot=400).factors(scope))
    found = {(entry["factor"], entry["outcome"]): entry for entry in entries}
    assert len(found) == 4 * 4
    for factor, level in (("role", "ai_ethicist"), ("sentiment", "negative")):
        asks = [Ask(), ask_at(factor, level)]
        weights = np.array([float(PLAN[ask]) for ask in asks])
        rates = np.array([truth(ask, "ber_union_full") for ask in asks])
        entry = found[factor, "ber_union_full"]
        assert entry["eta_squared"]["low"] <= variance_share(rates, weights) <= entry["eta_squared"]["high"]
        assert entry["range"]["low"] <= abs(rates[1] - rates[0]) <= entry["range"]["high"]
        assert entry["n"] == sum(weights) * 200 * len(SCENARIO.deployments)
    missing = found["perspective", "ber_cor"]
    assert (missing["base"], missing["eta_squared"]) == ("eligible", {"missing": "one level"})
    assert missing["range"] == {"missing": "one level"}


def test_factors_say_what_the_document_says_elsewhere(both):
    oat = next(entry for entry in both["eta_squared"] if entry["by"] == {} and entry["design"] == "oat")
    for factor, share in oat["effects"].items():
        entry = next(e for e in both["factors"] if (e["factor"], e["outcome"]) == (factor, "ber_union_full"))
        assert entry["eta_squared"]["value"] == share
        assert [entry["eta_squared"]["low"], entry["eta_squared"]["high"]] == oat["intervals"][factor]
        assert entry["flags"] == ["few_clusters", "fixed_templates"]
        ranged = next(
            e for e in both["horizontal"] if not e["by"] and (e["metric"], e["over"]) == ("ber_union_full", factor)
        )
        assert entry["range"].items() <= ranged.items()


def test_a_crossover_of_task_and_tone():
    """The tone takes 30 points from CTO and gives 20 to SC; two deployments, twenty points apart."""
    rates = {("CTO", "neutral"): 5, ("CTO", "skeptical"): 2, ("SC", "neutral"): 2, ("SC", "skeptical"): 4}
    rows = numbered(
        *(
            answers({("E", "D"): e + more, ("D", "D"): 10 - e - more}, deployment=name, task=task, sentiment=tone)
            for (task, tone), e in rates.items()
            for name, more in (("a", 0), ("b", 2))
        )
    )
    found = interaction(tallied(rows), seed=0)
    assert [(entry["task"], entry["sentiment"]) for entry in found] == sorted(rates)
    for entry in found:
        rate = rates[entry["task"], entry["sentiment"]] / 10 + 0.1
        assert (entry["mean"], entry["ber_sel_full"]["value"]) == pytest.approx((rate, rate))
        assert entry["sd"] == pytest.approx(np.std([rate - 0.1, rate + 0.1], ddof=1))
        assert (entry["n"], entry["n_deployments"]) == (20 * 10 * 2, 2)


def test_the_crossing_is_found_beside_one_factor_at_a_time(both):
    assert len(both["interaction"]) == 3 * 2
    crossed = next(entry for entry in both["eta_squared"] if entry["design"] == "factorial")
    assert set(crossed["effects"]) >= {"task", "task:sentiment"}
    assert "missing" not in crossed


def test_one_deployment_has_no_spread_and_too_few_statements_no_mean():
    cells = [(task, tone) for task in ("BJ", "CTO") for tone in ("neutral", "negative")]
    for number, lacking in ((20, ["sd"]), (10, ["ber_sel_full", "mean", "sd"])):
        rows = numbered(
            *(
                answers({("E", "D"): 1, ("D", "D"): 1}, task=task, sentiment=tone, statements=number)
                for task, tone in cells
            )
        )
        for entry in interaction(tallied(rows), seed=0):
            missing = [name for name in ("ber_sel_full", "mean", "sd") if "missing" in str(entry[name])]
            assert missing == lacking


def test_without_a_crossing_there_is_no_interaction():
    tasks = numbered(*(answers({("E", "D"): 1}, task=task) for task in ("BJ", "CTO")))
    assert interaction(tallied(tasks), seed=0) == []
    roles = numbered(
        *(answers({("E", "D"): 1}, task=task, role=role) for task in ("BJ", "CTO") for role in ("none", "military"))
    )
    assert interaction(tallied(roles), seed=0) == []
