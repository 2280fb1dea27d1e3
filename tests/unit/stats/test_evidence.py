"""Bets against "nothing has changed": on average they win nothing, and what they own together never surprises."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from auditor.stats.evidence import (
    NOTHING,
    STAKES,
    log_mean_exp,
    log_threshold,
    rank_log_factors,
    shift_log_factors,
    smoothed_rank,
    sr_update,
)

rates = st.floats(0, 1)


@given(arrays(np.float64, st.integers(1, 5), elements=rates), st.floats(0, 0.2))
def test_a_bet_on_statements_wins_nothing_on_average_while_their_mean_is_allowed(expected, allowance):
    """Exact over all outcomes: every statement a coin of its own rate, the reference off by up to the allowance."""
    truth = np.clip(expected + allowance, 0, 1)
    for sign in (1, -1):
        truth = np.clip(expected + sign * allowance, 0, 1)
        mean = np.zeros((2, len(STAKES)))
        for outcome in product((0.0, 1.0), repeat=len(expected)):
            chance = np.prod(np.where(outcome, truth, 1 - truth))
            mean += chance * np.exp(shift_log_factors(np.array(outcome) - expected, np.array(allowance)))
        assert (mean <= 1 + 1e-9).all()


@given(st.permutations(range(6)), st.integers(0, 5))
def test_the_order_of_statements_does_not_matter_and_one_without_a_value_is_no_bet(order, absent):
    values = np.array([0.5, -0.25, 0.0, 1.0, -1.0, 0.125])
    growth = shift_log_factors(values[order], np.array(0.01))
    np.testing.assert_allclose(growth, shift_log_factors(values, np.array(0.01)), rtol=1e-12)
    without = np.where(np.arange(6) == absent, np.nan, values)
    kept = shift_log_factors(np.delete(values, absent), np.array(0.01))
    np.testing.assert_allclose(shift_log_factors(without, np.array(0.01)), kept, rtol=1e-12)


def test_bets_beyond_their_bound_are_refused():
    with pytest.raises(ValueError, match="beyond 1"):
        shift_log_factors(np.array([1.5]), np.array(0.0))
    with pytest.raises(ValueError, match="allowance"):
        shift_log_factors(np.array([0.5]), np.array(0.3))


def test_a_bet_on_a_uniform_rank_wins_nothing_on_average():
    # The density near 0 is as steep as p^-.9: the sum over midpoints is a little short of 1, never above.
    middles = (np.arange(2_000_000) + 0.5) / 2_000_000
    means = np.exp(rank_log_factors(middles)).mean(axis=0)
    assert (means <= 1 + 1e-9).all()
    assert (means > 0.7).all()


@given(st.lists(st.sampled_from([0.1, 0.2, 0.3]), min_size=1, max_size=6), st.floats(0, 0.999))
def test_the_ranks_of_exchangeable_days_are_uniform(values, uniform):
    """Exact: over which of the values is the newest, the smoothed ranks' intervals tile [0, 1]."""
    days = np.array(values)
    edges = []
    for newest in range(len(days)):
        earlier = np.delete(days, newest)
        low, high = (float(smoothed_rank(earlier, days[newest], np.array(u))) for u in (0.0, 1.0))
        assert low <= float(smoothed_rank(earlier, days[newest], np.array(uniform))) <= high
        edges.append((low, high, high - low))
    # Each point of [0, 1) is covered with weight 1 by the densities 1 / width, averaged over the newest.
    for point in np.linspace(0.003, 0.997, 23):
        density = np.mean([(low <= point < high) / width for low, high, width in edges])
        assert density == pytest.approx(1.0)


def test_evidence_reaches_its_threshold_no_more_often_than_promised():
    """20,000 series of fair bets that double or lose nearly all, watched for 50 days."""
    rng = np.random.default_rng(3)
    evidence = np.full(20_000, NOTHING)
    ever = np.zeros(20_000, dtype=bool)
    for _ in range(50):
        evidence = sr_update(evidence, np.log(np.where(rng.random(20_000) < 0.5, 1.9, 0.1)))
        ever |= evidence >= log_threshold(50, 0.2)
    assert 0.005 < ever.mean() <= 0.2


def test_kinds_of_bets_are_averaged_and_series_share_the_promise():
    assert log_mean_exp(np.log(np.array([[[1.0, 3.0], [5.0, 7.0]]])), 2).tolist() == pytest.approx([np.log(4.0)])
    assert log_threshold(90, 0.05, 4) == pytest.approx(np.log(4 * 90 / 0.05))
