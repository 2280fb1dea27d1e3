"""Shares of variance: their intervals in audits of known truth, what counts as crossed, and cells of one factor."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.worlds.coded_rows import factorial_conditions, oat_conditions
from support.worlds.share_worlds import WORLDS, coverage

from auditor.counting.conditions import BASELINE
from auditor.domain.estimate import Insufficient
from auditor.metrics.shares import (
    CellCounts,
    ConditionCounts,
    Resampled,
    crossing,
    eta_squared_between,
    eta_squared_oat,
    factorial_shares,
)
from auditor.stats.variance import squared_length_interval


@pytest.mark.slow
@pytest.mark.parametrize("name", ["oat", "panel, own", "crossed", "deployments, equal"])
def test_intervals_hold_the_true_shares(name):
    """In seven of eight audits or more, each of them (``make measurements`` has a thousand of each kind)."""
    found = coverage(WORLDS[name], audits=80, n_boot=300)
    assert {effect: held for effect, (_, held) in found.items() if held < 0.875} == {}


def test_no_effect_is_not_told_from_noise_and_a_large_one_is():
    found = WORLDS["oat"].audit(3, n_boot=400)
    assert found.intervals["perspective"][0] == 0 < found.effects["perspective"]
    assert found.intervals["task"][0] > 0.1


@pytest.mark.parametrize("name", ["oat", "crossed", "deployments"])
def test_each_share_lies_in_its_interval(name):
    for seed in range(5):
        found = WORLDS[name].audit(seed, n_boot=50)
        for effect, (low, high) in found.intervals.items():
            assert 0 <= low <= found.effects[effect] <= high <= 1


def test_without_replicates_there_are_no_intervals():
    world = WORLDS["oat"]
    assert world.truth().intervals == {}


@given(st.integers(0, 2**32), st.integers(1, 4))
def test_bounds_grow_with_the_noise(seed, size):
    rng = np.random.default_rng(seed)
    vector, noise = rng.normal(size=size), rng.normal(size=(40, size))
    narrow, wide = (squared_length_interval(vector, vector + times * noise, 50) for times in (0.01, 0.02))
    assert narrow.contains(float(vector @ vector))
    assert wide.high >= narrow.high
    assert wide.low <= narrow.low


def test_measured_by_chance_as_exactly_nothing():
    """Two conditions with the same count: the true share may be above 0 all the same."""
    noise = np.random.default_rng(0).normal(size=(400, 1)) * 0.1
    found = squared_length_interval(np.zeros(1), noise, 100)
    assert found.low == 0
    assert found.high == pytest.approx(0.2**2, rel=0.2)


def test_a_replicate_that_does_not_vary_says_nothing_new():
    rates = np.array([[0.0, 0.0], [1.0, 1.0]] * 20)
    counts = CellCounts(
        successes=np.array([1.0, 3.0]), trials=np.array([4.0, 4.0]), resampled=Resampled(rates=rates, n_clusters=4)
    )
    assert eta_squared_between("deployment", counts).intervals["deployment"] == pytest.approx((0.25, 0.25))


def test_one_deployment_explains_nothing():
    counts = CellCounts(successes=np.array([1.0]), trials=np.array([4.0]))
    assert eta_squared_between("deployment", counts).effects == {"deployment": Insufficient(reason="one deployment")}


def counts_of(conditions, *, only=None):
    rng = np.random.default_rng(0)
    trials = np.array([20.0 if only is None or condition in only else 0.0 for condition in conditions])
    return ConditionCounts(
        conditions=conditions, successes=np.floor(rng.uniform(0.1, 0.9, len(trials)) * trials), trials=trials
    )


def test_a_crossed_design_is_found_beside_one_factor_at_a_time():
    both = sorted({*oat_conditions(), *factorial_conditions()})
    assert [both[index] for index in crossing(both)] == sorted(factorial_conditions())
    counts = counts_of(both)
    places = [both.index(condition) for condition in factorial_conditions()]
    alone = ConditionCounts(
        conditions=factorial_conditions(), successes=counts.successes[places], trials=counts.trials[places]
    )
    assert factorial_shares(counts).effects == pytest.approx(factorial_shares(alone).effects)


@pytest.mark.parametrize(
    ("levels", "crossed"),
    [
        ((("BJ", "CTO"), ("self",), ("none",), ("neutral", "skeptical")), 4),  # the least there is
        ((("CTO", "SC"), ("self",), ("none",), ("neutral", "skeptical")), 4),  # without the baseline task
        ((("CTO", "SC"), ("media", "others"), ("none",), ("negative", "skeptical")), 8),  # without any baseline
    ],
)
def test_crossings_of_any_levels_are_found(levels, crossed):
    own = list(product(*levels))
    assert len(crossing(own)) == crossed
    both = sorted({*own, *oat_conditions()})
    assert {both[index] for index in crossing(both)} >= set(own)


def test_conditions_that_cross_nowhere_are_no_factorial():
    oat = oat_conditions()
    assert crossing(oat) == []
    assert factorial_shares(counts_of(oat)) == Insufficient(reason="not a factorial: 1275 of 1296 cells are empty")
    lacking = factorial_conditions()[1:]
    assert crossing(lacking) == []
    assert factorial_shares(counts_of(lacking)) == Insufficient(reason="not a factorial: 1 of 24 cells are empty")
    full = factorial_conditions()
    assert factorial_shares(counts_of(full, only=full[1:])) == Insufficient(
        reason="not a factorial: 1 of 24 cells are empty"
    )


def test_one_condition_is_no_factorial():
    assert factorial_shares(counts_of([BASELINE])) == Insufficient(reason="one condition")
    assert eta_squared_oat(counts_of([BASELINE])).effects["task"] == Insufficient(reason="one level")
