"""The corrected rate: against closed forms, against what it must never do, and a small run of its benchmark."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.worlds.review_worlds import JOINT_JUDGES, JUDGES, JointWorld, ReviewWorld, hold, hold_joint

from auditor.stats.intervals import cluster_rate, design_effect_wilson
from auditor.stats.prediction_powered import (
    LabelledSample,
    prediction_powered_difference,
    prediction_powered_rate,
    prediction_powered_ratio,
)


def single(human, machine, weight=None):
    """Labels of one response a cluster."""
    size = len(human)
    return LabelledSample(
        cluster=np.arange(size),
        human=np.array(human, dtype=float),
        machine=np.array(machine, dtype=float),
        weight=np.ones(size) if weight is None else np.array(weight, dtype=float),
    )


def test_power_one_is_the_machines_mean_and_the_mean_correction():
    """The machine says 1/4, and 2/4 where people looked and found 1/4: 1/4 + (1/4 - 2/4) = 0."""
    out = prediction_powered_rate(np.full(4, 1.0), np.full(4, 4.0), single([1, 0, 0, 0], [1, 1, 0, 0]), power=1)
    assert out.value == 0
    out = prediction_powered_rate(np.full(4, 3.0), np.full(4, 4.0), single([1, 0, 0, 0], [1, 1, 0, 0]), power=1)
    assert out.value == pytest.approx(0.75 + 0.25 - 0.5)


def test_power_nought_is_the_weighted_human_rate_with_its_linearised_error():
    rng = np.random.default_rng(3)
    human, weight = (rng.random(60) < 0.3).astype(float), rng.uniform(1, 4, 60)
    labelled = single(human, np.zeros(60), weight)
    out = prediction_powered_rate(np.zeros(60), np.ones(60), labelled, power=0)
    plain = cluster_rate(weight * human, weight)
    assert out.value == pytest.approx(plain.value)
    # 60/59 of one estimate is 60/58 here, and half of the heaviest label goes on top.
    variance = plain.se**2 * 59 / 58 + 0.5 * (weight.max() / weight.sum()) ** 2
    half = np.log(out.high / (1 - out.high)) - np.log(out.value / (1 - out.value))
    assert half == pytest.approx(2.0017 * np.sqrt(variance) / (plain.value * (1 - plain.value)), rel=1e-4)


def test_the_power_is_that_of_least_error():
    endorsed, n, labelled = ReviewWorld(rate=0.3, judge="fair").audit(np.random.default_rng(5))

    def error(power):
        out = prediction_powered_rate(endorsed, n, labelled, power=power)
        width = np.log(out.high / (1 - out.high)) - np.log(out.low / (1 - out.low))
        return width * out.value * (1 - out.value)

    tuned = prediction_powered_rate(endorsed, n, labelled).power
    assert 0 < tuned < 1
    assert all(error(tuned) < error(power) for power in (0.0, tuned - 0.05, tuned + 0.05, 1.0))


def test_everything_labelled_is_the_human_rate():
    """Nothing is left that the machine could add: its mean over all is its mean over the labels."""
    labelled = single([1, 0, 0, 1, 0] * 8, [1, 1, 0, 0, 0] * 8)
    out = prediction_powered_rate(labelled.machine, np.ones(40), labelled)
    assert (out.value, out.power) == (pytest.approx(0.4), 0)


def test_too_few_clusters_bound_nothing():
    out = prediction_powered_rate(np.ones(2), np.full(2, 9.0), single([1, 0], [1, 0]))
    assert (out.low, out.high, out.n_clusters) == (0, 1, 2)


def test_no_human_endorsement_leaves_an_upper_bound():
    out = prediction_powered_rate(np.zeros(40), np.full(40, 5.0), single([0] * 40, [0] * 40))
    assert (out.value, out.low) == (0, 0)
    assert 0.05 < out.high < 0.15


@pytest.mark.parametrize("labels", [0, 5])
def test_an_empty_base_is_refused(labels):
    sample = single([0] * labels, [0] * labels)
    with pytest.raises(ValueError, match="no "):
        prediction_powered_rate(np.zeros(5), np.zeros(5) if labels else np.ones(5), sample)


responses = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 9), st.booleans(), st.booleans(), st.floats(0.1, 50)),
    min_size=3,
    max_size=40,
)


def of_rows(rows):
    endorsed = np.array([float(f) + machine for f, _, _, machine, _ in rows])
    n = np.array([float(f + rest) + 1 for f, rest, _, _, _ in rows])
    return endorsed, n, single([r[2] for r in rows], [r[3] for r in rows], [r[4] for r in rows])


@given(responses)
def test_the_interval_holds_its_value_and_stays_in_range(rows):
    out = prediction_powered_rate(*of_rows(rows))
    assert 0 <= out.low <= out.value <= out.high <= 1
    assert 0 <= out.power <= 1


@given(responses, st.floats(0.01, 100))
def test_only_the_proportions_of_the_weights_count(rows, factor):
    endorsed, n, labelled = of_rows(rows)
    scaled = LabelledSample(
        cluster=labelled.cluster, human=labelled.human, machine=labelled.machine, weight=labelled.weight * factor
    )
    one, other = prediction_powered_rate(endorsed, n, labelled), prediction_powered_rate(endorsed, n, scaled)
    assert (one.value, one.low, one.high) == pytest.approx((other.value, other.low, other.high), abs=1e-6)


@given(responses, st.randoms(use_true_random=False))
def test_the_order_of_the_labels_does_not_matter(rows, random):
    endorsed, n, labelled = of_rows(rows)
    order = list(range(len(rows)))
    random.shuffle(order)
    mixed = LabelledSample(
        cluster=labelled.cluster[order],
        human=labelled.human[order],
        machine=labelled.machine[order],
        weight=labelled.weight[order],
    )
    one, other = prediction_powered_rate(endorsed, n, labelled), prediction_powered_rate(endorsed, n, mixed)
    assert (one.value, one.low, one.high) == pytest.approx((other.value, other.low, other.high), abs=1e-6)


@pytest.mark.parametrize("stratified", [False, True], ids=["equal", "unequal"])
@pytest.mark.parametrize("judge", sorted(JUDGES))
@pytest.mark.parametrize("rate", [0.03, 0.3])
def test_intervals_hold_and_judges_narrow_them(rate, judge, stratified):
    """200 audits: three standard errors about .95 are .90 to 1."""
    held = hold(ReviewWorld(rate=rate, judge=judge, stratified=stratified), 200, seed=1)
    assert held.covered >= 0.90
    assert held.width <= (1.01 if judge == "useless" else 0.99) * held.human_width


def signed(rows):
    """A sample and counts of a variable in {-1, 0, 1}."""
    d = np.array([float(f - rest) for f, rest, *_ in rows])
    n = np.array([float(f + rest) + 1 for f, rest, *_ in rows])
    return d, n, single([r[2] - r[3] for r in rows], [r[3] for r in rows], [r[4] for r in rows])


@given(responses)
def test_a_difference_changes_its_sign_with_its_parts(rows):
    d, n, labelled = signed(rows)
    turned = replace(labelled, human=-labelled.human, machine=-labelled.machine)
    one, other = prediction_powered_difference(d, n, labelled), prediction_powered_difference(-d, n, turned)
    assert -1 <= one.low <= one.value <= one.high <= 1
    assert (one.value, one.low, one.high) == pytest.approx((-other.value, -other.high, -other.low), abs=1e-6)


@given(responses, st.sampled_from([0.0, 1.0]))
def test_ir_and_dni_are_sums_of_the_two_kinds_of_disagreement(rows, power):
    """With one power for all, DNI = OED - UED, as the values are linear in the labels."""
    _, n, over = of_rows(rows)
    under = replace(over, human=over.machine, machine=over.human)
    tops = n / 2, n / 4
    one, other = (
        prediction_powered_rate(top, n, each, power=power).value for top, each in zip(tops, (over, under), strict=True)
    )
    both = replace(over, human=over.human - under.human, machine=over.machine - under.machine)
    difference = prediction_powered_difference(tops[0] - tops[1], n, both, power=power).value
    if 0 < one < 1 and 0 < other < 1 and abs(difference) < 1:
        assert difference == pytest.approx(one - other, abs=1e-9)


@given(responses)
def test_a_ratio_to_all_responses_is_the_rate(rows):
    endorsed, n, labelled = of_rows(rows)
    everything = replace(labelled, human=np.ones(len(rows)), machine=np.ones(len(rows)))
    rate, ratio = (
        prediction_powered_rate(endorsed, n, labelled),
        prediction_powered_ratio(endorsed, n, n, labelled, everything),
    )
    assert ratio is not None
    assert (ratio.value, ratio.low, ratio.high) == pytest.approx((rate.value, rate.low, rate.high), abs=1e-9)


def test_a_ratio_without_a_base_is_none():
    nothing = single([0] * 40, [1] * 40)
    assert prediction_powered_ratio(np.ones(40), np.ones(40), np.full(40, 5.0), nothing, nothing) is None


@pytest.mark.parametrize("judge", sorted(JOINT_JUDGES))
@pytest.mark.parametrize("truth", ["rare", "some"])
def test_labels_of_both_layers_cover_ir_dni_union_and_cor(truth, judge, thorough):
    """300 audits of 300 labels: three standard errors about .95 are .912 to .988."""
    audits = 300 if thorough else 100
    error = 3 * (0.95 * 0.05 / audits) ** 0.5
    world = JointWorld(truth=truth, judge=judge)
    for measure, held in hold_joint(world, audits, seed=1).items():
        assert 0.95 - error <= held.covered <= min(0.95 + error, 1), measure
        assert held.width <= 1.01 * held.human_width


def test_the_lexicons_own_ir_and_dni_are_far_from_the_truth():
    """Without labels of people, the machine's intervals miss what the corrected ones hold."""
    world = JointWorld(truth="rare", judge="lexicon")
    cluster, _, machine, _, _ = world.audit(np.random.default_rng(0))
    n = np.bincount(cluster).astype(float)
    differs = design_effect_wilson(np.bincount(cluster, ((machine == 1) | (machine == 2)).astype(float)), n)
    assert differs.low > 3 * world.expected("ir")
