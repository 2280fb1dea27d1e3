"""Cohen's d and h: by hand, against the paper's number, and as distances should behave."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.lazy_imports import ImportedLater

from auditor.stats.differences import cohen_d, cohen_h

sm = ImportedLater("statsmodels.api")

SHARE = st.floats(0, 1)
VALUES = st.lists(st.floats(-100, 100).map(lambda x: round(x, 3)), min_size=2, max_size=8)


def sums_of(*groups):
    return (
        np.array([sum(each) for each in groups]),
        np.array([sum(x * x for x in each) for each in groups]),
        np.array([float(len(each)) for each in groups]),
    )


def answers(rates, n):
    """Sums of n answers, 0 or 1, at each rate."""
    ones = np.array(rates) * n
    return ones, ones, np.full(len(rates), float(n))


def test_published_d_is_neither_that_of_answers_nor_of_models():
    """Negative sentiment against neutral, .279 against .057: the paper prints d = 1.34, h is .63."""
    assert cohen_d(*answers((0.279, 0.057), 1e6)) == pytest.approx(0.62183, abs=1e-5)
    assert cohen_h(0.279, 0.057) == pytest.approx(0.63082, abs=1e-5)
    table_xiii = (0.312, 0.398, 0.267, 0.139), (0.048, 0.187, 0.034, 0.012)
    assert cohen_d(*sums_of(*table_xiii)) == pytest.approx(2.20396, abs=1e-5)


def test_d_pools_by_degrees_of_freedom():
    """(0, 2), variance 2, and (4, 4, 4, 4), variance 0: pooled 2 / 4, d = -3 / sqrt(.5)."""
    assert cohen_d(*sums_of([0, 2], [4, 4, 4, 4])) == pytest.approx(-3 / np.sqrt(0.5))


@given(VALUES, VALUES, st.floats(0.5, 3), st.floats(-10, 10))
def test_d_has_no_unit_and_no_origin(first, second, scale, shift):
    if np.ptp(first) < 0.1:
        return
    plain = cohen_d(*sums_of(first, second))
    moved = cohen_d(*sums_of([scale * x + shift for x in first], [scale * x + shift for x in second]))
    assert moved == pytest.approx(plain, rel=1e-6, abs=1e-6)
    assert cohen_d(*sums_of(second, first)) == pytest.approx(-plain)


def test_groups_that_do_not_vary_have_no_d():
    assert cohen_d(*sums_of([1, 1], [0, 0])) is None


@pytest.mark.parametrize("groups", [([], [1, 2, 3]), ([1], [2])])
def test_d_of_too_little_is_refused(groups):
    with pytest.raises(ValueError, match="two groups"):
        cohen_d(*sums_of(*groups))


@given(SHARE, SHARE)
def test_h_is_statsmodels_s(first, second):
    assert cohen_h(first, second) == pytest.approx(sm.stats.proportion_effectsize(first, second), abs=1e-12)


@given(SHARE, SHARE, SHARE)
def test_h_adds_up_and_knows_no_side(first, between, second):
    whole = cohen_h(first, second)
    assert cohen_h(first, between) + cohen_h(between, second) == pytest.approx(whole, abs=1e-12)
    assert cohen_h(1 - second, 1 - first) == pytest.approx(whole, abs=1e-7)


@pytest.mark.parametrize("share", [-0.01, 1.01, float("nan")])
def test_h_of_no_share_is_refused(share):
    with pytest.raises(ValueError, match="between 0 and 1"):
        cohen_h(share, 0.5)
