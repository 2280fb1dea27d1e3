"""Differences judged together: Tukey's against scipy, max-T's by how often it is wrong."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from auditor.stats.comparisons import against, all_pairs, compare_rates, tukey_hsd


def sums_of(groups):
    return (
        np.array([sum(each) for each in groups], dtype=float),
        np.array([sum(x * x for x in each) for each in groups], dtype=float),
        np.array([len(each) for each in groups], dtype=float),
    )


def ask(rng, truths, *, statements=100, responses=4, own=False):
    """Statements that differ, by the same measure under every condition or (``own``) anew under each; rates <= .5."""
    place = rng.uniform(size=(statements, len(truths) if own else 1))
    y = rng.binomial(responses, 2 * np.array(truths) * place).astype(float)
    return y, np.full_like(y, responses)


#: A quantile of each example takes a fifth of a second, here and again in scipy.
@settings(deadline=None, max_examples=min(8, settings.default.max_examples // 5))
@given(st.lists(st.lists(st.integers(-5, 5), min_size=2, max_size=7), min_size=2, max_size=5))
def test_tukey_is_scipy_s(groups):
    sums, squares, n = sums_of(groups)
    if (squares - sums**2 / n).sum() < 1e-9:
        return
    found, expected = tukey_hsd(sums, squares, n), stats.tukey_hsd(*groups)
    bounds = expected.confidence_interval()
    place = (found.first, found.second)
    assert found.difference == pytest.approx(expected.statistic[place])
    assert found.p == pytest.approx(expected.pvalue[place], abs=1e-9)
    assert found.low == pytest.approx(bounds.low[place], rel=1e-6)
    assert found.high == pytest.approx(bounds.high[place], rel=1e-6)


def test_tukey_of_answers_that_never_vary():
    """Equal ones do not differ; 0 and 1 without exception do."""
    out = tukey_hsd(np.array([0.0, 0.0, 9.0]), np.array([0.0, 0.0, 9.0]), np.array([9.0, 9.0, 9.0]))
    assert out.p.tolist() == [1.0, 0.0, 0.0]
    assert (out.low == out.difference).all()


@pytest.mark.parametrize("n", [[5.0], [5.0, 0.0], [1.0, 1.0]])
def test_tukey_of_too_little_is_refused(n):
    with pytest.raises(ValueError, match="two groups"):
        tukey_hsd(np.zeros(len(n)), np.zeros(len(n)), np.array(n))


def test_the_paper_s_sentiment_table_by_tukey():
    """Table XII, four models x 200 statements x 20 templates a level: negative differs from neutral, p < .001.

    Positive (.082 against .057) would differ too, by far, were all answers independent; the paper prints p = .09.
    """
    n = np.full(3, 4 * 200 * 20.0)
    sums = np.array([0.279, 0.082, 0.057]) * n
    out = tukey_hsd(sums, sums, n)
    assert out.difference == pytest.approx([0.197, 0.222, 0.025])
    assert out.p.max() < 0.001


@pytest.mark.slow
@pytest.mark.parametrize("own", [False, True], ids=["same", "own"])
def test_equal_rates_are_told_apart_once_in_twenty(own):
    """Six equal conditions, fifteen pairs: in 95 % of audits not one pair differs.

    Tukey's tests, which know no statements, hardly find a pair where each statement is the same under all conditions,
    and find one in most audits where it is not.
    """
    wrong, tukey_wrong = 0, 0
    for seed in range(200):
        y, n = ask(np.random.default_rng([11, seed]), [0.3] * 6, responses=20, own=own)
        wrong += compare_rates(y, n, all_pairs(6), n_boot=400, seed=seed).p.min() <= 0.05
        if seed < 15:  # its quantiles take a while
            tukey_wrong += tukey_hsd(y.sum(axis=0), y.sum(axis=0), n.sum(axis=0)).p.min() <= 0.05
    assert wrong <= 0.08 * 200
    assert tukey_wrong > 0.5 * 15 if own else tukey_wrong <= 1


def test_true_differences_lie_in_all_intervals_at_once():
    truths = np.array([0.14, 0.03, 0.06, 0.09, 0.3])
    first, second = against(0, 5)
    true = truths[first] - truths[second]
    held = 0
    for seed in range(200):
        y, n = ask(np.random.default_rng([12, seed]), truths, responses=20)
        out = compare_rates(y, n, (first, second), n_boot=400, seed=seed)
        held += ((out.low <= true) & (true <= out.high)).all()
    assert held >= 0.92 * 200


def test_pairing_by_statement_narrows():
    """The same statements under both conditions: what makes them differ cancels."""
    y, n = ask(np.random.default_rng(3), [0.3, 0.4], responses=20)
    paired = compare_rates(y, n, all_pairs(2), n_boot=1000, seed=0)
    rng = np.random.default_rng(4)
    apart = compare_rates(np.column_stack([y[:, 0], rng.permutation(y[:, 1])]), n, all_pairs(2), n_boot=1000, seed=0)
    assert paired.high[0] - paired.low[0] < 0.6 * (apart.high[0] - apart.low[0])


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**32))
def test_order_of_conditions_does_not_matter(seed):
    y, n = ask(np.random.default_rng(seed), [0.2, 0.3, 0.4], statements=30)
    plain = compare_rates(y, n, all_pairs(3), n_boot=100, seed=1)
    turned = compare_rates(y[:, ::-1], n[:, ::-1], all_pairs(3), n_boot=100, seed=1)
    assert turned.difference[::-1] == pytest.approx(-plain.difference)
    assert turned.low[::-1] == pytest.approx(-plain.high)
    assert turned.p[::-1] == pytest.approx(plain.p)


def test_nothing_ever_endorsed_is_no_proof_of_equality():
    y = np.zeros((100, 2))
    out = compare_rates(y, y + 4, all_pairs(2), n_boot=100, seed=0)
    assert (out.difference[0], out.p[0]) == (0, 1)


def test_a_condition_of_one_statement_is_refused():
    trials = np.array([[1.0, 1.0], [1.0, 0.0]])
    with pytest.raises(ValueError, match="fewer than two"):
        compare_rates(trials, trials, all_pairs(2), n_boot=100, seed=0)
