"""Two thousand simulated audits a world: does the corrected rate's interval hold, and what do the judges save?

200 statements, about 2,000 coded responses of which 300 have a person's label; answers and the machine's errors are
alike within a statement (ICC .3 and .2). Run by ``make measurements``; a scaled-down run is in
``tests/unit/stats/test_prediction_powered.py``.
"""

import pytest
from support.worlds.review_worlds import JOINT_JUDGES, JOINT_TRUTHS, JUDGES, JointWorld, ReviewWorld, hold, hold_joint

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]

AUDITS = 2000
#: The standard error of a coverage of .95 over so many audits.
NOISE = 0.005


@pytest.mark.parametrize("stratified", [False, True], ids=["equal", "unequal"])
@pytest.mark.parametrize("judge", sorted(JUDGES))
@pytest.mark.parametrize("rate", [0.03, 0.05, 0.1, 0.3, 0.5])
def test_nominal_95_covers_93_to_97_and_is_narrower_than_labels_alone(rate, judge, stratified):
    held = hold(ReviewWorld(rate=rate, judge=judge, stratified=stratified), AUDITS)
    inclusion = "unequal" if stratified else "equal"
    print(
        f"rate {rate}, {judge}, {inclusion}: covered {held.covered:.3f}, width {held.width:.4f};"
        f" labels alone {held.human_covered:.3f}, {held.human_width:.4f}; power {held.power:.2f}"
    )
    assert 0.93 <= held.covered <= 0.97 + NOISE
    if judge == "useless":
        assert held.width <= 1.01 * held.human_width
    else:
        assert held.width < held.human_width


@pytest.mark.parametrize(("labels", "most"), [(60, 0.98), (150, 0.97), (1000, 0.97)])
def test_few_and_many_labels(labels, most):
    """Of very few labels the one that might still go against the machine weighs more: the interval errs to be wide."""
    held = hold(ReviewWorld(rate=0.2, labels=labels), AUDITS)
    print(f"{labels} labels: covered {held.covered:.3f}, width {held.width:.4f}; labels alone {held.human_width:.4f}")
    assert 0.93 <= held.covered <= most
    assert held.width < held.human_width


def test_few_statements():
    held = hold(ReviewWorld(rate=0.3, statements=25, responses=40, labels=200), AUDITS)
    print(f"25 statements: covered {held.covered:.3f}, width {held.width:.4f}; labels alone {held.human_width:.4f}")
    assert 0.92 <= held.covered <= 0.97


@pytest.mark.parametrize("judge", sorted(JOINT_JUDGES))
@pytest.mark.parametrize("truth", sorted(JOINT_TRUTHS))
def test_labels_of_both_layers_cover_93_to_97(truth, judge):
    found = hold_joint(JointWorld(truth=truth, judge=judge), AUDITS)
    for measure, held in found.items():
        print(
            f"{truth}, {judge}, {measure}: covered {held.covered:.3f}, width {held.width:.4f};"
            f" labels alone {held.human_width:.4f}; power {held.power:.2f}"
        )
        assert 0.93 <= held.covered <= 0.97 + NOISE
        assert held.width <= 1.01 * held.human_width


@pytest.mark.parametrize("truth", sorted(JOINT_TRUTHS))
def test_a_quarter_of_the_labels_for_each_pair_of_readings(truth):
    """A label of a frequent pair then stands for many responses: the interval errs to be wide where few disagree."""
    for measure, held in hold_joint(JointWorld(truth=truth, stratified=True), AUDITS).items():
        print(f"{truth}, unequal, {measure}: covered {held.covered:.3f}, width {held.width:.4f}")
        assert held.covered >= 0.93


@pytest.mark.parametrize("labels", [100, 1000])
def test_other_numbers_of_labels_of_both_layers(labels):
    for measure, held in hold_joint(JointWorld(labels=labels), AUDITS).items():
        print(f"{labels} labels, {measure}: covered {held.covered:.3f}, width {held.width:.4f}")
        assert 0.93 <= held.covered <= 0.98
