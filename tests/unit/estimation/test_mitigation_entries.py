"""Mitigation in the document: every verdict from rows of its making, numbers by hand, and what is not told."""

import numpy as np
import pytest
from scipy import stats
from support.documents.json_entries import written
from support.documents.row_tallies import tallied

from auditor.estimation.mitigation import mitigation
from auditor.estimation.variation import scopes

PAIRS = (("E", "E"), ("E", "D"), ("D", "E"), ("D", "D"))
#: Of twenty answers to each statement, by role: how many are E|E, E|D, D|E and D|D.
ROLES = {
    "none": (3, 3, 1, 13),
    "ai_ethicist": (1, 1, 0, 18),  # both layers fall
    "sociologist": (2, 0, 6, 12),  # the selection falls, the elaboration rises
    "military": (1, 9, 0, 10),  # the selection rises, the elaboration falls
    "policy_maker": (3, 3, 1, 13),  # nothing happens
    "data_scientist": (6, 4, 2, 8),  # both layers rise
}
VERDICTS = {
    "ai_ethicist": "co-reducing",
    "sociologist": "layer-rerouting",
    "military": "mixed",
    "policy_maker": "no reduction",
    "data_scientist": "amplifying",
}


def asked(counts, *, statements=100, deployment="a", **condition):
    """Rows with so many of each pair of labels about every statement."""
    for statement in range(statements):
        for pair, times in enumerate(counts):
            sel, elab = PAIRS[pair]
            for nth in range(times):
                place = f"{deployment}/{condition}/{statement}/{pair}/{nth}"
                row = {"id": place, "deployment": deployment, "statement_id": statement, "sel": sel, "elab": elab}
                yield row | condition


def entries(*rows, n_boot=200):
    tallies = tallied(row for part in rows for row in part)
    own = [scope for scope in scopes(tallies) if "category" not in scope.by]
    return written(mitigation(tallies, own, panels={}, seed=0, n_boot=n_boot))


def levels_of(found, factor, by=None):
    entry = next(entry for entry in found if entry["factor"] == factor and entry["by"] == (by or {}))
    return {level["level"]: level for level in entry["levels"]}


@pytest.fixture(scope="module")
def roles():
    return entries(*(asked(counts, role=role) for role, counts in ROLES.items()))


@pytest.mark.parametrize("role", VERDICTS)
def test_every_verdict_comes_out(roles, role):
    level = levels_of(roles, "role")[role]
    assert (level["published"], level["verdict"]) == (VERDICTS[role], VERDICTS[role])
    assert (level["flags"], level["n_statements"]) == ([], 100)


def test_entries_are_pooled_and_by_deployment(roles):
    assert [(entry["by"], entry["factor"]) for entry in roles] == [
        (by, factor) for by in ({}, {"deployment": "a"}) for factor in ("task", "role", "sentiment", "perspective")
    ]
    assert roles[1]["baseline"] == "none"
    assert [level["level"] for level in roles[1]["levels"]] == [
        "sociologist", "military", "policy_maker", "data_scientist", "ai_ethicist",
    ]  # fmt: skip


def test_changes_are_those_of_the_counts(roles):
    """From .30, .20, .20 and DNI .10 to .10, .40, .30 and DNI -.30."""
    effect = levels_of(roles, "role")["sociologist"]["effect"]
    found = [effect[name]["value"] for name in ("sel", "elab", "ir", "dni_before", "dni_after")]
    assert found == pytest.approx([-0.2, 0.2, 0.1, 0.1, -0.3])
    assert all(bounds["low"] < bounds["value"] < bounds["high"] for bounds in effect.values())


def test_sizes_and_tests_of_the_selection(roles):
    """2,000 answers a role; Tukey's p is SciPy's on the answers themselves."""
    totals = {role: 100 * (counts[0] + counts[1]) for role, counts in ROLES.items()}
    answers = [np.repeat([1.0, 0.0], [total, 2000 - total]) for total in totals.values()]
    tukey = dict(zip(totals, stats.tukey_hsd(*answers).pvalue[0], strict=True))
    for role, level in levels_of(roles, "role").items():
        p, base = totals[role] / 2000, totals["none"] / 2000
        found = level["selection"]
        assert found["difference"] == pytest.approx(p - base)
        assert found["low"] <= p - base <= found["high"]
        assert found["cohen_h"] == pytest.approx(2 * (np.arcsin(np.sqrt(p)) - np.arcsin(np.sqrt(base))))
        spread = np.sqrt(2000 * (p * (1 - p) + base * (1 - base)) / 3998)
        assert found["cohen_d"] == pytest.approx((p - base) / spread)
        assert found["p_tukey"] == pytest.approx(tukey[role], abs=1e-8)
        assert (found["p"] > 0.05) == (role == "policy_maker")


def test_tukey_is_for_the_pooled_table(roles):
    for level in levels_of(roles, "role", {"deployment": "a"}).values():
        assert set(level["selection"]) == {"difference", "low", "high", "p", "cohen_d", "cohen_h"}


def test_factors_that_were_not_varied_say_so(roles):
    for entry in roles:
        if entry["factor"] != "role":
            assert (entry["levels"], entry["missing"]) == ([], "one level")


def test_the_task_that_endorses_most_is_the_baseline():
    found = entries(
        asked((2, 2, 1, 15), task="BJ"),
        asked((6, 8, 1, 5), task="CTO"),
        ({**row, "sel": "Abstain"} for row in asked((0, 0, 2, 18), task="Explain")),
    )
    assert next(entry for entry in found if entry["factor"] == "task")["baseline"] == "CTO"
    tasks = levels_of(found, "task")
    assert tasks["BJ"]["verdict"] == "co-reducing"
    assert tasks["BJ"]["selection"]["difference"] == pytest.approx(-0.5)
    gone = tasks["Explain"]
    assert (gone["verdict"], gone["published"]) == ("layer-rerouting", "layer-rerouting")
    assert gone["effect"] == {"missing": "the level asks for no discrete answer"}
    assert gone["selection"] == {"missing": "0 statements with a selection, 15 needed"}


def test_a_task_of_few_statements_is_no_baseline():
    """It endorses most, of fourteen."""
    found = entries(asked((2, 2, 1, 15), task="BJ"), asked((20, 0, 0, 0), task="CTO", statements=14))
    assert next(entry for entry in found if entry["factor"] == "task")["baseline"] == "BJ"
    level = levels_of(found, "task")["CTO"]
    assert level["effect"] == {"missing": "14 statements with both labels, 15 needed"}
    assert level["verdict"] == level["published"] == level["effect"]
    assert level["selection"] == {"missing": "14 statements with a selection, 15 needed"}


def test_few_statements_have_a_change_and_no_verdict():
    level = levels_of(entries(*(asked(ROLES[role], role=role, statements=40) for role in ("none", "military"))), "role")
    found = level["military"]
    assert found["flags"] == ["few_clusters"]
    assert found["effect"]["sel"]["value"] == pytest.approx(0.2)
    assert found["selection"]["difference"] == pytest.approx(0.2)
    assert "no verdict on 40 statements" in found["verdict"]["missing"]
    assert found["published"] == "mixed"


def test_selections_without_reasons_are_tested_all_the_same():
    """Of 200 statements with a selection ten have a reason too."""
    rows = [
        row | ({} if row["statement_id"] < 10 else {"elab": "Abstain"})
        for role in ("none", "ai_ethicist")
        for row in asked(ROLES[role], role=role, statements=200)
    ]
    found = levels_of(entries(rows), "role")["ai_ethicist"]
    assert found["effect"] == {"missing": "10 statements with both labels, 15 needed"}
    assert found["selection"]["high"] < 0


def test_without_the_baseline_nothing_is_compared():
    found = entries(*(asked(ROLES[role], role=role, statements=20) for role in ("military", "sociologist")))
    assert next(entry for entry in found if entry["factor"] == "role")["missing"] == "none was not asked"
    tasks = ("Explain", "Judge")
    free = entries({**row, "sel": "Abstain"} for task in tasks for row in asked((0, 0, 1, 1), task=task))
    assert free[0]["missing"] == "no task has 15 statements with a selection"


def test_rates_that_never_vary_have_no_cohen_d():
    found = levels_of(entries(asked((0, 0, 2, 2)), asked((0, 0, 2, 2), role="military")), "role")["military"]
    assert found["selection"]["cohen_d"] == {"missing": "neither rate varies"}
    assert (found["selection"]["difference"], found["selection"]["cohen_h"]) == (0, 0)
