"""The tables of the design note on the selection rules are the ones that the rules make today."""

import pytest
from support.documents.labelled_answers import sampling
from support.documents.labelled_answers.confusion import confusion_table
from support.documents.labelled_answers.labelled import REAL, WRITTEN_HALVES, written
from support.paths import DOCS

DOCUMENT = (DOCS / "design" / "2026-11-23-selection-accuracy.md").read_text()


def test_the_confusion_of_the_written_answers_is_documented():
    table = "\n".join(confusion_table(row for half in WRITTEN_HALVES for row in written(half)))
    assert table in DOCUMENT


@pytest.mark.slow
@pytest.mark.skipif(not sampling.DECODINGTRUST.exists(), reason="the data is not on this machine")
def test_the_confusion_of_the_real_answers_is_documented():
    table = "\n".join(confusion_table(row for sample, read in REAL.items() for row in read(sample)))
    assert table in DOCUMENT
