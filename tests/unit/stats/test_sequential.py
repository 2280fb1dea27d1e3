"""Bets on a mean difference: what they promise by enumeration, their symmetries, and that they can be carried on."""

import json
from dataclasses import asdict
from itertools import product
from math import exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.domain.estimate import Insufficient
from auditor.stats.sequential import ENOUGH, SequentialTOST, asymptotic_sequence

differences = st.lists(st.floats(-9, 9), max_size=60)


def after(values, margin=0.5, bound=9.0, **state):
    test = SequentialTOST(margin=margin, bound=bound, **state)
    for value in values:
        test.update(value)
    return test


@pytest.mark.parametrize("values", [(-9.0, 9.0), (0.0, 9.0), (-1.0, 2.0)])
@pytest.mark.parametrize(("name", "sign"), [("lower", -1), ("upper", 1), ("above", 1), ("below", -1)])
def test_mean_wealth_at_the_boundary_is_one(values, name, sign):
    """Over all sequences of two values whose mean is the margin: exactly 1, whatever was staked on the way."""
    low, high = (sign * value for value in values)
    p = (sign * 0.5 - low) / (high - low)
    total = 0.0
    for drawn in product((low, high), repeat=9):
        ups = sum(value == high for value in drawn)
        total += p**ups * (1 - p) ** (9 - ups) * exp(getattr(after(drawn), name))
    assert total == pytest.approx(1)


@given(differences)
def test_direction_does_not_matter(values):
    one, other = after(values), after([-value for value in values])
    assert (one.lower, one.above, one.verdict, one.after) == (other.upper, other.below, other.verdict, other.after)


@given(differences, st.floats(0.01, 100))
def test_units_do_not_matter(values, unit):
    one, other = after(values), after([unit * value for value in values], 0.5 * unit, 9.0 * unit)
    assert (one.lower, one.different) == pytest.approx((other.lower, other.different), abs=1e-6)


@given(differences, st.integers(0, 60))
def test_it_goes_on_from_what_was_written_down(values, cut):
    written = json.dumps(asdict(after(values[:cut])))
    resumed = SequentialTOST(**json.loads(written))
    for value in values[cut:]:
        resumed.update(value)
    assert resumed == after(values)


@given(st.lists(st.floats(-2, 2), min_size=2, max_size=80))
def test_it_keeps_mean_and_spread(values):
    found = after(values, 0.1, 2.0)
    assert found.mean == pytest.approx(np.mean(values), abs=1e-9)
    assert found.squares == pytest.approx(np.var(values) * len(values), abs=1e-9)


def test_a_verdict_comes_with_enough_evidence_and_stays():
    large = [5.0] * 30
    found = after([*large, *[0.0] * 900])
    assert (found.verdict, found.after) == ("different", after(large).after)
    first, before = after(large[: found.after]), after(large[: found.after - 1])
    assert first.different >= log(20) > before.different
    assert min(found.lower, found.upper) >= log(20)


def test_either_side_of_the_margin_is_different():
    assert after([5.0] * 30).verdict == after([-5.0] * 30).verdict == "different"


def test_the_sequence_is_that_of_the_values_so_far():
    values = np.random.default_rng(0).normal(0.3, 1, 70)
    assert isinstance(after(values[: ENOUGH - 1]).sequence(), Insufficient)
    expected = asymptotic_sequence(70, values.mean(), values.std(ddof=1))
    found = after(values).sequence()
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert after([0.1] * 70).sequence() == Insufficient(reason="the values do not vary")


@pytest.mark.parametrize("value", [9.1, -9.1, float("nan"), float("inf")])
def test_values_beyond_the_bound_are_refused_and_leave_no_trace(value):
    test = after([1.0])
    before = asdict(test)
    with pytest.raises(ValueError, match="beyond 9"):
        test.update(value)
    assert asdict(test) == before


@pytest.mark.parametrize(
    "wrong", [{"margin": 0.0}, {"margin": 9.0}, {"margin": float("nan")}, {"alpha": 0.0}, {"alpha": 1.0}]
)
def test_settings_that_promise_nothing_are_refused(wrong):
    with pytest.raises(ValueError, match="must be"):
        SequentialTOST(**{"margin": 0.5, "bound": 9.0} | wrong)


@settings(deadline=None)
@given(st.floats(0.01, 8.9))
def test_no_value_within_the_bound_breaks_a_bettor(margin):
    found = after([9.0] * 20 + [-9.0] * 40 + [9.0] * 20, margin)
    assert all(np.isfinite([found.lower, found.upper, found.above, found.below]))
