"""Paired differences: identities that hold exactly, and intervals that hold what they promise."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.counting.joint import LabelPair
from auditor.domain.condition import Task
from auditor.domain.estimate import Insufficient
from auditor.metrics.rates import METRICS
from replay.comparison.arms import Arm, ArmCounts, Arms
from replay.comparison.exposure import abstaining
from replay.comparison.pairs import COMPARED, compare_arms, paired_difference

LABELS = ("E", "N", "D", "R")
ELABORATIONS = ("E", "QE", "N", "D", "R")

codings = st.one_of(
    st.builds(
        lambda sel, elab: LabelPair(sel=sel, sel_reason=None, elab=elab, elab_reason=None),
        st.sampled_from(LABELS),
        st.sampled_from(ELABORATIONS),
    ),
    st.just(LabelPair(sel="Abstain", sel_reason="no_marker", elab="D", elab_reason=None)),
    st.just(LabelPair(sel="E", sel_reason=None, elab="Abstain", elab_reason="no_elaboration")),
    st.just(LabelPair(sel="Abstain", sel_reason="transport_error", elab="Abstain", elab_reason="transport_error")),
    st.just("statement_lacks_context"),
)
rows = st.lists(st.tuples(st.integers(0, 30).map(str), codings, codings), min_size=1, max_size=120)


def arms(table):
    statements, first, second = zip(*table, strict=True)
    return statements, Arm(name="stored", task=Task.BJ, answers=first), Arm(name="CTO", task=Task.CTO, answers=second)


def compared(table):
    statements, first, second = arms(table)
    return compare_arms(Arms.of([first, second], statements), (0, 1), claimed=True, seed=0)


@given(rows)
def test_identical_answers_differ_by_exactly_nothing(table):
    found = compared([(statement, one, one) for statement, one, _ in table])
    for metric in found.metrics.values():
        if not isinstance(metric, Insufficient):
            change = metric.difference
            assert change.difference == 0
            assert change.first == change.second
            assert change.low < 0 < change.high, "that nothing changed in a sample is not that nothing can"
            assert metric.discordance is None or (metric.discordance.gained, metric.discordance.lost) == (0, 0)
    assert all(len(set(flip.split(">"))) == 1 for flip in found.selection.labels)


@given(rows, st.randoms(use_true_random=False))
def test_the_order_of_the_parents_changes_nothing(table, random):
    shuffled = list(table)
    random.shuffle(shuffled)
    assert compared(shuffled) == compared(table)


@given(rows)
def test_the_difference_the_other_way_round_is_its_negative(table):
    there, back = compared(table), compared([(statement, two, one) for statement, one, two in table])
    for name, one in there.metrics.items():
        other = back.metrics[name]
        if isinstance(one, Insufficient):
            assert other == one
            continue
        change, undone = one.difference, other.difference
        assert (change.difference, change.first, change.second) == (-undone.difference, undone.second, undone.first)
        assert (change.low, change.high) == pytest.approx((-undone.high, -undone.low), abs=1e-12)
        if one.discordance is not None:
            assert one.h == pytest.approx(-other.h, abs=1e-12)
            assert (one.discordance.gained, one.discordance.lost) == (other.discordance.lost, other.discordance.gained)
            assert one.discordance.p == pytest.approx(other.discordance.p)


@given(rows)
def test_pairs_absent_answers_and_bases_are_counted_apart(table):
    found = compared(table)
    statements, first, second = arms(table)
    came = [
        not isinstance(one, str)
        and not isinstance(two, str)
        and "transport_error" not in {one.sel_reason, two.sel_reason}
        for one, two in zip(first.answers, second.answers, strict=True)
    ]
    assert found.n_pairs == sum(came)
    assert found.n_statements == len({statement for statement, both in zip(statements, came, strict=True) if both})
    counted = ArmCounts.of(first)
    assert counted.n + sum(counted.missing.values()) == len(table)
    assert sum(found.selection.labels.values()) == sum(found.elaboration.labels.values()) == found.n_pairs
    for metric in found.metrics.values():
        assert isinstance(metric, Insufficient) or metric.difference.n_pairs <= found.n_pairs


@given(rows)
def test_each_difference_is_that_of_the_means_over_the_pairs(table):
    found = compared(table)
    for name in COMPARED:
        if isinstance(found.metrics[name], Insufficient):
            continue
        metric = found.metrics[name].difference
        assert metric.difference == pytest.approx(metric.second - metric.first, abs=1e-12)
        span = 2 if METRICS[name].kind == "difference" else 1
        assert -span <= metric.low <= metric.difference <= metric.high <= span


def test_by_hand():
    """Twenty statements: five turn from D|D to E|D, two from E|E to D|E, the rest stay D|D."""

    def coded(sel, elab):
        return LabelPair(sel=sel, sel_reason=None, elab=elab, elab_reason=None)

    stay, turn, back = coded("D", "D"), coded("E", "D"), coded("E", "E")
    first = [stay] * 5 + [back] * 2 + [stay] * 13
    second = [turn] * 5 + [coded("D", "E")] * 2 + [stay] * 13
    found = compared([(str(number), one, two) for number, (one, two) in enumerate(zip(first, second, strict=True))])
    values = {name: metric.difference.difference for name, metric in found.metrics.items()}
    # sel: +5 - 2 of 20; elab: the same two endorse both times; union: five more; layers disagree on 7 instead of 0.
    assert values["ber_sel"] == pytest.approx(3 / 20)
    assert values["ber_elab"] == 0
    assert values["ber_union"] == values["ber_union_full"] == pytest.approx(5 / 20)
    assert values["ir"] == pytest.approx(7 / 20)
    assert values["dni"] == pytest.approx((5 - 2) / 20)
    assert found.selection.labels == {"D>D": 13, "D>E": 5, "E>D": 2}
    assert found.metrics["ir"].difference.flags == ("few_clusters",)
    # Five gained and two lost: twice the chance of two or fewer heads in seven.
    discordance = found.metrics["ber_sel"].discordance
    assert (discordance.gained, discordance.lost) == (5, 2)
    assert discordance.p == pytest.approx(2 * (1 + 7 + 21) / 2**7)
    assert found.metrics["ber_sel"].h == pytest.approx(2 * (math.asin(0.25**0.5) - math.asin(0.1**0.5)))
    assert found.selection.changed.value == pytest.approx(7 / 20)
    assert found.selection.effect.difference == pytest.approx(3 / 20)
    assert (found.elaboration.changed.value, found.elaboration.effect.difference) == (0, 0)


def test_fewer_than_fifteen_statements_give_no_number():
    found = compared(
        [
            (str(number % 14), coded, coded)
            for number, coded in enumerate([LabelPair(sel="D", sel_reason=None, elab="D", elab_reason=None)] * 100)
        ]
    )
    assert found.metrics["ir"] == Insufficient(reason="14 statements with both answers, 15 needed")


def test_a_free_response_format_has_no_selection_to_compare():
    answer = LabelPair(sel="D", sel_reason=None, elab="D", elab_reason=None)
    free = LabelPair(sel="Abstain", sel_reason="no_selection_layer", elab="E", elab_reason=None)
    statements = [str(number) for number in range(20)]
    first = Arm(name="stored", task=Task.BJ, answers=[answer] * 20)
    second = Arm(name="Explain", task=Task.EXPLAIN, answers=[free] * 20)
    found = compare_arms(Arms.of([first, second], statements), (0, 1), claimed=True, seed=0)
    assert isinstance(found.metrics["ber_sel_full"], Insufficient)
    assert isinstance(found.metrics["ir"], Insufficient)
    assert found.metrics["ber_elab_full"].difference.difference == 1
    assert ArmCounts.of(second).coverage.structural == 1
    assert found.coverage.difference == -1, "what is coded on both layers the first time is not the second"


def test_a_proposition_that_is_no_stereotype_has_no_rate_of_endorsement():
    answer = LabelPair(sel="D", sel_reason=None, elab="D", elab_reason=None)
    arm = Arm(name="stored", task=None, answers=[answer] * 20)
    found = compare_arms(Arms.of([arm, arm], [str(number) for number in range(20)]), (0, 1), claimed=False, seed=0)
    told = {name for name, metric in found.metrics.items() if not isinstance(metric, Insufficient)}
    assert told == {"ir", "dni"}


def test_unequal_sides_are_refused():
    arm = Arm(name="stored", task=None, answers=["statement_lacks_context"])
    with pytest.raises(ValueError, match="every arm needs"):
        Arms.of([arm], ["one", "two"])
    with pytest.raises(ValueError, match="pairs need"):
        paired_difference(np.zeros(3), np.zeros(2), np.arange(3), span=1, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("gain", "loss"), [(0.02, 0.02), (0.1, 0.03), (0.25, 0.05), (0.0, 0.01)], ids=["rare", "shift", "large", "one-way"]
)
def test_intervals_cover(gain, loss):
    """Sixty statements, four pairs each, statements differ: at least 93 % of intervals hold the true difference."""
    rng, covered, trials = np.random.default_rng(5), 0, 300
    cluster = np.repeat(np.arange(60), 4)
    for seed in range(trials):
        own = rng.dirichlet(np.array([gain, loss, 1 - gain - loss]) * 4 + 1e-9, 60)[cluster]
        u = rng.random(len(cluster))
        change = np.where(u < own[:, 0], 1.0, np.where(u < own[:, 0] + own[:, 1], -1.0, 0.0))
        found = paired_difference(
            np.where(change < 0, 1.0, 0.0), np.where(change > 0, 1.0, 0.0), cluster, span=1, seed=seed
        )
        covered += found.low <= gain - loss <= found.high
    assert covered / trials >= 0.93


def test_a_pair_that_stands_for_more_weighs_more_and_the_unit_of_weights_does_not_matter():
    first, second, cluster = np.zeros(40), np.repeat([1.0, 0.0], 20), np.arange(40)
    weight = np.repeat([3.0, 1.0], 20)
    found = paired_difference(first, second, cluster, span=1, seed=0, weight=weight)
    assert found.difference == pytest.approx(0.75)
    assert (found.second, found.n_pairs) == (pytest.approx(0.75), 40)
    again = paired_difference(first, second, cluster, span=1, seed=0, weight=weight / 64)
    assert again == found
    alike = paired_difference(first, second, cluster, span=1, seed=0, weight=np.full(40, 8.0))
    assert alike == paired_difference(first, second, cluster, span=1, seed=0)


def test_weights_undo_an_uneven_draw():
    """Traffic in which the rarely kept changes more: at least 93 % of weighted intervals hold what is true of all."""
    rng, covered, trials = np.random.default_rng(7), 0, 300
    inclusion = np.repeat([0.9, 0.3], [400, 400])
    for seed in range(trials):
        kept = rng.random(800) < inclusion
        changed = rng.random(800) < np.where(inclusion < 0.5, 0.5, 0.1)
        second, cluster = changed[kept].astype(float), np.flatnonzero(kept)
        found = paired_difference(np.zeros(len(second)), second, cluster, span=1, seed=seed, weight=1 / inclusion[kept])
        covered += found.low <= 0.3 <= found.high
    assert covered / trials >= 0.93


def test_a_call_without_an_answer_is_no_failed_selection_under_the_open_rubric():
    lost = LabelPair(sel="Abstain", sel_reason="transport_error", elab="Abstain", elab_reason="transport_error")
    said = LabelPair(sel="Abstain", sel_reason="no_selection_layer", elab="E", elab_reason=None)
    for rubric, failed in (("open", 0.0), ("open/2", 0.0), ("proposition", 0.25)):
        arm = Arm(name="stored", task=None, answers=[lost, said, said, said], rubric=rubric)
        assert abstaining(Arms.of([arm], ["a", "b", "c", "d"]), 0) == failed
