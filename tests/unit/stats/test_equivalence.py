"""Equivalence tests: against statsmodels, their symmetries, and that no difference is both."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.lazy_imports import ImportedLater

from auditor.stats.differences import tost

sm = ImportedLater("statsmodels.api")

differences = st.floats(-5, 5)
positive = st.floats(0.05, 5)


@settings(deadline=None)
@given(st.integers(0, 2**32), positive)
def test_one_sided_tests_are_those_of_statsmodels(seed, margin):
    rng = np.random.default_rng(seed)
    target, peers = sm.stats.DescrStatsW(rng.normal(1, 2, 30)), sm.stats.DescrStatsW(rng.normal(0, 1, 90))
    both = sm.stats.CompareMeans(target, peers)
    _, (lower, upper) = both.ttost_ind(-margin, margin, usevar="unequal")
    found = tost(target.mean - peers.mean, both.std_meandiff_separatevar, both.dof_satt(), margin)
    assert (found.t_lower, found.p_lower) == pytest.approx(lower[:2])
    assert (found.t_upper, found.p_upper) == pytest.approx(upper[:2])


@given(differences, positive, st.floats(1, 200), positive)
def test_direction_does_not_matter(difference, se, df, margin):
    one, other = tost(difference, se, df, margin), tost(-difference, se, df, margin)
    assert (one.t_lower, one.p_lower) == (-other.t_upper, other.p_upper)
    assert (one.p_different, one.verdict) == (other.p_different, other.verdict)


@given(differences, positive, st.floats(1, 200), positive)
def test_equivalent_lies_within_the_margin_and_different_beyond(difference, se, df, margin):
    verdict = tost(difference, se, df, margin).verdict
    assert verdict != "equivalent" or abs(difference) < margin
    assert verdict != "different" or abs(difference) > margin


#: Relative Bias A.4.3: difference, standard error, df, margin; printed t values; their rounding; what is concluded.
PRINTED = [
    ((0.0287, 0.0022, 100.43, 0.0035), (14.61, 11.47), 0.4, "different"),
    ((4.41, 0.1585, 107.08, 0.2171), (29.2, 26.46), 0.05, "different"),
    ((0.08, 0.1264, 108.73, 0.4828), (4.46, -3.17), 0.05, "equivalent"),
    ((0.21, 0.1192, 106.15, 0.4202), (5.25, -1.8), 0.05, "equivalent"),
    ((2.11, 0.3364, 52.2, 0.9739), (9.17, 3.38), 0.05, "different"),
    ((1.91, 0.3832, 51.44, 0.7469), (6.94, 3.04), 0.05, "different"),
]


@pytest.mark.parametrize(("printed", "t_values", "rounding", "verdict"), PRINTED)
def test_published_tests(printed, t_values, rounding, verdict):
    difference, se, df, margin = printed
    found = tost(difference, se, df, margin)
    assert (found.t_lower, found.t_upper) == pytest.approx(t_values, abs=rounding)
    assert found.verdict == verdict


def test_a_wide_interval_says_nothing():
    assert tost(0.0, 1.0, 50, 0.5).verdict == "inconclusive"
    assert tost(0.6, 1.0, 50, 0.5).verdict == "inconclusive"
    assert tost(9.0, 1.0, 50, 0.5).verdict == "different"


@pytest.mark.parametrize("given_", [(0.0, 10.0, 1.0), (1.0, 0.0, 1.0), (1.0, 10.0, 0.0), (float("nan"), 10.0, 1.0)])
def test_what_cannot_be_tested_is_refused(given_):
    with pytest.raises(ValueError, match="positive"):
        tost(0.1, *given_)
