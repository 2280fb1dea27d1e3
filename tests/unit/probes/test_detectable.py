"""What a plan can show: against the numbers of the design study, by hand, and against a simulation."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from auditor.probes.forecast import FEWEST_STATEMENTS, Assumptions, half_width, smallest_shift

Z = stats.norm.ppf(0.975)


@pytest.mark.parametrize(("m", "n"), [(1, 1978), (4, 3758), (20, 13250)])
def test_half_width_gives_the_sizes_of_the_design_study(m: int, n: int) -> None:
    """MONITORING section 5: +-2 points at p = .29, ICC .3 take n responses with m a statement."""
    assert half_width(n // m, m) == pytest.approx(0.02, rel=0.005)


def test_the_within_statement_variance_is_that_of_the_design_study() -> None:
    """The same page: on a fixed panel 1,385 responses give +-2 points for one pass, and sqrt(2) of it for two."""
    shift = smallest_shift(1385, 1, Assumptions(power=0.5))  # z(power) = 0: the half width of a difference
    assert shift == pytest.approx(0.02 * math.sqrt(2), rel=0.005)


def test_by_hand() -> None:
    # t(99, .975) = 1.9842, z(.8) = .8416; V = 2 x .5 x .5 x .75 / (100 x 2) = .001875
    by_hand = (1.98422 + 0.84162) * math.sqrt(0.001875)
    assert smallest_shift(100, 2, Assumptions(rate=0.5, icc=0.25)) == pytest.approx(by_hand, rel=1e-5)


def test_under_the_floor_there_is_none() -> None:
    assert smallest_shift(FEWEST_STATEMENTS - 1, 10) is None
    assert half_width(FEWEST_STATEMENTS - 1, 10) is None
    assert smallest_shift(FEWEST_STATEMENTS, 10) is not None
    assert smallest_shift(100, 0) is None


@given(st.integers(15, 500), st.integers(1, 20))
def test_more_of_anything_shows_less(statements: int, answers: int) -> None:
    shift = smallest_shift(statements, answers)
    assert shift is not None
    assert 0 < smallest_shift(statements + 1, answers) < shift  # type: ignore[operator]
    assert smallest_shift(statements, answers + 1) < shift  # type: ignore[operator]
    assert smallest_shift(statements, answers, Assumptions(icc=0.0)) > shift  # type: ignore[operator]


def test_a_paired_test_finds_that_shift_four_times_out_of_five() -> None:
    """100 statements of ICC .3, 3 answers each and pass, all shifted by what the plan promises to find."""
    rng = np.random.default_rng(5)
    rate, icc, statements, answers, runs = 0.29, 0.3, 100, 3, 4000
    shift = smallest_shift(statements, answers)
    assert shift is not None
    spread = (1 - icc) / icc
    truth = rng.beta(rate * spread, (1 - rate) * spread, size=(runs, statements))
    # The shift is the same for all statements where it can be; those it would push over 1 make up for others.
    moved = np.clip(truth + shift, 0, 1)
    moved += (truth.mean() + shift - moved.mean()) * (moved < 1)
    first = rng.binomial(answers, truth) / answers
    second = rng.binomial(answers, np.clip(moved, 0, 1)) / answers
    difference = second - first
    t = difference.mean(axis=1) / (difference.std(axis=1, ddof=1) / math.sqrt(statements))
    power = float((np.abs(t) > stats.t.ppf(0.975, statements - 1)).mean())
    # A rate that rises from .29 has a little more variance than assumed.
    assert 0.74 < power < 0.82
