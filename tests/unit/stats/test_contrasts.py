"""A weighted sum of rates over common clusters: its value, its bounds, and an interval that always has a width."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.stats.contrasts import contrast


@st.composite
def counted(draw):
    clusters, rates = draw(st.integers(2, 40)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = rng.integers(1, 6, size=(clusters, rates)).astype(float)
    y = rng.binomial(n.astype(int), draw(st.floats(0, 1))).astype(float)
    return y, n, rng.uniform(-1, 1, size=rates)


@given(counted())
def test_value_interval_and_possible_values(given_counts):
    y, n, weights = given_counts
    found = contrast(y, n, weights)
    interval = found.interval()
    assert found.value == pytest.approx(weights @ (y.sum(axis=0) / n.sum(axis=0)))
    assert found.lowest == pytest.approx(weights[weights < 0].sum())
    assert found.highest == pytest.approx(weights[weights > 0].sum())
    assert found.lowest - 1e-12 <= interval.low <= found.value <= interval.high <= found.highest + 1e-12
    wider = found.interval(0.99)
    assert wider.low <= interval.low <= interval.high <= wider.high


@given(counted())
def test_the_negative_of_a_contrast_and_the_complement_of_its_events(given_counts):
    y, n, weights = given_counts
    interval, negative = contrast(y, n, weights).interval(), contrast(y, n, -weights).interval()
    assert (negative.low, negative.high) == pytest.approx((-interval.high, -interval.low))
    complement = contrast(n - y, n, weights).interval()
    total = weights.sum()
    assert (complement.low, complement.high) == pytest.approx((total - interval.high, total - interval.low))


def test_signed_events_are_twice_the_rate_less_one():
    rng = np.random.default_rng(0)
    n = np.full((30, 1), 3.0)
    y = rng.binomial(3, 0.4, size=(30, 1)).astype(float)
    rate, score = contrast(y, n, np.ones(1)).interval(), contrast(2 * y - n, n, np.ones(1), ends=(-1, 1)).interval()
    assert (score.low, score.high) == pytest.approx((2 * rate.low - 1, 2 * rate.high - 1))


def test_answers_that_never_vary_have_an_interval():
    interval = contrast(np.ones((100, 2)), np.ones((100, 2)), np.array([1.0, -1.0])).interval()
    assert interval.low < 0 < interval.high < 0.05


def test_no_trials_and_one_cluster():
    with pytest.raises(ValueError, match="without a trial"):
        contrast(np.zeros((5, 1)), np.zeros((5, 1)), np.ones(1))
    with pytest.raises(ValueError, match="two clusters"):
        contrast(np.ones((1, 1)), np.ones((1, 1)), np.ones(1))
