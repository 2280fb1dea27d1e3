"""Rankings over conditions against scipy's Friedman test, and one reading beside another."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import friedmanchisquare, rankdata, spearmanr

from auditor.stats.ranks import agreement, rank_distribution

tables = st.tuples(st.integers(2, 8), st.integers(3, 6)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.integers(0, 5).map(lambda k: k / 8))
)


@settings(deadline=None)
@given(tables)
def test_concordance_is_friedman_s(rates):
    """Friedman's statistic is C (K - 1) W, ties corrected in both."""
    conditions, items = rates.shape
    found = rank_distribution(rates).concordance
    if (rates == rates[:, :1]).all():
        assert found is None
    else:
        statistic = friedmanchisquare(*rates.T).statistic
        assert conditions * (items - 1) * found == pytest.approx(statistic, abs=1e-9)


@given(tables)
def test_every_condition_gives_each_item_one_rank(rates):
    table = rank_distribution(rates)
    assert table.shares.sum(axis=1) == pytest.approx(1)
    for item in range(rates.shape[1]):
        ranks = [int((row > row[item]).sum() + ((row == row[item]).sum() - 1) // 2) + 1 for row in rates]
        assert (table.best[item], table.worst[item]) == (min(ranks), max(ranks))
        assert table.shares[item, ranks[0] - 1] >= 1 / len(rates) - 1e-12


def test_one_ranking_everywhere_and_its_reverse():
    ranking = np.array([0.1, 0.2, 0.3])
    assert rank_distribution(np.tile(ranking, (5, 1))).concordance == 1
    assert rank_distribution(np.array([ranking, ranking[::-1]])).concordance == 0


def test_tasks_of_table_nine_agree_on_little():
    """BER_sel of four models on CTO, BJ and SC: the third is first on BJ and SC, and third of four on CTO."""
    rates = np.array([[0.645, 0.773, 0.696, 0.733], [0.029, 0.064, 0.241, 0.089], [0.127, 0.219, 0.325, 0.152]])
    table = rank_distribution(rates)
    assert (table.best.tolist(), table.worst.tolist()) == ([4, 1, 1, 2], [4, 3, 3, 3])
    assert table.concordance == pytest.approx(friedmanchisquare(*rates.T).statistic / 9)


pairs = st.integers(3, 8).flatmap(
    lambda k: st.tuples(*[arrays(np.float64, k, elements=st.integers(0, 16).map(lambda v: v / 16))] * 2)
)


@settings(deadline=None)
@given(pairs)
def test_agreement_by_scipy(pair):
    first, second = pair
    found = agreement(first, second)
    assert found.change == np.abs(first - second).max() == abs(first[found.item] - second[found.item])
    assert found.rank_shift == np.abs(rankdata(first) - rankdata(second)).max()
    if len(set(first)) == 1 or len(set(second)) == 1:
        assert found.rho is None
    else:
        assert found.rho == pytest.approx(spearmanr(first, second).statistic)


def test_the_same_reading_moves_nothing():
    values = np.array([0.2, 0.1, 0.4])
    found = agreement(values, values)
    assert (found.rho, found.rank_shift, found.change) == (1, 0, 0)


def test_unknown_rates_are_refused():
    unknown = np.array([0.1, np.nan, 0.2])
    with pytest.raises(ValueError, match="known"):
        rank_distribution(np.array([unknown, unknown]))
    with pytest.raises(ValueError, match="two conditions"):
        rank_distribution(np.array([[0.1, 0.2]]))
    with pytest.raises(ValueError, match="unknown"):
        agreement(np.zeros(3), unknown)
