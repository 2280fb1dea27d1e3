"""Standardised rates and their changes: fixed weights, paired statements, and what the mix of conditions does."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.lazy_imports import ImportedLater

from auditor.domain.estimate import Insufficient
from auditor.metrics.standardised import (
    GridCounts,
    Standardised,
    estimable,
    kitagawa,
    standardised_difference,
    standardised_rate,
)
from auditor.stats.intervals import cluster_rate, t_quantile

sm = ImportedLater("statsmodels.api")

EQUAL = np.full(4, 0.25)
#: True rates of four tasks (MONITORING section 1).
RATES = np.array([0.07, 0.15, 0.33, 0.56])


def drawn(seed: int, statements: int = 60, conditions: int = 4, most: int = 5) -> GridCounts:
    """Random counts; every condition asked of most statements."""
    chance = np.random.default_rng(seed)
    trials = chance.integers(0, most, (statements, conditions)).astype(float)
    trials[:20] += 1
    return GridCounts(events=chance.binomial(trials.astype(int), 0.3).astype(float), trials=trials)


def at(rates: np.ndarray, trials: np.ndarray, statements: int = 100) -> GridCounts:
    """The same rates for every statement."""
    n = np.tile(trials / statements, (statements, 1))
    return GridCounts(events=rates * n, trials=n)


def test_a_mix_that_moves_moves_the_pooled_rate_and_not_the_standardised_one() -> None:
    before, after = at(RATES, np.full(4, 2500.0)), at(RATES, np.array([1000.0, 1000, 2000, 6000]))
    pooled = [float(each.events.sum() / each.trials.sum()) for each in (before, after)]
    assert [round(one, 4) for one in pooled] == [0.2775, 0.424]  # .278 -> .424, and no drift
    standardised = [standardised_rate(each, EQUAL) for each in (before, after)]
    assert [one.value for one in standardised] == pytest.approx([0.2775, 0.2775])
    change = standardised_difference(after, before, EQUAL)
    assert isinstance(change, Standardised)
    assert abs(change.value) < 1e-12
    split = kitagawa(after, before)
    assert (split.drift, split.mix) == (pytest.approx(0.0, abs=1e-12), pytest.approx(0.1465))


@given(st.integers(0, 10_000), st.integers(0, 10_000))
def test_drift_and_mix_add_up_to_the_whole_change_and_turn_with_it(one: int, other: int) -> None:
    new, old = drawn(one), drawn(other)
    split, back = kitagawa(new, old), kitagawa(old, new)
    whole = new.events.sum() / new.trials.sum() - old.events.sum() / old.trials.sum()
    assert split.pooled == pytest.approx(whole, abs=1e-12)
    assert (back.drift, back.mix) == (pytest.approx(-split.drift), pytest.approx(-split.mix))
    same = kitagawa(new, new)
    assert (same.drift, same.mix) == (0.0, 0.0)


@given(st.integers(0, 10_000))
def test_with_the_mix_as_weights_it_is_the_pooled_rate_with_its_clustered_error(seed: int) -> None:
    """With w_c = n_c / n the linearised sums are those within conditions; one condition is the plain cluster rate."""
    counts = drawn(seed)
    found = standardised_rate(counts, counts.shares)
    assert isinstance(found, Standardised)
    assert found.value == pytest.approx(counts.events.sum() / counts.trials.sum())
    alone = GridCounts(events=counts.events[:, :1], trials=counts.trials[:, :1])
    single, plain = standardised_rate(alone, np.ones(1)), cluster_rate(alone.events[:, 0], alone.trials[:, 0])
    assert isinstance(single, Standardised)
    assert single.value == pytest.approx(plain.value)
    reach = t_quantile(0.95, plain.n_clusters - 1) * plain.se
    assert (single.low, single.high) == (pytest.approx(plain.value - reach), pytest.approx(plain.value + reach))


@given(st.integers(0, 10_000), st.randoms(use_true_random=False))
def test_the_order_of_statements_does_not_matter_and_a_change_turns_its_sign(seed: int, chance: object) -> None:
    new, old = drawn(seed), drawn(seed + 1)
    order = np.random.default_rng(seed).permutation(len(new.trials))
    shuffled = [GridCounts(events=each.events[order], trials=each.trials[order]) for each in (new, old)]
    one = standardised_difference(new, old, EQUAL)
    other = standardised_difference(shuffled[0], shuffled[1], EQUAL)
    back = standardised_difference(old, new, EQUAL)
    assert isinstance(one, Standardised)
    assert isinstance(other, Standardised)
    assert isinstance(back, Standardised)
    assert (one.value, one.low, one.high) == (
        pytest.approx(other.value), pytest.approx(other.low), pytest.approx(other.high),
    )  # fmt: skip
    assert (back.value, back.low, back.high) == (
        pytest.approx(-one.value), pytest.approx(-one.high), pytest.approx(-one.low),
    )  # fmt: skip


def test_statements_that_stay_as_they_are_cancel_in_a_change() -> None:
    """Each statement answers alike in both windows: whatever lies between statements, nothing has changed."""
    chance = np.random.default_rng(0)
    own = chance.uniform(0, 1, (100, 1)) * np.ones((1, 4))
    n = np.full((100, 4), 10.0)
    new, old = GridCounts(events=own * n, trials=n), GridCounts(events=own * n / 2, trials=n / 2)
    change, level = standardised_difference(new, old, EQUAL), standardised_rate(new, EQUAL)
    assert isinstance(change, Standardised)
    assert isinstance(level, Standardised)
    assert (change.low, change.high) == (pytest.approx(0, abs=1e-12), pytest.approx(0, abs=1e-12))
    assert level.high - level.low > 0.1


def test_the_standard_error_is_that_of_a_weighted_regression_clustered_by_statement() -> None:
    counts = drawn(3)
    rows = [
        (s, c, float(hit))
        for s, c in np.ndindex(counts.trials.shape)
        for hit in [1] * int(counts.events[s, c]) + [0] * int(counts.trials[s, c] - counts.events[s, c])
    ]
    statement, condition, hits = (np.array(column) for column in zip(*rows, strict=True))
    design = (condition[:, None] == np.arange(4)).astype(float)
    fitted = sm.OLS(hits, design).fit(
        cov_type="cluster", cov_kwds={"groups": statement, "use_correction": False, "df_correction": False}
    )
    size = len(np.unique(statement))
    se = np.sqrt(EQUAL @ fitted.cov_params() @ EQUAL * size / (size - 1))
    found = standardised_rate(counts, EQUAL)
    assert isinstance(found, Standardised)
    assert found.value == pytest.approx(EQUAL @ fitted.params)
    assert found.high - found.value == pytest.approx(t_quantile(0.95, size - 1) * se)


def test_a_paired_change_covers_at_its_level() -> None:
    """Statements differ a lot; the change is two points. 400 simulated windows, 95 % intervals."""
    chance = np.random.default_rng(1)
    held = 0
    for _ in range(400):
        own = np.clip(chance.beta(0.6, 1.4, (100, 1)) + np.zeros((1, 2)), 0, 0.97)
        n = np.full((100, 2), 6)
        old, new = (GridCounts(events=chance.binomial(n, p).astype(float), trials=n * 1.0) for p in (own, own + 0.02))
        found = standardised_difference(new, old, np.full(2, 0.5))
        assert isinstance(found, Standardised)
        held += found.low <= 0.02 <= found.high
    assert 0.92 <= held / 400 <= 0.98


def test_what_is_not_estimable_is_said_and_not_put_in() -> None:
    counts = drawn(0)
    counts.trials[4:, 2] = counts.events[4:, 2] = 0
    assert estimable(counts).tolist() == [True, True, False, True]
    found = standardised_rate(counts, EQUAL)
    assert found == Insufficient(reason="a condition has fewer than 5 statements")
    few = GridCounts(events=np.ones((14, 1)), trials=np.ones((14, 1)))
    assert standardised_rate(few, np.ones(1)) == Insufficient(reason="14 statements, 15 needed")
    nothing = GridCounts(events=np.zeros((20, 0)), trials=np.zeros((20, 0)))
    assert isinstance(standardised_difference(nothing, nothing, np.zeros(0)), Insufficient)
    with pytest.raises(ValueError, match="no trials"):
        kitagawa(GridCounts(events=np.zeros((3, 1)), trials=np.zeros((3, 1))), drawn(1, conditions=1))
