"""Intervals that hold at once: width, duality with p, and how often all of them do hold."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from auditor.stats.max_t import as_t, simultaneous_intervals


def deviates(k, *, shared=0.0, n_boot=4000, seed=0):
    """Replicates about 0 with deviation 1; ``shared`` is their correlation."""
    rng = np.random.default_rng(seed)
    common = rng.standard_normal((n_boot, 1))
    return np.sqrt(shared) * common + np.sqrt(1 - shared) * rng.standard_normal((n_boot, k))


def test_independent_estimates_are_as_wide_as_sidak_has_them():
    """Ten of them, many clusters: the normal quantile at .95 ** (1 / 10), two-sided, is 2.80."""
    out = simultaneous_intervals(np.zeros(10), deviates(10), 1_000_000)
    assert out.high == pytest.approx(np.full(10, stats.norm.isf((1 - 0.95**0.1) / 2)), rel=0.03)


def test_estimates_that_move_together_need_no_more_than_one():
    one = simultaneous_intervals(np.zeros(1), deviates(1), 1_000_000).high[0]
    assert simultaneous_intervals(np.zeros(10), deviates(10, shared=1.0), 1_000_000).high == pytest.approx(one, rel=0.1)


def test_few_clusters_widen_their_own_estimate_alone():
    replicates = np.repeat(deviates(1), 2, axis=1)
    out = simultaneous_intervals(np.zeros(2), replicates, np.array([15, 1_000_000]))
    # The normal 1.96 or so becomes t(14)'s 2.145, and the spread sqrt(15 / 14) of what the bootstrap says.
    assert out.high[0] / out.high[1] == pytest.approx(2.145 / 1.960 * np.sqrt(15 / 14), rel=0.01)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(-5, 5), min_size=1, max_size=6), st.integers(2, 400), st.sampled_from([0.8, 0.95, 0.99]))
def test_p_and_interval_say_the_same(values, clusters, conf):
    value = np.array(values)
    out = simultaneous_intervals(value, value + deviates(len(values), n_boot=200), clusters, conf=conf)
    assert ((out.low > 0) | (out.high < 0)).tolist() == (out.p <= 1 - conf + 1e-12).tolist()
    assert (out.low <= value).all()
    assert (value <= out.high).all()


def test_what_never_varied_is_not_known_exactly():
    """The least error of one in 100 clusters gives about rule of three's 3 %."""
    replicates = np.hstack([np.zeros((1000, 1)), deviates(2, n_boot=1000)])
    out = simultaneous_intervals(np.zeros(3), replicates, 100, least_se=0.01)
    assert 0.02 < out.high[0] < 0.03
    assert simultaneous_intervals(np.zeros(3), replicates, 100).high[0] == 0


def test_too_few_replicates_are_refused():
    with pytest.raises(ValueError, match="19 replicates"):
        simultaneous_intervals(np.zeros(1), np.zeros((19, 1)), 50)


@given(st.floats(0, 30), st.integers(2, 10_000))
def test_t_quantiles_are_wider_and_finite(z, clusters):
    assert z - 1e-9 <= float(as_t(z, clusters)) < np.inf
