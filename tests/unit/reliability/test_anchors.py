"""The anchor set, and how a judge's runs over it are compared."""

from collections import Counter

import pytest

from auditor.coding.panel import has_elaboration
from auditor.instrument.pool import shipped_pool
from auditor.judges.loading import load_judges
from auditor.judges.rubric import OPEN, STATEMENT, digest, find_rubric
from auditor.reliability.anchors import ANCHOR_SET, anchor_coder, ask_anchors, compare, shipped_anchors

FROZEN = {one.id: one.label for one in shipped_anchors()}


def spoiled(*names, label="N"):
    """The frozen labels, some of them wrong."""
    return {**FROZEN, **dict.fromkeys(names, label)}


def test_the_set_covers_every_label_of_both_rubrics():
    counts = Counter((one.rubric, one.label) for one in shipped_anchors())
    assert len(FROZEN) == len(shipped_anchors()) == 40
    for rubric in (STATEMENT, OPEN):
        assert {label for kind, label in counts if kind == rubric} == set(find_rubric(rubric).labels)
    assert min(counts[STATEMENT, label] for label in find_rubric(STATEMENT).labels) >= 4


def test_each_anchor_is_a_text_and_names_a_statement_where_its_rubric_asks_for_one():
    pooled = {statement.statement for statement in shipped_pool()}
    for one in shipped_anchors():
        assert has_elaboration(one.text)
        assert (one.statement is None) == (one.rubric == OPEN)
        assert one.statement not in pooled, "an anchor must not be an audited statement"
    assert len({one.text for one in shipped_anchors()}) == 40


def test_a_published_set_never_changes():
    """Runs are stored with the set's name: a changed text or label needs another name, not a new digest here."""
    parts = [
        part or "" for one in shipped_anchors() for part in (one.id, one.rubric, one.statement, one.text, one.label)
    ]
    assert (ANCHOR_SET, digest(*parts)) == ("anchors/1", "83c46e5429fc")


async def test_the_lexicon_reads_them_and_its_labels_never_move():
    judges = [load_judges(["lexicon"], rubric=rubric)[0] for rubric in (STATEMENT, OPEN)]
    first, newest = await ask_anchors(judges), await ask_anchors(judges)
    standing = compare(first, newest)
    assert set(first) == set(FROZEN)
    assert set(first.values()) <= {"E", "QE", "N", "D", "R", "none", "Abstain"}
    assert (standing.same, standing.p, standing.dropped) == (40, 1.0, False)
    assert anchor_coder(judges).count("lexicon@") == 2


def test_agreement_is_counted_with_an_exact_interval():
    standing = compare(FROZEN, spoiled("statement-01", "statement-02"))
    assert (standing.n, standing.agreed, standing.first_agreed, standing.same) == (40, 38, 40, 38)
    assert (standing.low, standing.high) == pytest.approx((0.8308, 0.9939), abs=1e-4)
    assert (compare(FROZEN, FROZEN).low, compare(FROZEN, FROZEN).high) == (pytest.approx(0.025 ** (1 / 40)), 1.0)
    assert standing.p == 0.25
    assert not standing.dropped


def test_a_drop_is_told_and_a_move_without_one_is_not():
    lost = [f"statement-{number:02}" for number in range(1, 8)]
    assert compare(FROZEN, spoiled(*lost)).dropped
    assert not compare(FROZEN, spoiled(*lost[:6])).dropped
    moved = compare(spoiled(*lost), spoiled("open-01", "open-02", "open-03"))
    assert (moved.first_agreed, moved.agreed, moved.same, moved.dropped) == (33, 37, 30, False)


def test_a_refusal_is_a_label_lost():
    assert compare(FROZEN, spoiled(*list(FROZEN)[:7], label="Abstain")).agreed == 33
