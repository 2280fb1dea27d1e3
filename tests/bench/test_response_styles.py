"""Intervals of directions and response styles hold the truth, and answers without a style are seldom flagged.

Run by ``make measurements``; prints the figures of ``docs/design/2026-11-23-response-styles.md``. The suite has
``estimation/test_response_styles.py``.
"""

from collections import Counter

import numpy as np
import pytest
from support.documents.row_tallies import tallied
from support.worlds.styled_answers import CLAIM_TASKS, TASKS, asked_rows, drawn_rows

from auditor.estimation.direction import DirectionEstimator
from auditor.instrument.pool import shipped_pool
from auditor.stats.contrasts import contrast

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]

SAMPLES = 1000
SEEDS = 500
_COUNTED = ("id", "deployment", "task", "rubric", "keyed", "statement_id", "sel", "sel_reason", "elab", "elab_reason")


def _counts(estimator):
    """Count flags by style, answers with any flag, and directions whose interval leaves out 0."""
    found = Counter(entry.style for entry in estimator.styles() if entry.flagged is True)
    if found:
        found["any"] = 1
    (direction,) = (one for one in estimator.directions() if one.layer == "sel" and len(one.by) == 1)
    for name in ("score", "controlled"):
        entry = getattr(direction, name)
        found[f"{name} is not 0"] += not entry.low <= 0 <= entry.high
    return found


@pytest.mark.parametrize("statements", [100, 200])
@pytest.mark.parametrize("rate", [0.5, 0.1])
def test_answers_without_a_style_are_flagged_in_6_percent_at_most(statements, rate):
    total = Counter()
    for seed in range(SEEDS):
        rows = drawn_rows(dict.fromkeys(TASKS, rate), statements, np.random.default_rng([12, statements, seed]))
        total.update(_counts(DirectionEstimator(tallied(rows))))
    shares = {name: count / SEEDS for name, count in sorted(total.items())}
    print(f"rate {rate}, {statements} statements: {shares}")
    assert shares.get("any", 0) <= 0.06
    assert shares.get("controlled is not 0", 0) <= 0.07


def test_always_yes_is_flagged_and_has_no_controlled_direction():
    rates = {task: 1.0 if task in CLAIM_TASKS else 0.5 for task in TASKS}
    total = Counter()
    for seed in range(SEEDS):
        total.update(_counts(DirectionEstimator(tallied(drawn_rows(rates, 100, np.random.default_rng([13, seed]))))))
    shares = {name: count / SEEDS for name, count in sorted(total.items())}
    print(f"always yes, 100 statements: {shares}")
    assert shares["acquiescence"] == 1
    assert shares.get("controlled is not 0", 0) <= 0.06


def test_from_the_plan_to_the_analysis():
    """Twenty seeds of simulated answers as texts; both deployments."""
    total = {"always-yes": Counter(), "coin": Counter()}
    for seed in range(20):
        rows = [{name: row[name] for name in _COUNTED} for row in asked_rows(shipped_pool()[:120], seed=seed)]
        for name, found in total.items():
            found.update(_counts(DirectionEstimator(tallied(row for row in rows if row["deployment"] == name))))
    print(f"of 20 seeds: {total}")
    assert total["always-yes"]["acquiescence"] == 20
    assert total["always-yes"]["controlled is not 0"] <= 4
    assert total["coin"]["any"] <= 4


@pytest.mark.parametrize("statements", [15, 30, 120])
@pytest.mark.parametrize("responses", [1, 4])
def test_a_difference_of_two_rates_is_covered(statements, responses):
    """Rates of claim and counter claim from the middle to the extremes, without and with differences of statements."""
    found = {}
    for first, second in ((0.5, 0.5), (0.3, 0.1), (0.02, 0.02), (0.98, 0.6), (0.995, 0.995)):
        for icc in (0.0, 0.3):
            hits = 0
            for seed in range(SAMPLES):
                rng = np.random.default_rng([11, statements, responses, seed])
                rates = np.tile([first, second], (statements, 1))
                if icc:
                    scale = (1 - icc) / icc
                    rates = rng.beta(rates * scale, (1 - rates) * scale)
                y = rng.binomial(responses, rates).astype(float)
                hits += (
                    contrast(y, np.full_like(y, responses), np.array([1.0, -1.0])).interval().contains(first - second)
                )
            found[first, second, icc] = hits / SAMPLES
    print(f"{statements} statements, {responses} responses: {found}")
    assert min(found.values()) >= 0.93
