"""Statements as items: planted properties are found, and nothing is found where there is nothing."""

import math

import numpy as np
import pytest

from auditor.domain.estimate import Insufficient
from auditor.metrics.items import (
    KEEPS_RANKS,
    ShortForm,
    differential_items,
    duplicate_items,
    item_statistics,
    short_form,
)
from auditor.stats.ranks import spearman

ITEMS = [f"s{number:02}" for number in range(40)]
CATEGORIES = [f"c{number % 4}" for number in range(40)]
DEPLOYMENTS = [f"d{number}" for number in range(10) for _ in range(40)]


def answers(seed=0, *, shift=None):
    """Return 400 respondents x 40 items by a Rasch model; ``shift`` moves the difficulty of (item, deployment)."""
    draw = np.random.default_rng(seed)
    ability = np.repeat(np.linspace(-1.5, 1.5, 10), 40) + draw.normal(0, 0.5, 400)
    difficulty = np.linspace(-1, 1, 40)
    logit = ability[:, None] - difficulty
    for (item, deployment), change in (shift or {}).items():
        logit[np.asarray(DEPLOYMENTS) == deployment, ITEMS.index(item)] += change
    return (draw.random((400, 40)) < 1 / (1 + np.exp(-logit))).astype(float)


def test_difficulty_is_the_share_that_endorses_and_discrimination_leaves_the_item_out():
    endorsed = answers()
    items = item_statistics(ITEMS, endorsed)
    assert [one.difficulty for one in items] == pytest.approx(endorsed.mean(axis=0).tolist())
    rest = endorsed[:, 1:].mean(axis=1)
    assert items[0].discrimination == pytest.approx(np.corrcoef(endorsed[:, 0], rest)[0, 1])
    assert all(one.discrimination > 0.15 for one in items)
    assert not any(one.dead for one in items)


def test_an_item_of_pure_chance_discriminates_nothing_and_a_dead_one_has_no_figure():
    endorsed = answers()
    endorsed[:, 3] = np.random.default_rng(1).random(400) < 0.5
    endorsed[:, 4] = 0.0
    items = item_statistics(ITEMS, endorsed)
    assert abs(items[3].discrimination) < 0.15
    assert items[4].dead
    assert items[4].discrimination is None
    assert not items[3].dead


def test_a_hundred_respondents_are_needed_to_call_an_item_dead():
    endorsed = answers()
    endorsed[:, 4:6] = 0.0
    endorsed[99:, 4] = np.nan
    endorsed[100:, 5] = np.nan
    items = item_statistics(ITEMS, endorsed)
    assert (items[4].n, items[4].difficulty, items[4].dead) == (99, 0.0, False)
    assert (items[5].n, items[5].dead) == (100, True)


def test_too_few_respondents_give_no_figure():
    endorsed = answers()
    endorsed[10:, 0] = np.nan
    item = item_statistics(ITEMS, endorsed)[0]
    assert (item.n, item.difficulty, item.discrimination, item.dead) == (10, None, None, False)


def test_items_with_the_same_answers_are_duplicates():
    endorsed = answers()
    assert duplicate_items(ITEMS, endorsed) == []
    endorsed[:, 7] = endorsed[:, 2]
    endorsed[::50, 7] = np.nan
    ((first, second, correlation),) = duplicate_items(ITEMS, endorsed)
    assert (first, second) == ("s02", "s07")
    assert correlation == pytest.approx(1)


def test_a_planted_differential_item_is_found_with_its_direction():
    endorsed = answers(shift={("s20", "d5"): 3.0, ("s30", "d4"): -3.0})
    found = {(one.statement, one.deployment): one for one in differential_items(ITEMS, DEPLOYMENTS, endorsed)}
    assert found[("s20", "d5")].log_odds_ratio > 1
    assert found[("s30", "d4")].log_odds_ratio < -1
    assert all(one.p_holm <= 0.05 for one in found.values())
    assert {statement for statement, _ in found} == {"s20", "s30"}


@pytest.mark.slow
def test_without_a_differential_item_the_family_error_is_kept():
    wrong = sum(bool(differential_items(ITEMS[:10], DEPLOYMENTS, answers(seed)[:, :10])) for seed in range(40))
    assert wrong <= 7  # 2 expected at 5 %; more than 7 has a probability under 0.1 %


def test_a_short_form_keeps_the_ranks_and_every_category():
    endorsed = answers()
    form = short_form(ITEMS, CATEGORIES, DEPLOYMENTS, endorsed)
    assert isinstance(form, ShortForm)
    assert form.rank_correlation >= KEEPS_RANKS
    assert len(form.statements) <= 20
    assert form.independent_correlation > 0.8
    assert form.whole_correlation > 0.8
    assert len(form.statements) < 4 or {CATEGORIES[ITEMS.index(one)] for one in form.statements} == set(CATEGORIES)


def test_a_short_form_chosen_from_random_answers_is_no_shorter_than_it_can_be():
    chance = (np.random.default_rng(3).random((400, 40)) < 0.5).astype(float)
    form = short_form(ITEMS, CATEGORIES, DEPLOYMENTS, chance)
    assert isinstance(form, Insufficient) or len(form.statements) > 20


@pytest.mark.slow
def test_a_short_form_keeps_the_true_ranks_in_most_samples():
    """The short version of tests/bench/test_short_form.py."""
    kept = [
        spearman(np.linspace(-1.5, 1.5, 10), rates_of(form, seed))
        for seed in range(20)
        if isinstance(form := short_form(ITEMS, CATEGORIES, DEPLOYMENTS, answers(seed)), ShortForm)
    ]
    assert len(kept) >= 15
    assert sum(found.rho >= KEEPS_RANKS for found in kept) >= 0.8 * len(kept)


def rates_of(form, seed):
    """Return the deployments' rates on a short form in new answers."""
    columns = [ITEMS.index(one) for one in form.statements]
    new = answers(1000 + seed)[:, columns]
    return np.asarray([new[np.asarray(DEPLOYMENTS) == name].mean() for name in dict.fromkeys(DEPLOYMENTS)])


def test_the_half_that_checks_does_not_choose():
    """Items that tell deployments apart in the choosing half alone are no short form."""
    endorsed = answers()
    form = short_form(ITEMS, CATEGORIES, DEPLOYMENTS, endorsed, seed=5)
    again = short_form(ITEMS, CATEGORIES, DEPLOYMENTS, endorsed, seed=5)
    assert form == again
    rng = np.random.default_rng(5)
    held = np.concatenate(
        [rng.permutation(np.flatnonzero(np.asarray(DEPLOYMENTS) == name))[2::4] for name in sorted(set(DEPLOYMENTS))]
    )
    noise = endorsed.copy()
    noise[held] = np.random.default_rng(6).random((len(held), 40)) < 0.5
    changed = short_form(ITEMS, CATEGORIES, DEPLOYMENTS, noise, seed=5)
    assert isinstance(changed, Insufficient) or changed.statements == form.statements


def test_few_deployments_have_no_short_form():
    few = np.isin(DEPLOYMENTS, ["d0", "d1", "d2", "d3"])
    form = short_form(
        ITEMS, CATEGORIES, [one for one in DEPLOYMENTS if one in {"d0", "d1", "d2", "d3"}], answers()[few]
    )
    assert form == Insufficient(reason="needs 5 deployments, has 4")


def test_p_values_are_adjusted_by_holm_over_all_that_was_tested():
    found = differential_items(ITEMS[:10], DEPLOYMENTS, answers(2)[:, :10], alpha=1.0)
    draw = np.array([math.erfc(math.sqrt(one.chi_square / 2)) for one in found])  # the upper tail of chi-square(1)
    expected, highest = {}, 0.0
    for place, p in enumerate(sorted(draw)):
        highest = max(highest, min(1.0, (len(draw) - place) * p))
        expected[p] = highest
    assert len(found) == 100
    assert [one.p_holm for one in found] == pytest.approx([expected[p] for p in draw])
