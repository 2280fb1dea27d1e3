"""Kappa and rank correlation: by hand, against scipy and statsmodels, ties and constants included."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy.stats import permutation_test, spearmanr
from support.lazy_imports import ImportedLater

from auditor.stats.agreement import cohen_kappa, confusion_matrix
from auditor.stats.ranks import (
    rank_probabilities,
    spearman,
    spearman_leave_one_out,
    spearman_rho,
    spearman_rhos,
)

sm = ImportedLater("statsmodels.api")


@settings(deadline=None)
@given(st.integers(0, 2**32))
def test_kappa_is_statsmodels_kappa(seed):
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 20, (4, 4)) + np.diag(rng.integers(1, 30, 4))
    assert cohen_kappa(table) == pytest.approx(sm.stats.cohens_kappa(table).kappa, abs=1e-12)


def test_kappa_of_nothing_or_of_one_label_is_absent():
    assert cohen_kappa(np.zeros((3, 3))) is None
    assert cohen_kappa(np.diag([9, 0, 0])) is None


def test_kappa_of_independent_raters_is_zero():
    assert cohen_kappa(np.outer([1, 3], [2, 2])) == pytest.approx(0)


def test_confusion_counts_pairs():
    first, second = np.array([0, 0, 2, 1]), np.array([0, 1, 2, 1])
    assert confusion_matrix(first, second, 3).tolist() == [[1, 1, 0], [0, 1, 0], [0, 0, 1]]


ratings = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=3, max_size=6)


@settings(deadline=None, max_examples=15)
@given(ratings)
def test_exact_p_counts_every_order_ties_included(pairs):
    x, y = (np.array(side, dtype=float) for side in zip(*pairs, strict=True))
    result = spearman(x, y)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert result is None
        return
    reference = permutation_test(
        (x,), lambda a: spearmanr(a, y).statistic, permutation_type="pairings", n_resamples=np.inf
    )
    assert result.rho == pytest.approx(reference.statistic)
    two_sided = np.mean(np.abs(reference.null_distribution) >= abs(reference.statistic) - 1e-9)
    assert result.p == pytest.approx(two_sided)


def test_ten_items_use_t():
    rng = np.random.default_rng(1)
    x, y = rng.random(10), rng.random(10)
    result, reference = spearman(x, y), spearmanr(x, y)
    assert (result.rho, result.p, result.p_method) == (
        pytest.approx(reference.statistic),
        pytest.approx(reference.pvalue),
        "t",
    )


def test_nine_items_are_still_exact():
    x = np.arange(9.0)
    result = spearman(x, x[::-1])
    assert (result.rho, result.p_method) == (-1.0, "exact")
    assert result.p == pytest.approx(2 / 362_880)


def test_leaving_one_out_that_makes_a_side_constant_is_absent():
    assert spearman_leave_one_out(np.array([1.0, 1, 1, 2]), np.array([1.0, 2, 3, 4])) is None


def test_too_few_items_are_refused():
    with pytest.raises(ValueError, match="three"):
        spearman(np.ones(2), np.ones(2))
    with pytest.raises(ValueError, match="four"):
        spearman_leave_one_out(np.arange(3.0), np.arange(3.0))


@settings(deadline=None)
@given(
    arrays(np.float64, array_shapes(min_dims=2, max_dims=2, min_side=3, max_side=12), elements=st.integers(0, 4)),
)
def test_correlations_of_rows_are_those_of_each_row(rows):
    found = spearman_rhos(rows, rows[-1])
    for rho, row in zip(found.tolist(), rows, strict=True):
        if len(set(row)) == 1 or len(set(rows[-1])) == 1:
            assert np.isnan(rho)
            assert spearman_rho(row, rows[-1]) is None
        else:
            assert rho == spearman_rho(row, rows[-1]) == pytest.approx(spearmanr(row, rows[-1]).statistic)


@settings(deadline=None)
@given(
    arrays(
        np.float64, array_shapes(min_dims=2, max_dims=2, max_side=9), elements=st.integers(0, 4).map(lambda k: k / 8)
    )
)
def test_ranks_of_replicates_are_those_of_all_pairs(replicates):
    """An item's rank is one more than the items above it and half of those level with it, rounded down."""
    draws, items = replicates.shape
    expected = np.zeros((items, items))
    for row in replicates:
        for item in range(items):
            expected[item, (row > row[item]).sum() + ((row == row[item]).sum() - 1) // 2] += 1
    assert rank_probabilities(replicates).tolist() == (expected / draws).tolist()


def test_ranks_of_many_items_take_no_memory_for_each_pair():
    """500 replicates of 300 items have 45 million pairs; what is held stays near the 150,000 values."""
    replicates = np.random.default_rng(0).random((500, 300))
    tracemalloc.start()
    rank_probabilities(replicates)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 * replicates.nbytes


def test_ranks_of_replicates():
    """First item leads in three of four draws; the tie gives it the better of the shared ranks."""
    table = rank_probabilities(np.array([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.5, 0.5]]))
    assert table.tolist() == [[0.75, 0.25], [0.5, 0.5]]
