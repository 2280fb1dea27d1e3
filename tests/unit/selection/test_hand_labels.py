"""The rules against real answers that were read and labelled by hand. Skipped where the data is absent.

``docs/design/2026-11-23-selection-accuracy.md`` has the labelling guide, the numbers and every class of disagreement.
"""

from collections import defaultdict
from functools import cache

import pytest
from support.documents.labelled_answers import sampling
from support.documents.labelled_answers.labelled import LAST_LOOK, REAL, Labelled, bbq_repeated, hand_labels, share

pytestmark = pytest.mark.skipif(not sampling.DECODINGTRUST.exists(), reason="the data is not on this machine")


@cache
def real(sample: str) -> tuple[Labelled, ...]:
    """The answers of a sample, each with what the rules and the hand say."""
    return tuple(REAL[sample](sample))


@pytest.mark.slow
def test_the_samples_are_the_ones_that_were_drawn():
    drawn = (
        sampling.decodingtrust_samples()
        | sampling.llm_values_samples()
        | sampling.level_samples()
        | sampling.bbq_samples()
    )
    assert {name: len(keys) for name, keys in drawn.items()} == {
        "tuning": 400,
        "held_out": 150,
        "options_tuning": 50,
        "options_held_out": 50,
        "levels_tuning": 80,
        "levels_held_out": 80,
        "bbq_tuning": 80,
        "bbq_held_out": 78,
    }
    taken = frozenset(key for keys in drawn.values() for key in keys)
    for look, sizes in (("unseen", (120, 40, 60)), ("unseen_2", (120, 35, 60))):
        found = sampling.unseen_samples(look, taken)
        assert tuple(map(len, found.values())) == sizes
        drawn |= found
        taken |= frozenset(key for keys in found.values() for key in keys)
    for name, keys in drawn.items():
        assert set(keys) == set(hand_labels(name))


def test_no_unseen_row_is_in_the_half_that_rules_are_tuned_on():
    assert all(sampling.is_held_out(key) for name in LAST_LOOK for key in hand_labels(name))


def test_the_rules_agree_with_the_hand_on_the_last_look_at_the_held_out_half():
    rows = [row for name in LAST_LOOK for row in real(name)]
    assert share(rows) >= 0.97
    for task in ("BJ", "closed set"):
        assert share(row for row in rows if row.task == task) >= 0.92


@pytest.mark.slow
@pytest.mark.parametrize("as_set", [True, False], ids=["three options", "two options and the prompt's list"])
def test_answers_that_repeat_an_offered_option_are_that_option(as_set):
    """Read all answers of UnifiedQA that repeat one of the three offered answers word for word."""
    wrong = [row for row in bbq_repeated(as_set=as_set) if not row.agrees]
    assert [(row.hand, row.read.label) for row in wrong] == []


def test_the_rules_agree_with_the_hand_on_all_of_them_and_in_every_task():
    rows = [row for name in REAL for row in real(name)]
    tasks = {task: share(row for row in rows if row.task == task) for task in {row.task for row in rows}}
    assert share(rows) >= 0.97
    assert {task: found for task, found in tasks.items() if found < 0.92} == {}
    assert set(tasks) == {"BJ", "CTO", "closed set"}


@pytest.mark.parametrize("sample", REAL)
def test_the_rules_agree_with_the_hand_on_each_sample(sample):
    assert share(real(sample)) >= 0.95


def test_four_hundred_answers_in_every_stratum():
    strata = defaultdict(list)
    for row in real("tuning"):
        for name in row.strata:
            strata[name].append(row)
    large = {name: rows for name, rows in strata.items() if len(rows) >= 20}
    assert len(large) >= 20
    assert {name for name, rows in large.items() if share(rows) < 0.9} == set()
