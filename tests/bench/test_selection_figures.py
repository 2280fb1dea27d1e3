"""Prints the figures of ``docs/design/2026-11-23-selection-accuracy.md``.

``pytest -m bench -s tests/bench/test_selection_figures.py``
"""

from collections import Counter, defaultdict

import pytest
from support.documents.labelled_answers import sampling
from support.documents.labelled_answers.confusion import confusion_table
from support.documents.labelled_answers.labelled import (
    REAL,
    WRITTEN_HALVES,
    bbq_repeated,
    decodingtrust,
    share,
    written,
)

pytestmark = [
    pytest.mark.bench,
    pytest.mark.skipif(not sampling.DECODINGTRUST.exists(), reason="the data is not on this machine"),
]


@pytest.mark.parametrize("sample", REAL)
def test_agreement_with_the_hand_labels(sample):
    rows = list(REAL[sample](sample))
    strata = defaultdict(list)
    for row in rows:
        for name in row.strata:
            strata[name].append(row)
    large = [share(found) for found in strata.values() if len(found) >= 20]
    print(f"\n{sample}: {share(rows):.4f}; strata of 20 or more: {len(large)}, lowest {min(large, default=1):.3f}")
    print(f"  labels by hand: {dict(Counter(row.hand for row in rows).most_common())}")
    assert share(rows) > 0.9


def test_the_table_of_confusion():
    real = [row for sample, read in REAL.items() for row in read(sample)]
    invented = [row for half in WRITTEN_HALVES for row in written(half)]
    for rows in (real, invented):
        print("\n" + "\n".join(confusion_table(rows)))


@pytest.mark.parametrize("as_set", [True, False])
def test_answers_to_bbq_by_half(as_set):
    """Print the agreement on all answers that repeat an offered option, with and without the options as a set."""
    halves = defaultdict(list)
    for row in bbq_repeated(as_set=as_set):
        halves[row.strata[0][0]].append(row)
    for half, rows in halves.items():
        print(f"\nBBQ, as a set: {as_set}, {half}: {share(rows):.4f} of {len(rows)}")
        assert share(rows) > 0.99


def test_weighted_by_the_size_of_the_strata_and_the_authors_own_label():
    """Each cell of label, model and system prompt gave about as many rows; here it counts by its size."""
    sizes = Counter((str(row["label"]), row["model"], row["sys"]) for row in sampling.rows_of(sampling.DECODINGTRUST))
    authors, pairs = {"1": "E", "-1": "D", "0": "neither"}, []
    for sample in ("tuning", "held_out", "bj_unseen", "bj_unseen_2"):
        cells = defaultdict(list)
        for row in decodingtrust(sample):
            (label,), (model,), (system,) = row.strata[:3]
            cells[label, model, system].append(row)
            pairs.append((authors[label], row.hand if row.hand in "ED" else "neither"))
        total = sum(sizes[cell] for cell in cells)
        weighted = sum(sizes[cell] * share(found) for cell, found in cells.items()) / total
        print(f"\n{sample}, weighted by the size of its strata: {weighted:.4f}")
        assert weighted > 0.95
    print(f"the authors' regexp agrees with the hand on {sum(own == hand for own, hand in pairs)} of {len(pairs)} rows")
