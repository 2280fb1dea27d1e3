"""The range of noisy rates: honest at equal truths, and where the truths are far apart."""

import numpy as np
import pytest
from scipy.stats import beta

from auditor.stats.bootstrap import bootstrap_totals
from auditor.stats.spread import range_interval


def ask(rng, truths, *, statements=100, responses=4, icc=0.3):
    """Ask statements that differ, each the same under every condition."""
    a = (1 - icc) / icc
    base = rng.uniform(size=statements)
    own = beta.ppf(base[:, None], np.array(truths) * a, (1 - np.array(truths)) * a)
    y = rng.binomial(responses, own).astype(float)
    n = np.full_like(y, responses)
    return y, n


def interval(y, n, seed, n_boot=400):
    totals = bootstrap_totals(np.hstack([y, n]), n_boot, seed)
    k = y.shape[1]
    return range_interval(y.sum(axis=0) / n.sum(axis=0), totals[:, :k] / totals[:, k:], len(y))


def test_equal_truths_are_not_told_apart():
    """Twelve equal conditions: the observed range is never 0, yet the interval holds 0 in 95 % or more."""
    held, observed = 0, []
    for seed in range(200):
        rng = np.random.default_rng([1, seed])
        spread = interval(*ask(rng, [0.3] * 12), seed)
        held += spread.low == 0
        observed.append(spread.range)
    assert held / 200 >= 0.93
    assert min(observed) > 0.02


@pytest.mark.parametrize("truths", [(0.1, 0.5), (0.1, 0.2, 0.3, 0.5), (0.2, 0.21, 0.22, 0.3)])
def test_true_range_is_covered(truths):
    true = max(truths) - min(truths)
    hits = 0
    for seed in range(200):
        rng = np.random.default_rng([2, seed])
        spread = interval(*ask(rng, truths), seed)
        hits += spread.low <= true <= spread.high
    assert hits / 200 >= 0.92


def test_correction_takes_bias_away():
    """Over equal truths the corrected range is well below the observed one, and never negative."""
    spreads = [interval(*ask(np.random.default_rng([3, seed]), [0.3] * 8), seed) for seed in range(60)]
    assert np.mean([s.corrected for s in spreads]) < 0.75 * np.mean([s.range for s in spreads])
    assert min(s.corrected for s in spreads) >= 0


def test_identical_conditions_have_no_range():
    y = np.repeat(np.array([[1.0], [0], [2], [1]] * 10), 3, axis=1)
    spread = interval(y, np.full_like(y, 4), 0)
    assert (spread.range, spread.low, spread.high) == (0, 0, 0)


def test_one_condition_is_refused():
    with pytest.raises(ValueError, match="two rates"):
        range_interval(np.array([0.5]), np.zeros((10, 1)), 20)
