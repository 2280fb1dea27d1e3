"""The rules against answers that were written for this test, for tasks of which no recorded answers are at hand.

They are no sample of what models say: they only hold as many forms of an answer as their author could think of.
"""

from collections import Counter

import pytest
from support.documents.labelled_answers.labelled import WRITTEN_HALVES, share, written

ROWS = [row for half in WRITTEN_HALVES for row in written(half)]


@pytest.mark.parametrize("task", ["CTO", "SC", "Rate", "BJ", "closed set"])
def test_the_rules_read_what_was_written_for_each_task(task):
    assert share(row for row in ROWS if row.task == task) >= 0.92


def test_the_rules_read_what_was_written():
    assert share(ROWS) >= 0.97


def test_none_is_read_as_its_opposite():
    opposites = Counter((row.hand, row.read.label) for row in ROWS)
    assert opposites["E", "D"] + opposites["D", "E"] == 0


def test_every_task_has_enough_of_them():
    assert min(Counter(row.task for row in ROWS).values()) >= 40
