"""Intervals against closed forms, against statsmodels and scipy, and against what they must never do."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta
from support.lazy_imports import ImportedLater

from auditor.stats.intervals import (
    _strata,
    cluster_rate,
    design_effect_wilson,
    difference_interval,
    logit_cluster_interval,
    rare_rate_bounds,
    wilson_interval,
)

sm = ImportedLater("statsmodels.api")


@pytest.mark.parametrize(("k", "n"), [(0, 10), (1, 30), (15, 30), (29, 30), (30, 30), (123, 1000)])
@pytest.mark.parametrize("conf", [0.9, 0.95, 0.99])
def test_wilson_is_statsmodels_wilson(k, n, conf):
    low, high = sm.stats.proportion_confint(k, n, alpha=1 - conf, method="wilson")
    interval = wilson_interval(k, n, conf)
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=1e-12)


@pytest.mark.parametrize(("k", "n"), [(-1, 10), (11, 10), (0, 0)])
def test_wilson_refuses_what_is_no_share(k, n):
    with pytest.raises(ValueError, match="not a share"):
        wilson_interval(k, n)


def test_linearised_error_of_single_responses_is_the_binomial_one():
    """p = .3 of 10: V = G/(G-1) * 10 * .21 / 100 = .21 / 9."""
    rate = cluster_rate(np.array([1.0] * 3 + [0.0] * 7), np.ones(10))
    assert rate.value == pytest.approx(0.3)
    assert rate.se == pytest.approx(np.sqrt(0.21 / 9))
    assert rate.deff == pytest.approx(10 / 9)


def test_linearised_error_is_statsmodels_cluster_robust_error():
    rng = np.random.default_rng(0)
    size = rng.integers(1, 9, 40)
    own = rng.beta(1, 2, 40)
    cluster = np.repeat(np.arange(40), size)
    outcome = (rng.random(len(cluster)) < own[cluster]).astype(float)
    fit = sm.OLS(outcome, np.ones(len(outcome))).fit(
        cov_type="cluster", cov_kwds={"groups": cluster, "use_correction": False}
    )
    rate = cluster_rate(np.bincount(cluster, outcome), size.astype(float))
    assert rate.value == pytest.approx(fit.params[0])
    assert rate.se == pytest.approx(fit.bse[0] * np.sqrt(40 / 39))


def test_clusters_without_trials_do_not_count():
    y, n = np.array([1.0, 0, 2, 0]), np.array([2.0, 0, 3, 1])
    assert cluster_rate(y, n) == cluster_rate(y[n > 0], n[n > 0])
    assert cluster_rate(y, n).n_clusters == 3


def test_an_empty_base_is_refused():
    with pytest.raises(ValueError, match="no trials"):
        cluster_rate(np.zeros(3), np.zeros(3))
    with pytest.raises(ValueError, match="no trials"):
        rare_rate_bounds(np.zeros(3), np.zeros(3), seed=0)


def test_clustering_widens_the_interval():
    """Half of 40 statements endorse in all of 25 responses, half in none: 40 answers, not 1,000."""
    y, n = np.repeat([25.0, 0.0], 20), np.full(40, 25.0)
    clustered, naive = design_effect_wilson(y, n), wilson_interval(500, 1000)
    assert clustered.high - clustered.low > 4 * (naive.high - naive.low)
    # n_eff = .25 / (40/39 * 40 * (12.5/1000)^2) = 39
    assert clustered.low == pytest.approx(design_effect_wilson(np.repeat([1.0, 0.0], 20), np.ones(40)).low)


def test_effective_size_never_exceeds_the_responses():
    """Statements that all answer one of two: no variance between them, yet not certainty."""
    y, n = np.full(20, 1.0), np.full(20, 2.0)
    interval = design_effect_wilson(y, n)
    assert interval.high - interval.low > 0.2
    assert logit_cluster_interval(y, n).high - logit_cluster_interval(y, n).low > 0.2


def test_one_cluster_says_nothing_of_the_spread():
    assert design_effect_wilson(np.array([3.0]), np.array([9.0])).low == 0
    assert design_effect_wilson(np.array([3.0]), np.array([9.0])).high == 1


@pytest.mark.parametrize(("k", "n"), [(0, 60), (1, 100), (3, 100), (99, 100), (100, 100)])
def test_rare_bounds_of_single_responses_are_clopper_pearson(k, n):
    y = np.concatenate([np.ones(k), np.zeros(n - k)])
    bounds = rare_rate_bounds(y, np.ones(n), seed=1, n_draws=40_000)
    low = beta.ppf(0.025, k, n - k + 1) if k else 0.0
    high = beta.ppf(0.975, k + 1, n - k) if k < n else 1.0
    assert (bounds.low, bounds.high) == pytest.approx((low, high), abs=0.003)


def test_rare_bounds_of_many_clusters_go_by_kinds_of_cluster():
    """Over a thousand clusters equal ones share a weight; the distribution is the same."""
    y = np.concatenate([np.ones(20), np.zeros(1480)])
    bounds = rare_rate_bounds(y, np.ones(1500), seed=1, n_draws=40_000)
    assert bounds.low == pytest.approx(beta.ppf(0.025, 20, 1481), abs=0.0005)
    assert bounds.high == pytest.approx(beta.ppf(0.975, 21, 1480), abs=0.0005)


def test_same_seed_same_bounds():
    y, n = np.array([1.0, 0, 0, 2] * 10), np.full(40, 9.0)
    assert rare_rate_bounds(y, n, seed=3) == rare_rate_bounds(y, n, seed=3)
    assert rare_rate_bounds(y, n, seed=3) != rare_rate_bounds(y, n, seed=4)


counts = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=40).filter(
    lambda pairs: sum(1 for y, extra in pairs if y + extra) >= 2
)


@given(counts)
def test_intervals_hold_their_estimate_and_stay_in_range(pairs):
    y = np.array([float(a) for a, _ in pairs])
    n = np.array([float(a + b) for a, b in pairs])
    p = y.sum() / n.sum()
    for interval in (design_effect_wilson(y, n), logit_cluster_interval(y, n)):
        assert 0 <= interval.low <= p + 1e-12
        assert p - 1e-12 <= interval.high <= 1
    d = 2 * y - n
    signed = difference_interval(d, n, float(n.sum()))
    assert -1 <= signed.low <= d.sum() / n.sum() + 1e-12
    assert d.sum() / n.sum() - 1e-12 <= signed.high <= 1


@given(counts)
def test_swapping_endorsement_mirrors_the_interval(pairs):
    y = np.array([float(a) for a, _ in pairs])
    n = np.array([float(a + b) for a, b in pairs])
    for method in (design_effect_wilson, logit_cluster_interval):
        one, other = method(y, n), method(n - y, n)
        assert (one.low, one.high) == pytest.approx((1 - other.high, 1 - other.low), abs=1e-9)


@given(counts, st.randoms(use_true_random=False))
def test_order_of_clusters_does_not_matter(pairs, random):
    shuffled = list(pairs)
    random.shuffle(shuffled)
    results = []
    for each in (pairs, shuffled):
        y, n = np.array([float(a) for a, _ in each]), np.array([float(a + b) for a, b in each])
        results.append(design_effect_wilson(y, n))
    assert (results[0].low, results[0].high) == pytest.approx((results[1].low, results[1].high), abs=1e-12)


def test_weights_of_the_added_cluster_are_spread_over_the_whole_exponential():
    weights = _strata(1000)
    assert weights.min() == pytest.approx(1 / 2000, rel=0.01)
    assert weights.max() == pytest.approx(np.log(2000), rel=1e-9)
    assert weights.mean() == pytest.approx(1, rel=0.001)
