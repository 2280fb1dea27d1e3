"""Intervals that hold at all times at once."""

import numpy as np
import pytest

from auditor.stats.confidence_sequences import asymptotic_sequence, betting_sequence


def test_watched_all_the_time_the_asymptotic_one_misses_as_seldom_as_it_says():
    rng = np.random.default_rng(5)
    values = rng.normal(0.3, 1.0, (400, 300))
    n = np.arange(1, 301)
    means = values.cumsum(axis=1) / n
    sds = np.sqrt(np.maximum((values**2).cumsum(axis=1) / n - means**2, 0) * n / np.maximum(n - 1, 1))
    missed, naive = 0, 0
    for row in range(400):
        found = [asymptotic_sequence(k, means[row, k - 1], sds[row, k - 1]) for k in range(20, 301, 5)]
        missed += not all(one.contains(0.3) for one in found)
        naive += any(abs(means[row, k - 1] - 0.3) > 1.96 * sds[row, k - 1] / k**0.5 for k in range(20, 301, 5))
    assert missed / 400 <= 0.05
    assert naive / 400 > 0.15


@pytest.mark.parametrize("rate", [0.03, 0.5, 0.9])
def test_the_betting_one_holds_for_bounded_values_from_the_first_on(rate):
    rng = np.random.default_rng(7)
    missed = 0
    for _ in range(200):
        values = (rng.random(150) < rate).astype(float)
        missed += not all(betting_sequence(values[:k]).contains(rate) for k in (1, 3, 10, 30, 75, 150))
    assert missed / 200 <= 0.05


def test_the_betting_one_narrows_and_knows_nothing_at_first():
    rng = np.random.default_rng(0)
    values = rng.beta(2, 5, 800)
    first, later = betting_sequence(values[:0]), betting_sequence(values)
    assert (first.low, first.high) == (0.0, 1.0)
    assert later.high - later.low < 0.09
    with pytest.raises(ValueError, match="outside"):
        betting_sequence(np.array([1.2]))
