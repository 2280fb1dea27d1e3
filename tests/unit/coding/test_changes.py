"""Rows of standardised rates and changes: what they hold, what is left out, and what is missing."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

import pytest

from auditor.estimation.changes import ReferenceWindow, change_rows
from auditor.estimation.snapshots import Snapshot, Window
from auditor.store.estimates import EstimateRow

NOW = datetime(2031, 5, 6, 12, tzinfo=UTC)
#: Endorsing answers in a hundred, by task (MONITORING section 1).
RATES = {"CTO": 56, "Rate": 7, "SC": 15, "BJ": 33}


def rows(asked: Mapping[str, int], deployment: str = "d1", **changed: Any) -> list[dict[str, Any]]:
    """Of each of a hundred statements so many answers under each task; of those of a hundred so many endorse."""
    base = {
        "deployment": deployment, "origin": "probe", "rubric": "statement", "audit": None, "claim": None,
        "perspective": "self", "role": "none", "sentiment": "neutral", "invites_reason": True, "category": None,
        "sel_reason": None, "elab_reason": None, "uncoded": None,
    }  # fmt: skip
    return [
        {**base, "task": task, "cluster": f"s{number}", "sel": label, "elab": label, "n": n, **changed}
        for task, n in asked.items()
        for number in range(100)
        for label in ["E" if number < RATES[task] else "D"]
    ]


def made(new: Sequence[Mapping[str, Any]], old: Sequence[Mapping[str, Any]] | None) -> dict[str, EstimateRow]:
    """The rows of one deployment: ``level`` and ``change`` by measure."""
    window = Window(name="7d", since=NOW, longest=False, rows=new, votes={})
    references = (
        {} if old is None else {"d1": ReferenceWindow(since=date(2031, 4, 1), until=date(2031, 4, 14), rows=old)}
    )
    found = list(change_rows(Snapshot(as_of=NOW, seed=0), "coder", window, references))
    return {f"{row.metric} {row.detail['measure']}": row for row in found if row.deployment == "d1"}


def test_a_change_of_the_mix_is_told_from_a_change_of_the_answers() -> None:
    before, after = dict.fromkeys(RATES, 5), {"CTO": 12, "BJ": 4, "SC": 2, "Rate": 2}
    found = made(rows(after), rows(before))
    level, change = found["standardised ber_union_full"], found["change ber_union_full"]
    assert level.value == pytest.approx(0.2775)
    assert level.detail["rates"]["CTO/self/none/neutral"] == 0.56
    assert (level.n, level.n_statements, level.layer, level.base) == (2000, 100, "union", "full")
    assert change.value == pytest.approx(0.0, abs=1e-12)
    assert change.detail["pooled"] == pytest.approx(0.424 - 0.2775)
    assert (change.detail["drift"], change.detail["mix"]) == (pytest.approx(0.0), pytest.approx(0.1465))
    assert (change.detail["reference_since"], change.detail["reference_until"]) == ("2031-04-01", "2031-04-14")
    assert (change.missing, change.flags, change.window) == (None, (), "7d")


def test_a_condition_that_one_side_lacks_is_named_and_left_out() -> None:
    found = made(rows({"CTO": 5, "BJ": 5}), rows({"CTO": 5, "SC": 5}))
    change = found["change ber_union_full"]
    assert change.detail["conditions"] == ["CTO/self/none/neutral"]
    assert change.detail["left_out"] == ["BJ/self/none/neutral", "SC/self/none/neutral"]
    assert change.value == change.detail["drift"] == change.detail["mix"] == 0.0
    few = rows({"CTO": 5}) + rows({"BJ": 5})[:4]
    level = made(few, None)["standardised ber_union_full"]
    assert (level.detail["left_out"], level.value) == (["BJ/self/none/neutral"], pytest.approx(0.56))
    nothing = made(rows({"BJ": 5}), rows({"SC": 5}))["change ir"]
    assert (nothing.value, nothing.missing) == (None, "no condition has 5 statements in both windows")


def test_without_a_reference_there_is_a_rate_and_no_change() -> None:
    found = made(rows({"CTO": 5}), None)
    assert found["standardised ber_union_full"].value == pytest.approx(0.56)
    assert found["change ber_union_full"].missing == "it has no reference yet"


def test_traffic_and_what_has_no_label_are_not_counted() -> None:
    more = [*rows({"CTO": 5}, origin="client"), *rows({"CTO": 5}, uncoded="unreadable", sel=None, elab=None)]
    assert made(rows({"CTO": 5}) + more, None) == made(rows({"CTO": 5}), None)
    assert made(more, None) == {}


def test_a_task_without_a_selection_has_no_divergence() -> None:
    free = [
        {**row, "task": "Explain", "sel": "Abstain", "sel_reason": "no_selection_layer"} for row in rows({"CTO": 5})
    ]
    found = made(free + rows({"BJ": 5}), None)
    assert list(found["standardised ir"].detail["rates"]) == ["BJ/self/none/neutral"]
    assert found["standardised ir"].detail["left_out"] == ["Explain/self/none/neutral"]
    assert len(found["standardised ber_union_full"].detail["rates"]) == 2


def test_rare_rates_and_few_statements_are_flagged() -> None:
    few = [row for row in rows({"Rate": 5}) if int(row["cluster"][1:]) < 60]
    flags = made(few, few)["change ir"].flags
    assert flags == ("few_clusters", "low_rate", "bounds_only")
    assert made(few, few)["change dni"].flags == ("few_clusters",)
