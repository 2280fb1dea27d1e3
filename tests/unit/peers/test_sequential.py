"""Sequential verdicts on peers: the order of questions, what makes the margin, and the promise, scaled down."""

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from support.documents.json_entries import typed
from support.worlds.peer_scores import PEERS, score_rows
from support.worlds.peer_worlds import BOUNDARY, CHINA, US, peeked, shares

from auditor.documents.base import Missing
from auditor.documents.codec import canonical_bytes
from auditor.documents.peers import PeersDocument, SequentialEntry
from auditor.peers.comparison import MarginRule, PeerOptions, spread_margin
from auditor.peers.run import analyse
from auditor.peers.score_table import ScoreCollector, ScoreRow
from auditor.peers.sequential import question_order, sequential_verdict, watch
from auditor.report.peers import render_peers, sequence, sequential_text


def document_of(rows, target="ash", **options):
    collector = ScoreCollector()
    for line, row in enumerate(rows, start=1):
        collector.add(ScoreRow(**row), line)
    return json.loads(canonical_bytes(analyse(collector.finish(), PeerOptions(targets=(target,), **options))))


def sequential_of(rows, **options):
    instruments = document_of(rows, **options)["targets"][0]["instruments"]
    return {name: found["sequential"] for name, found in instruments.items()}


@given(st.lists(st.sampled_from(["a", "b", "c", None]), max_size=60), st.integers(0, 2**32))
def test_every_stretch_of_the_order_holds_each_theme_in_its_share(themes, seed):
    order = question_order(themes, seed).tolist()
    assert sorted(order) == list(range(len(themes)))
    for theme, n in Counter(themes).items():
        seen = np.cumsum([themes[place] == theme for place in order])
        # A theme's questions lie within their own n-ths, others' within theirs: one question of each theme either way.
        for end, count in enumerate(seen, start=1):
            assert abs(count - n * end / len(themes)) <= len(set(themes)) + 1


def test_the_order_is_drawn_and_always_the_same():
    themes = ["a", "b"] * 30
    order = question_order(themes)
    assert order.tolist() == question_order(themes).tolist()
    assert order.tolist() != sorted(order.tolist())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["scores, above", "normal, below", "themes, above"])
def test_at_the_boundary_either_verdict_is_rare(name):
    found = shares([peeked(BOUNDARY[name], seed) for seed in range(100)])
    for reading in ("bets", "sequence"):
        assert max(found[reading].equivalent, found[reading].different) <= 0.05
    assert found["naive"].equivalent + found["naive"].different > 0.1


@pytest.mark.parametrize(("world", "verdict", "most"), [(CHINA, "different", 20), (US, "equivalent", 140)])
def test_time_to_verdict(world, verdict, most):
    found = [peeked(world, seed) for seed in range(15)]
    assert {one.bets[0] for one in found} == {verdict} == {one.sequence[0] for one in found}
    assert np.median([one.bets[1] for one in found]) <= most


def test_questions_that_make_the_margin_are_not_tested():
    values = np.random.default_rng(1).normal([3, 2, 2.3, 2.1, 1.9, 2.0], 0.5, (81, 6))
    values[0] = np.nan
    found = sequential_verdict(values, 9.0, MarginRule(k=2.0))
    assert isinstance(found, SequentialEntry)
    assert found.n_calibration == 20
    assert found.margin == pytest.approx(spread_margin(values[1:21, 1:], 2.0))
    assert found.n == 60
    moved = values.copy()
    moved[1:21, 0] += 3
    assert sequential_verdict(moved, 9.0, MarginRule(k=2.0)) == found


def test_a_declared_margin_is_for_all_questions():
    values = np.random.default_rng(1).normal(2, 0.5, (30, 3))
    found = sequential_verdict(values, 9.0, MarginRule(margin=0.5))
    assert isinstance(found, SequentialEntry)
    assert (found.n_calibration, found.n, found.margin) == (0, 30, 0.5)


@pytest.mark.parametrize(
    ("values", "rule", "reason"),
    [
        (np.ones((9, 4)), MarginRule(), "with fewer than 5 peers a verdict needs a declared margin"),
        (np.ones((9, 6)), MarginRule(), "the peers' means do not differ"),
        (np.ones((9, 6)), MarginRule(margin=9.0), "no difference can exceed the margin"),
        (np.full((9, 6), np.nan), MarginRule(), "no questions are left to test"),
        (np.arange(6.0)[None], MarginRule(), "no questions are left to test"),
    ],
)
def test_why_there_is_no_verdict(values, rule, reason):
    assert sequential_verdict(values, 9.0, rule) == Missing(missing=reason)


def test_the_sequence_is_read_from_the_fiftieth_question_on():
    found = watch(np.random.default_rng(0).normal(4, 1, 60), 0.5, 9.0, 0.05)
    assert (found.read, found.read_after) == ("different", 50)
    assert [point.n for point in found.path] == list(range(1, 61))
    assert [point.low is UNSET for point in found.path] == [True] * 49 + [False] * 11


def test_what_the_document_says():
    found = sequential_of(score_rows(questions=120, odd=3.0), margin=0.5)
    judged = found["judge:x"]
    assert (judged["verdict"], judged["n"], judged["n_calibration"], judged["margin"]) == ("different", 120, 0, 0.5)
    assert judged["after"] < 40
    assert judged["e_different"] > np.log(20) > 0 > judged["e_upper"]
    assert judged["confidence_sequence"]["verdict"] == "different"
    assert judged["confidence_sequence"]["low"] > 0.5
    assert judged["path"][-1]["n"] == 120
    assert len(judged["path"]) <= 100
    assert "after" not in found["embedding"]


def test_the_document_of_few_questions_and_few_peers():
    few = sequential_of(score_rows(questions=20))["judge:x"]
    assert (few["n"], few["n_calibration"]) == (15, 5)
    assert few["confidence_sequence"] == {"missing": "fewer than 50 values"}
    missing = sequential_of(score_rows(deployments=PEERS[:4]))["judge:x"]
    assert missing == {"missing": "with fewer than 5 peers a verdict needs a declared margin"}


def test_missing_answers_leave_the_others_in_their_order():
    whole = sequential_of(score_rows(questions=60), margin=0.5)["judge:x"]
    rows = [row for row in score_rows(questions=60) if (row["question_id"], row["deployment"]) != ("q007", "ash")]
    assert sequential_of(rows, margin=0.5)["judge:x"]["n"] == whole["n"] - 1


def test_the_page_says_it_in_one_line_and_draws_it():
    document = document_of(score_rows(questions=80, odd=3.0), margin=0.5)
    found = typed(document["targets"][0]["instruments"]["judge:x"]["sequential"], SequentialEntry)
    assert sequential_text("judge:x", found) == (
        f"different after {found.after} questions by the betting test (δ = 0.5000, declared); "
        "different after 50 questions by the confidence sequence"
    )
    page = render_peers(typed(document, PeersDocument)).decode()
    assert sequential_text("judge:x", found) in page
    assert "judge:x: mean difference" in page


def test_a_short_path_is_drawn_and_a_missing_one_is_not():
    short = sequential_of(score_rows(questions=8), margin=0.5)["judge:x"]
    assert "<svg" in sequence("judge:x", typed(short, SequentialEntry), "ash")
    assert sequence("judge:x", Missing(missing="why"), "ash") is None
    assert sequential_text("judge:x", Missing(missing="why")) == "why"
