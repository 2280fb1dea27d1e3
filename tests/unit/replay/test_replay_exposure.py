"""Exposure: ranges and their ends hold the truth though they were chosen by looking, and say what they rest on."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.worlds.replay_groups import WORLDS, World, coded, coverage

from auditor.domain.condition import Task
from auditor.domain.estimate import Insufficient
from auditor.metrics.rates import METRICS
from replay.comparison.arms import STORED, Arm, Arms, common_parents
from replay.comparison.exposure import exposure
from replay.comparison.scores import Scores

SELECTION = "ber_sel_full"
QUICK = ("equal", "equal, own", "equal, few", "spread", "spread, own", "close")


def exposed(arms, name=SELECTION, n_boot=200, seed=0):
    return exposure(arms, Scores.of(arms, METRICS[name]), n_boot=n_boot, seed=seed)


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_intervals_hold_the_declared_lowest_highest_and_range(name):
    """In nine of ten at the least, 0 where truths are equal (``make measurements`` has a thousand, and rare scores)."""
    held = coverage(WORLDS[name], draws=50, n_boot=200)
    assert min(held.values()) >= 0.9, held


def test_what_chance_pushed_apart_gets_no_credit_and_what_is_far_apart_does():
    equal = [exposed(WORLDS["equal"].draw(seed), seed=seed) for seed in range(20)]
    assert np.mean([found.range for found in equal]) > 0.05
    assert np.mean([found.low for found in equal]) < 0.005
    assert np.mean([found.corrected for found in equal]) < np.mean([found.range for found in equal])
    assert all(exposed(WORLDS["spread"].draw(seed), seed=seed).low > 0.25 for seed in range(20))


@settings(max_examples=20)
@given(st.lists(st.sampled_from([0.05, 0.2, 0.5, 0.9]), min_size=2, max_size=5), st.integers(0, 2**20))
def test_ends_and_range_agree_with_the_scores(rates, seed):
    arms = World(rates=tuple(rates), statements=20).draw(seed)
    scores = Scores.of(arms, METRICS["ber_union"])
    found = exposure(arms, scores, n_boot=50, seed=seed)
    values = [scores.estimate(place, seed).value for place in range(len(rates))]
    assert (found.lowest.value, found.highest.value) == pytest.approx((min(values), max(values)))
    assert found.range == pytest.approx(found.highest.value - found.lowest.value)
    assert 0 <= found.low <= found.range <= found.high <= 1
    for end in (found.lowest, found.highest):
        assert 0 <= end.low <= end.value <= end.high <= 1
    # Whoever chose cannot know better than who took a side at random.
    assert found.lowest.low <= min(scores.estimate(place, seed).low for place in range(len(rates))) + 1e-12
    assert found.highest.high >= max(scores.estimate(place, seed).high for place in range(len(rates))) - 1e-12


def test_the_order_of_the_sides_and_of_the_parents_changes_nothing():
    arms = WORLDS["spread"].draw(0)
    order = np.random.default_rng(0).permutation(len(arms.cluster))
    turned = Arms(
        arms=arms.arms[::-1],
        cells=arms.cells[order][:, ::-1],
        cluster=arms.cluster[order],
        weight=arms.weight[order],
    )
    one, other = exposed(arms), exposed(turned)
    assert (one.lowest.side, one.highest.side) == (other.lowest.side, other.highest.side)
    assert (one.low, one.high) == pytest.approx((other.low, other.high))
    assert (one.lowest.low, one.highest.high) == pytest.approx((other.lowest.low, other.highest.high))


def test_the_same_asked_again_is_in_no_range():
    changes = ({}, {}, {"role": "military"})
    arms = World(rates=(0.2, 0.9, 0.25), names=(STORED, "again", "military"), changes=changes).draw(0)
    found = exposed(arms)
    assert {found.lowest.side, found.highest.side} == {STORED, "military"}
    assert found.range < 0.2


def test_a_range_over_nothing_is_not_known_to_be_nothing():
    """Nobody endorses: the range is 0, and its bounds say what a hundred statements can rule out."""
    found = exposed(World(rates=(0.0, 0.0, 0.0), agree=1.0).draw(0))
    assert (found.range, found.low) == (0, 0)
    assert 0.01 < found.high < 0.1
    assert "bounds_only" in found.flags


def test_dni_may_span_two():
    changes = {"names": (STORED, "turned"), "changes": ({}, {"task": "turned"})}
    whole = World(rates=(1.0, 1.0), statements=40, agree=0.0, **changes).draw(0)
    turned = Arm(name="turned", task=Task.BJ, answers=[coded("D", "E")] * 80, changes={"task": "turned"})
    arms = Arms.of([whole.arms[0], turned], [str(number) for number in whole.cluster])
    found = exposed(arms, "dni")
    assert (found.lowest.value, found.highest.value, found.range) == (-1, 1, 2)
    assert found.high == 2


def test_one_way_of_asking_has_no_range():
    arms = World(rates=(0.3, 0.3), statements=14).draw(0)
    assert exposed(arms) == Insufficient(reason="fewer than two formats with 15 statements")


def test_a_few_heavy_exchanges_are_few_effective_answers():
    arms = World(rates=(0.3, 0.5), statements=60, parents=1).draw(0)
    heavy = replace(arms, weight=np.where(np.arange(60) < 3, 100.0, 1.0))
    assert exposed(heavy) == Insufficient(reason="fewer than two formats with 15 effective answers")
    missing = Scores.of(heavy, METRICS[SELECTION]).estimate(0, seed=0)
    assert missing == Insufficient(reason="4.2 effective answers in the full base, 15 needed")
    light = exposed(replace(arms, weight=np.where(np.arange(60) < 3, 3.0, 1.0)))
    assert light.high > exposed(arms).high or light.low < exposed(arms).low
    even = exposed(replace(arms, weight=np.full(60, 1.0)))
    assert even == exposed(arms)


def test_answers_that_were_read_unevenly_are_flagged():
    even = exposed(World(rates=(0.3, 0.3), abstain=(0.05, 0.08)).draw(0), "ber_union_full")
    uneven = exposed(World(rates=(0.3, 0.3), abstain=(0.05, 0.4)).draw(0), "ber_union_full")
    assert "coverage_differs" not in even.flags
    assert "coverage_differs" in uneven.flags
    # The elaborations are missing, not the selections.
    assert "coverage_differs" not in exposed(World(rates=(0.3, 0.3), abstain=(0.05, 0.4)).draw(0)).flags
    assert "abstain_heavy" not in uneven.flags


def test_sides_that_rarely_select_are_flagged():
    said, silent = coded("E", "E"), coded("Abstain", "E")
    first = Arm(name=STORED, task=Task.BJ, answers=[said] * 40)
    second = Arm(name="CTO", task=Task.CTO, answers=[said, silent] * 20, changes={"task": "CTO"})
    arms = Arms.of([first, second], [str(number) for number in range(40)])
    assert {"abstain_heavy", "coverage_differs"} <= set(exposed(arms).flags)
    assert exposed(arms, "ber_elab_full").flags == ("bounds_only", "few_clusters", "high_rate")


def test_weights_move_the_score():
    said, not_said = coded("E", "E"), coded("D", "D")
    first = Arm(name=STORED, task=Task.BJ, answers=[said] * 20 + [not_said] * 20)
    second = Arm(name="CTO", task=Task.CTO, answers=[not_said] * 20 + [said] * 20, changes={"task": "CTO"})
    arms = Arms.of([first, second], [str(number) for number in range(40)], [3.0] * 20 + [1.0] * 20)
    found = exposed(arms)
    assert (found.highest.side, found.highest.value) == (STORED, 0.75)
    assert (found.lowest.side, found.lowest.value) == ("CTO", 0.25)


def test_scores_are_compared_on_the_parents_that_were_asked_every_way():
    said = coded("E", "E")
    stored = Arm(name=STORED, task=Task.BJ, answers=[said] * 10)
    most = Arm(name="CTO", task=Task.CTO, answers=[said] * 6 + ["no_options"] * 4)
    few = Arm(name="SC", task=Task.SC, answers=[said] * 2 + ["no_blank"] * 8)
    found = common_parents(Arms.of([stored, most, few], [str(number) for number in range(10)]))
    assert found.arms.names == (STORED, "CTO")
    assert (len(found.arms.cluster), found.n_left_out) == (6, 4)
    assert found.left_out == {"SC": "asked of 2 of 10 exchanges"}
    assert found.arms.weight.sum() == 6


def test_nothing_in_common_is_nothing_to_compare():
    said = coded("E", "E")
    stored = Arm(name=STORED, task=Task.BJ, answers=[said] * 4)
    one = Arm(name="CTO", task=Task.CTO, answers=[said, said, "no", "no"], changes={"task": "CTO"})
    other = Arm(name="SC", task=Task.SC, answers=["no", "no", said, said], changes={"task": "SC"})
    found = common_parents(Arms.of([stored, one, other], list("abcd")))
    assert (len(found.arms.cluster), found.n_left_out) == (0, 4)
    assert isinstance(exposed(found.arms), Insufficient)
