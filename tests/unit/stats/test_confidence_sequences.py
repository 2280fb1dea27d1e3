"""Intervals that hold at all times at once."""

import numpy as np

from auditor.stats.sequential import asymptotic_sequence


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
