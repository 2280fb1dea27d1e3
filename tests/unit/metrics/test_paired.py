"""Differences on the same questions: what must not move them, their level, and what the pooled rates say instead."""

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st
from support.worlds.unequal_mixes import WORLDS, MixWorld, held_and_found, worse_by_overlap

from auditor.domain.estimate import Insufficient
from auditor.metrics.paired import TOO_FEW, PairedDifference, adjusted, paired_difference
from auditor.metrics.standardised import GridCounts


def drawn(seed: int, statements: int = 60, conditions: int = 3) -> GridCounts:
    """Random counts; some questions without an answer."""
    chance = np.random.default_rng(seed)
    trials = chance.integers(0, 4, (statements, conditions)).astype(float)
    trials[:20] += 1
    return GridCounts(events=chance.binomial(trials.astype(int), 0.3).astype(float), trials=trials)


def known(difference: PairedDifference | Insufficient) -> PairedDifference:
    assert isinstance(difference, PairedDifference)
    return difference


@given(st.integers(0, 10_000))
def test_sides_and_statements_may_change_places(seed: int) -> None:
    first, second = drawn(seed), drawn(seed + 1)
    order = np.random.default_rng(seed).permutation(60)
    forth, back = known(paired_difference(first, second)), known(paired_difference(second, first))
    moved = known(
        paired_difference(*(GridCounts(events=s.events[order], trials=s.trials[order]) for s in (first, second)))
    )
    assert (back.value, back.low, back.high, back.p) == pytest.approx((-forth.value, -forth.high, -forth.low, forth.p))
    assert (moved.value, moved.low, moved.p) == pytest.approx((forth.value, forth.low, forth.p))
    assert (forth.p <= 0.05) == (forth.low > 0 or forth.high < 0)


@given(st.integers(0, 10_000), st.integers(2, 9))
def test_answers_that_are_repeated_or_have_no_partner_do_not_count(seed: int, times: int) -> None:
    """Asked some questions many times more, or questions of its own: neither is a difference."""
    first, second = drawn(seed), drawn(seed + 1)
    factor = np.where(np.random.default_rng(seed).random(first.trials.shape) < 0.3, times, 1)
    often = GridCounts(events=first.events * factor, trials=first.trials * factor)
    alone = GridCounts(events=second.events.copy(), trials=np.where(first.trials > 0, second.trials, second.trials + 5))
    plain, mixed = known(paired_difference(first, second)), known(paired_difference(often, alone))
    assert (mixed.value, mixed.low, mixed.high, mixed.p) == pytest.approx((plain.value, plain.low, plain.high, plain.p))


def test_one_condition_is_nearly_student_s_test_of_paired_differences() -> None:
    chance = np.random.default_rng(0)
    n = np.full((400, 1), 1.0)
    first, second = (chance.binomial(1, p, (400, 1)).astype(float) for p in (0.3, 0.4))
    found = known(paired_difference(GridCounts(events=first, trials=n), GridCounts(events=second, trials=n)))
    apart = (second - first)[:, 0]
    assert found.value == pytest.approx(apart.mean())
    assert found.p == pytest.approx(scipy.stats.ttest_1samp(apart, 0).pvalue, rel=0.2)


def test_two_sides_that_agree_everywhere_are_not_known_to_agree_exactly() -> None:
    """No discordant pair among n leaves room for a share of about 2 / n, as the exact interval of McNemar's pairs."""
    n = np.ones((200, 1))
    found = known(paired_difference(GridCounts(events=0 * n, trials=n), GridCounts(events=0 * n, trials=n)))
    assert found.value == 0
    assert found.p == 1
    assert 1.5 / 200 < found.high < 4 / 200


def test_what_cannot_be_paired_has_a_reason() -> None:
    n = np.zeros((30, 2))
    first, second = n.copy(), n.copy()
    first[:, 0], second[:, 1] = 1, 1
    sides = [GridCounts(events=0 * trials, trials=trials) for trials in (first, second)]
    assert paired_difference(*sides) == TOO_FEW
    few = GridCounts(events=np.ones((14, 1)), trials=np.ones((14, 1)))
    assert paired_difference(few, few) == Insufficient(reason="14 statements of both, 15 needed")


def test_clusters_that_answer_alike_widen_the_interval() -> None:
    chance = np.random.default_rng(1)
    topics = np.repeat(np.arange(20), 10)
    n = np.ones((200, 1))
    shift = np.repeat(chance.normal(0, 0.3, (20, 1)), 10, axis=0)
    first, second = (
        GridCounts(events=(chance.random((200, 1)) < 0.5 + add).astype(float), trials=n) for add in (0, shift)
    )
    alone, topical = (known(paired_difference(first, second, labels)) for labels in (None, topics))
    assert topical.value == pytest.approx(alone.value)
    assert topical.se > 1.3 * alone.se


def test_adjusting_for_several_pairs_never_lowers_p() -> None:
    sides = [drawn(seed) for seed in range(4)]
    pairs = [known(paired_difference(first, second)) for first in sides for second in sides if first is not second]
    p = adjusted(pairs, seed=0)
    assert all(each >= pair.p for each, pair in zip(p, pairs, strict=True))
    assert adjusted(pairs[:1], seed=0) == [pairs[0].p]
    assert adjusted(pairs, seed=0) == p


@pytest.mark.parametrize("name", ["tasks, 1 to 3", "two conditions, crossed", "two kinds of statements"])
def test_equal_deployments_with_unequal_mixes_do_not_differ_in_pairs(name: str) -> None:
    """The pooled intervals of nearly all of these audits do not overlap (``bench/test_unequal_mixes.py``)."""
    world: MixWorld = WORLDS[name]
    audits = [world.audit(np.random.default_rng([5, seed])) for seed in range(60)]
    assert np.mean([worse_by_overlap(*audit) for audit in audits]) > 0.9
    held, found = np.mean([held_and_found(*audit, 0.0) for audit in audits], axis=0)
    assert held >= 0.9
    assert found <= 0.1
