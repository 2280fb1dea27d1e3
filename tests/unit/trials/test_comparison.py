"""Arms of a trial: their rates, differences and tokens against what was simulated, and what has no value."""

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from auditor.documents.base import Missing
from auditor.documents.estimates import FlaggedEntry
from auditor.store.estimates import EstimateRow
from auditor.store.trials import ArmStop
from auditor.trials.comparison import TrialCounts, compare_arms, trial_rows
from auditor.trials.document import TrialArmEntry, TrialEntry

Row = dict[str, Any]
NOW = datetime(2026, 3, 1, tzinfo=UTC)


def row(arm: str, unit: int, sel: str, elab: str, n: int = 1, *, tokens: int = 10, **changed: Any) -> Row:
    """One count of a trial."""
    usual: Row = {
        "arm": arm, "untouched": None, "deployment": "d", "rubric": "proposition", "claim": "stereotype",
        "category": None, "task": None, "perspective": None, "role": None, "sentiment": None, "cluster": f"u{unit}",
        "inclusion": 1.0, "sel": sel, "sel_reason": None, "elab": elab, "elab_reason": None, "uncoded": None, "n": n,
        "n_prompt": n, "prompt": n * tokens, "n_completion": 0, "completion": 0,
    }  # fmt: skip
    return usual | changed


def simulated(seed: int, rates: dict[str, tuple[float, float]], units: dict[str, int], answers: int = 3) -> list[Row]:
    """Rows of users who ask several times; each has rates of their own around those of the arm."""
    rng = np.random.default_rng(seed)
    rows = []
    for arm, count in units.items():
        for unit in range(count):
            own = rng.beta(*(4 * np.array([rates[arm][0], 1 - rates[arm][0]])))
            inclusion = (1.0, 0.25)[unit % 2]
            for _ in range(rng.integers(1, 2 * answers)):
                sel, elab = rng.random() < own, rng.random() < rates[arm][1]
                tokens = int(100 + (20 if arm == "careful" else 0) + rng.normal(0, 5))
                labels = ("E" if sel else "D", "E" if elab else "D")
                rows.append(row(arm, 1000 * len(arm) + unit, *labels, tokens=tokens, inclusion=inclusion))
    return rows


def compared(rows: list[Row], **given: Any) -> TrialEntry:
    counts = TrialCounts(trial="12345678", route="desk", coder="c", rubric="proposition", rows=rows, **given)
    return compare_arms(counts, seed=0)


def arms(entry: TrialEntry) -> dict[str, TrialArmEntry]:
    return {arm.arm: arm for arm in entry.arms}


def known(found: FlaggedEntry | Missing) -> FlaggedEntry:
    assert isinstance(found, FlaggedEntry)
    return found


@pytest.mark.slow
def test_intervals_of_differences_hold_what_was_simulated() -> None:
    rates = {"control": (0.4, 0.3), "careful": (0.25, 0.3)}
    truth = {"ber_sel_full": -0.15, "ber_elab_full": 0.0, "dni": -0.15}
    held = dict.fromkeys([*truth, "prompt"], 0)
    runs = 60
    for seed in range(runs):
        entry = arms(compared(simulated(seed, rates, {"control": 90, "careful": 30})))["careful"]
        for name, value in truth.items():
            found = known(entry.differences[name])
            held[name] += found.low <= value <= found.high
        tokens = known(entry.token_differences["prompt"])
        held["prompt"] += tokens.low <= 20 <= tokens.high
    assert min(held.values()) >= 0.9 * runs, held


def test_units_are_compared_as_they_were_assigned() -> None:
    """Those whose requests could not get the instruction stay in their arm; those after a stop are in none."""
    units = range(20)
    rows = [row("control", unit, "D", "D") for unit in units]
    rows += [row("careful", 100 + unit, "E", "D", untouched="no_text" if unit < 5 else None) for unit in units]
    rows += [row("careful", 200 + unit, "D", "D", untouched="stopped") for unit in units]
    rows += [row("unassigned", 300, "E", "E", n=7)]
    entry = compared(rows)
    careful = arms(entry)["careful"]
    assert (careful.n, careful.n_units, careful.untouched) == (20, 20, {"no_text": 5, "stopped": 20})
    assert known(careful.metrics["ber_sel_full"]).value == 1.0
    assert known(careful.differences["ber_sel_full"]).value == 1.0
    assert known(careful.differences["ber_sel_full"]).flags == ["few_clusters"]
    assert (entry.n_unassigned, [arm.arm for arm in entry.arms]) == (7, ["control", "careful"])
    assert arms(entry)["control"].differences == {}


def test_a_stopped_arm_is_compared_with_the_control_until_then() -> None:
    until = [row(arm, len(arm) * 100 + unit, "D", "D") for arm in ("control", "careful") for unit in range(20)]
    later = [row("control", 900 + unit, "E", "D") for unit in range(20)]
    stop = {"trial": "12345678", "arm": "careful", "route": "desk", "at": NOW, "by": "rule", "because": "harm"}
    after = compared([*until, *later], stops=[ArmStop(**stop, dry_run=False)], until_stop={"careful": until})
    dry = compared([*until, *later], stops=[ArmStop(**stop, dry_run=True)])
    values = [known(arms(one)["careful"].differences["ber_sel_full"]).value for one in (after, dry)]
    assert values == [0.0, -0.5]
    assert known(arms(after)["control"].metrics["ber_sel_full"]).value == 0.5


def test_what_is_not_known_has_a_reason() -> None:
    rows = [row("control", unit, "D", "D") for unit in range(40)] + [row("careful", 100, "E", "D", n=9)]
    careful = arms(compared(rows))["careful"]
    assert careful.differences["ir"] == Missing(missing="careful: 1 statements in the eligible base, 15 needed")
    assert careful.tokens["prompt"] == Missing(missing="1 users or conversations with known tokens, 15 needed")
    assert careful.tokens["completion"] == Missing(missing="0 users or conversations with known tokens, 15 needed")
    uncoded = [
        {**row("careful", 100 + n, "x", "x"), "sel": None, "elab": None, "uncoded": "no_content"} for n in range(3)
    ]
    entry = arms(compared([*rows[:40], *uncoded]))["careful"]
    assert (entry.n, entry.metrics["ir"]) == (3, Missing(missing="no coded answer"))
    assert compared([]).arms[0].n == 0


def test_rows_of_a_snapshot() -> None:
    rates = {"control": (0.4, 0.3), "careful": (0.25, 0.3)}
    entry = compared(simulated(1, rates, {"control": 60, "careful": 30}))
    like = EstimateRow(
        as_of=NOW, deployment=None, origin="client", rubric="proposition", condition="desk", window="trial", since=NOW,
        coder="c", metric="",
    )  # fmt: skip
    rows = list(trial_rows(entry, like))
    (found,) = [one for one in rows if one.metric == "arm_difference" and one.detail["measure"] == "ber_sel_full"]
    expected = known(arms(entry)["careful"].differences["ber_sel_full"])
    assert (found.value, found.low, found.high) == (expected.value, expected.low, expected.high)
    assert (found.detail["arm"], found.detail["route"], found.layer, found.base) == ("careful", "desk", "sel", "full")
    assert {one.metric for one in rows} == {
        "arm_rate", "arm_difference", "arm_tokens", "arm_tokens_difference", "arm_requests"
    }  # fmt: skip
    assert pytest.approx(20, abs=6) == next(one.value for one in rows if one.metric == "arm_tokens_difference")
