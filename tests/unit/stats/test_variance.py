"""Shares of variance: against statsmodels' analysis of variance on the rows themselves, and by hand."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.lazy_imports import ImportedLater

from auditor.stats.variance import eta_squared_factorial, eta_squared_oneway

sm = ImportedLater("statsmodels.api")


def rows_of(successes, trials):
    """One row a response."""
    out = []
    for place in np.ndindex(*trials.shape):
        out += [(*place, 1.0 if index < successes[place] else 0.0) for index in range(int(trials[place]))]
    names = [f"f{axis}" for axis in range(trials.ndim)]
    frame = pd.DataFrame(out, columns=[*names, "y"])
    return frame.astype(dict.fromkeys(names, "category"))


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**32))
def test_unbalanced_factorial_is_statsmodels_type_two(seed):
    rng = np.random.default_rng(seed)
    trials = rng.integers(2, 9, (3, 2, 2))
    successes = rng.binomial(trials, rng.uniform(0.1, 0.9, trials.shape))
    shares = eta_squared_factorial(successes, trials)
    if shares is None:
        return
    frame = rows_of(successes, trials)
    total = float(((frame.y - frame.y.mean()) ** 2).sum())
    table = sm.stats.anova_lm(sm.formula.ols("y ~ f0 + f1 + f2 + f0:f1 + f0:f2 + f1:f2", frame).fit(), typ=2)
    for effect, share in shares.items():
        name = ":".join(f"f{axis}" for axis in effect)
        assert share == pytest.approx(float(table.loc[name, "sum_sq"]) / total, abs=1e-9)


def test_balanced_factorial_is_the_classical_decomposition():
    """Between-level sums of squares by hand: rates .2 .4 / .6 .8 of ten each, total 40 * .25 = 10."""
    shares = eta_squared_factorial([[2, 4], [6, 8]], [[10, 10], [10, 10]])
    # rows: means .3, .7; 20 * (.2^2 + .2^2) = 1.6; columns: means .4, .6; 20 * (.1^2 + .1^2) = .4
    assert shares == pytest.approx({(0,): 0.16, (1,): 0.04, (0, 1): 0.0}, abs=1e-12)


def test_an_empty_cell_is_an_error():
    with pytest.raises(ValueError, match="empty cell"):
        eta_squared_factorial([[1, 1], [1, 0]], [[2, 2], [2, 0]])
    with pytest.raises(ValueError, match="empty cell"):
        eta_squared_oneway([1, 0], [2, 0])


def test_an_outcome_that_does_not_vary_has_no_shares():
    assert eta_squared_oneway([0, 0], [5, 5]) is None
    assert eta_squared_factorial([[4, 4], [4, 4]], [[4, 4], [4, 4]]) is None


def test_one_level_explains_nothing():
    with pytest.raises(ValueError, match="one level"):
        eta_squared_oneway([1], [2])


def test_a_factor_with_one_level_has_no_effect():
    shares = eta_squared_factorial([[1, 3]], [[4, 4]])
    assert shares == pytest.approx({(1,): 0.25})


levels = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 30)), min_size=2, max_size=6)


@given(levels)
def test_oneway_lies_in_the_unit_interval_and_ignores_order(pairs):
    y = [min(a, n) for a, n in pairs]
    n = [n for _, n in pairs]
    share = eta_squared_oneway(y, n)
    assert share is None or -1e-12 <= share <= 1 + 1e-12
    assert eta_squared_oneway(y[::-1], n[::-1]) == (None if share is None else pytest.approx(share, abs=1e-12))


@given(levels)
def test_splitting_a_level_in_two_cannot_explain_less(pairs):
    y, n = [min(a, n) for a, n in pairs], [n for _, n in pairs]
    share = eta_squared_oneway(y, n)
    if share is None or n[0] < 2:
        return
    half = n[0] // 2
    first = min(y[0], half)
    finer = eta_squared_oneway([first, y[0] - first, *y[1:]], [half, n[0] - half, *n[1:]])
    assert finer >= share - 1e-12
