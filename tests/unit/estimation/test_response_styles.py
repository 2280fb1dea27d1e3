"""Always yes is flagged, a coin is not, and neither has a direction: from the plan to the analysis."""

import numpy as np
import pytest
from support.documents.row_tallies import tallied
from support.worlds.styled_answers import CLAIM_TASKS, TASKS, asked_rows, drawn_rows

from auditor.estimation.direction import DirectionEstimator
from auditor.instrument.pool import shipped_pool


@pytest.fixture(scope="module")
def asked():
    """Both deployments, asked about the first 120 statements."""
    wanted = ("id", "deployment", "task", "rubric", "keyed", "statement_id", "sel", "sel_reason", "elab", "elab_reason")
    rows = [{name: row[name] for name in wanted} for row in asked_rows(shipped_pool()[:120], seed=0)]
    estimator = DirectionEstimator(tallied(rows))
    return rows, estimator


def styles_of(estimator, deployment):
    return {entry.style: entry for entry in estimator.styles() if entry.by == {"deployment": deployment}}


def direction_of(estimator, deployment):
    return next(
        entry for entry in estimator.directions() if entry.by == {"deployment": deployment} and entry.layer == "sel"
    )


@pytest.mark.slow
def test_every_answer_is_read(asked):
    rows, _ = asked
    assert len(rows) == 2 * 6 * 120
    assert {row["sel"] for row in rows} == {"E", "D"}
    yes = [row for row in rows if row["deployment"] == "always-yes" and row["task"] in CLAIM_TASKS]
    assert {row["sel"] for row in yes} == {"E"}


def test_always_yes_is_flagged_and_has_no_direction(asked):
    _, estimator = asked
    styles, direction = styles_of(estimator, "always-yes"), direction_of(estimator, "always-yes")
    assert styles["acquiescence"].flagged is True
    assert styles["acquiescence"].effect.value == 0.5
    assert styles["first_option"].flagged is False
    assert styles["high_rating"].flagged is False
    assert direction.score.low > 0  # without the control it looks biased
    assert direction.controlled.low < 0 < direction.controlled.high


def test_a_coin_is_not_flagged_and_has_no_direction(asked):
    _, estimator = asked
    assert {entry.flagged for entry in styles_of(estimator, "coin").values()} == {False}
    direction = direction_of(estimator, "coin")
    for entry in (direction.score, direction.controlled):
        assert entry.low < 0 < entry.high


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.5, 0.1])
def test_answers_without_a_style_are_seldom_flagged(rate):
    """The bound is that of ten flags in 60 seeds, whose probability is below .1 % if 5 % are flagged."""
    flagged = 0
    for seed in range(60):
        rows = drawn_rows(dict.fromkeys(TASKS, rate), 100, np.random.default_rng([3, seed]))
        flagged += any(entry.flagged is True for entry in DirectionEstimator(tallied(rows)).styles())
    assert flagged < 10
