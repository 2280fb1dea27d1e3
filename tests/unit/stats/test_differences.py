"""Differences of means: against statsmodels and scipy, and where nothing varies."""

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from support.lazy_imports import ImportedLater

from auditor.stats.differences import paired, sign_test, t_interval, welch

sm = ImportedLater("statsmodels.api")


@settings(deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 40), st.integers(2, 40))
def test_welch_is_that_of_statsmodels(seed, n, m):
    rng = np.random.default_rng(seed)
    one, other = rng.normal(1, 2, n), rng.normal(0, 1, m)
    theirs = sm.stats.CompareMeans(sm.stats.DescrStatsW(one), sm.stats.DescrStatsW(other))
    found = welch(one, other)
    assert found.se == pytest.approx(theirs.std_meandiff_separatevar)
    assert found.df == pytest.approx(theirs.dof_satt())
    assert min(n, m) - 1 - 1e-9 <= found.df <= n + m - 2 + 1e-9
    found_interval = t_interval(found)
    assert (found_interval.low, found_interval.high) == pytest.approx(theirs.tconfint_diff(usevar="unequal"))


@given(st.integers(0, 2**32), st.integers(2, 40))
def test_paired_is_the_one_sample_test_of_scipy(seed, n):
    values = np.random.default_rng(seed).normal(1, 2, n)
    found = paired(values)
    theirs = stats.ttest_1samp(values, 0.0)
    assert found.value / found.se == pytest.approx(theirs.statistic)
    assert found.df == theirs.df


@given(st.floats(-1e6, 1e6), st.integers(2, 100))
def test_values_that_do_not_vary_have_no_error_whatever_rounding_does(value, n):
    same = np.full(n, value)
    assert paired(same).se == 0
    assert welch(same, np.array([1.0, 1.0, 1.0])).se == 0


def test_one_value_is_not_enough():
    with pytest.raises(ValueError, match="two pairs"):
        paired(np.array([1.0]))
    with pytest.raises(ValueError, match="each side"):
        welch(np.array([1.0]), np.array([1.0, 2.0]))


@given(st.integers(0, 40), st.integers(0, 40))
def test_the_sign_test_counts_all_orders_of_gains_and_losses(one_way, other_way):
    n = one_way + other_way
    as_many, as_uneven = (sum(comb(n, k) for k in range(at, n + 1)) / 2**n for at in (one_way, max(one_way, other_way)))
    assert sign_test(one_way, other_way) == pytest.approx(as_many)
    assert sign_test(one_way, other_way, alternative="two-sided") == pytest.approx(min(1.0, 2 * as_uneven))
