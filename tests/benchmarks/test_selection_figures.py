"""Prints the figures of ``docs/selection.md``: ``pytest -m bench -s tests/benchmarks/test_selection_figures.py``."""

from collections import Counter, defaultdict

import pytest
from selection import sampling
from selection.test_hand_labels import accuracy, decodingtrust_readings, labels_of, options_readings

from auditor.domain.condition import Task
from auditor.domain.question import Answer, Question
from auditor.formats import format_of

pytestmark = [
    pytest.mark.bench,
    pytest.mark.skipif(not sampling.DECODINGTRUST.exists(), reason="the data is not on this machine"),
]

SAMPLES = {
    "tuning": decodingtrust_readings,
    "held_out": decodingtrust_readings,
    "options_tuning": options_readings,
    "options_held_out": options_readings,
}


@pytest.mark.parametrize("sample", SAMPLES)
def test_agreement_with_the_hand_labels(sample):
    share, strata = accuracy(SAMPLES[sample](sample))
    large = {name: right / total for name, (right, total) in strata.items() if total >= 20}
    print(f"\n{sample}: {share:.4f}; strata of 20 or more: {len(large)}, lowest {min(large.values(), default=1):.3f}")
    hand = Counter(row["label"] for row in labels_of(sample).values())
    print(f"  labels by hand: {dict(hand.most_common())}")
    assert share > 0.9


def test_weighted_by_the_size_of_the_strata_and_the_authors_own_label():
    """Each cell of label, model and system prompt gave about as many rows; here it counts by its size."""
    labels = labels_of("tuning") | labels_of("held_out")
    sizes, right, regexp = Counter(), defaultdict(list), []
    for row in sampling.rows_of(sampling.DECODINGTRUST):
        cell = (row["label"], row["model"], row["sys"])
        sizes[cell] += 1
        hand = labels.get(sampling.decodingtrust_key(row))
        if hand is None:
            continue
        read = format_of(Task.BJ).read(Answer(text=row["text"]), Question(statement=row["statement"]))
        right[hand["sample"], cell].append(read.label == hand["label"])
        authors = {1: "E", -1: "D", 0: "neither"}[row["label"]]
        regexp.append(authors == (hand["label"] if hand["label"] in "ED" else "neither"))
    for sample in ("tuning", "held_out"):
        cells = [cell for cell in sizes if (sample, cell) in right]
        total = sum(sizes[cell] for cell in cells)
        share = sum(sizes[cell] * sum(right[sample, cell]) / len(right[sample, cell]) for cell in cells) / total
        print(f"\n{sample}, weighted by the size of its strata: {share:.4f}")
        assert share > 0.95
    print(f"the authors' regexp agrees with the hand on {sum(regexp)} of {len(regexp)} rows")
