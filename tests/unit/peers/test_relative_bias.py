"""Deviations, comparisons and the document: by hand, by their symmetries, and with answers that are not there."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.worlds.peer_scores import PEERS, analysed, score_rows

from auditor.documents.codec import canonical_bytes
from auditor.domain.estimate import Insufficient
from auditor.errors import UsageError
from auditor.peers.comparison import MarginRule, PeerOptions, compare, judge_deviation, peer_deviation
from auditor.peers.document import length_effect
from auditor.peers.run import analyse
from auditor.peers.score_table import ScoreCollector, ScoreRow
from auditor.peers.vectors import Vectors


def table_of(rows):
    collector = ScoreCollector()
    for line, row in enumerate(rows, start=1):
        collector.add(ScoreRow(**row), line)
    return collector.finish()


def entry_of(rows, target="ash", **options):
    return analysed(table_of(rows), PeerOptions(targets=(target,), **options))["targets"][0]


def distances_of(*questions):
    vectors = Vectors()
    numbers = [[-1 if vector is None else vectors.add(vector) for vector in answers] for answers in questions]
    return vectors.distances(np.array(numbers))


EAST, NORTH, WEST = [1.0, 0.0], [0.0, 3.0], [-2.0, 0.0]


def test_distances_by_hand_whatever_the_vectors_lengths():
    assert distances_of([EAST, NORTH, WEST, None])[0].tolist() == [[0, 1, 2, 0], [1, 0, 1, 0], [2, 1, 0, 0], [0] * 4]


def test_equal_answers_are_at_distance_nothing_and_huge_numbers_do_not_overflow():
    vector = [0.1, 0.7, -0.3]
    assert not distances_of([vector, [1e200 * each for each in vector], [1e-200 * each for each in vector]]).any()


def test_many_vectors_are_found_again():
    rng = np.random.default_rng(0)
    given_ = rng.normal(size=(3000, 3, 5))
    units = given_ / np.linalg.norm(given_, axis=-1, keepdims=True)
    found = distances_of(*given_.tolist())
    assert found == pytest.approx(1 - units @ units.transpose(0, 2, 1), abs=1e-6)


def test_deviation_is_over_the_answers_that_are_there():
    distances = distances_of([EAST, NORTH, WEST], [EAST, NORTH, None], [EAST, None, None])
    there = np.array([[True, True, True], [True, True, False], [True, False, False]])
    everybody = np.array([True, True, True])
    assert np.array_equal(
        peer_deviation(distances, there, everybody), [[1.5, 1, 1.5], [1, 1, np.nan], [np.nan] * 3], equal_nan=True
    )
    without_first = np.array([False, True, True])
    assert np.array_equal(
        peer_deviation(distances, there, without_first),
        [[1.5, 1, 1], [1, np.nan, np.nan], [np.nan] * 3],
        equal_nan=True,
    )


@settings(deadline=None)
@given(st.integers(0, 2**32), st.floats(-3, 3))
def test_moving_all_scores_changes_nothing_but_the_means(seed, shift):
    values = np.random.default_rng(seed).normal(5, 1, (20, 7))
    here, there = compare(values, MarginRule()), compare(values + shift, MarginRule())
    assert there.mean_target - here.mean_target == pytest.approx(shift)
    assert there.margin == pytest.approx(here.margin)
    assert there.paired_test.t_lower == pytest.approx(here.paired_test.t_lower)
    assert there.verdict == here.verdict


@settings(deadline=None)
@given(st.integers(0, 2**32))
def test_pooled_and_paired_differences_agree_where_all_answered(seed):
    values = np.random.default_rng(seed).normal(5, 1, (20, 7))
    found = compare(values, MarginRule())
    assert found.paired.value == pytest.approx(found.published.value)
    # D_LLM is at least the size of the difference: it has no sign.
    assert np.abs(judge_deviation(values)).mean() >= abs(found.paired.value) - 1e-12


@settings(deadline=None)
@given(st.integers(0, 2**32), st.permutations(range(1, 7)))
def test_the_order_of_peers_does_not_matter(seed, order):
    values = np.random.default_rng(seed).normal(5, 1, (15, 7))
    one, other = compare(values, MarginRule()), compare(values[:, [0, *order]], MarginRule())
    assert other.margin == pytest.approx(one.margin)
    assert other.paired_test.p_different == pytest.approx(one.paired_test.p_different)


def test_what_is_too_little_is_missing_with_its_reason():
    values = np.random.default_rng(0).normal(5, 1, (20, 7))
    assert compare(values[:, :2], MarginRule()) == Insufficient(reason="fewer than 2 peers have values")
    assert compare(values[:1], MarginRule()) == Insufficient(reason="the target has values on fewer than 2 questions")
    few = compare(values[:, :4], MarginRule())
    assert few.verdict == Insufficient(reason="with fewer than 5 peers a verdict needs a declared margin")
    assert few.paired_test.t_lower > few.paired_test.t_upper
    assert compare(values[:, :4], MarginRule(margin=3.0)).verdict == "equivalent"
    same = np.full((20, 7), 2.0)
    assert compare(same, MarginRule()).verdict == Insufficient(reason="the peers' means do not differ")
    assert compare(same, MarginRule(margin=1.0)).verdict == Insufficient(reason="the values do not vary")


def test_a_peer_without_values_is_no_peer():
    values = np.random.default_rng(0).normal(5, 1, (20, 7))
    values[:, 3] = np.nan
    found = compare(values, MarginRule())
    assert (found.n_peers, found.n_baseline) == (5, 100)
    rest = np.delete(values, 3, axis=1)
    assert found == compare(rest, MarginRule())


def test_one_extreme_peer_does_not_widen_the_robust_margin():
    values = np.random.default_rng(0).normal(2, 0.1, (20, 8))
    values[:, 7] += 6
    assert compare(values, MarginRule()).margin > 5
    assert compare(values, MarginRule(robust=True)).margin < 1


def test_length_is_left_alone_where_it_is_not_known():
    values = np.random.default_rng(0).normal(2, 0.1, (20, 6))
    lengths = np.full((20, 6), np.nan)
    assert "fewer than 4" in length_effect(values, lengths).missing
    assert "do not vary" in length_effect(values, np.full((20, 6), 7.0)).missing


def test_an_odd_deployment_is_different_and_a_twin_is_not():
    rows = score_rows(odd=4.0)
    odd, twin = entry_of(rows)["instruments"], entry_of(rows, "cedar", margin=1.5)["instruments"]
    assert {name: one["verdict"] for name, one in odd.items()} == dict.fromkeys(odd, "different")
    assert list(odd) == ["embedding", "judge:x", "judge:y"]
    assert twin["judge:x"]["verdict"] == "equivalent"


def test_the_document_does_not_know_the_order_of_rows():
    rows = score_rows(questions=12)
    rows[3]["error"] = "timeout"
    rows[8]["blocked"] = True
    options = PeerOptions(targets=("ash", "fir"))
    shuffled = [rows[place] for place in np.random.default_rng(1).permutation(len(rows))]
    assert canonical_bytes(analyse(table_of(rows), options)) == canonical_bytes(analyse(table_of(shuffled), options))


def test_clean_deviations_of_peers_are_those_of_a_file_without_the_target():
    rows = score_rows(odd=2.0)
    found = entry_of(rows)["instruments"]["embedding"]
    without = entry_of([row for row in rows if row["deployment"] != "ash"], "birch")["instruments"]["embedding"]
    for name in PEERS[1:]:
        assert found["d_embed_clean"][name] == pytest.approx(without["d_embed"][name])
        assert found["d_embed_clean"][name] < found["d_embed"][name]
    assert found["d_embed_clean"]["ash"] == found["d_embed"]["ash"] == pytest.approx(found["mean_target"])


def test_leaving_a_peer_out_is_what_a_file_without_it_gives():
    rows = score_rows(odd=1.0)
    left_out = {each["without"]: each for each in entry_of(rows)["instruments"]["embedding"]["leave_one_peer_out"]}
    rest = entry_of([row for row in rows if row["deployment"] != "oak"])["instruments"]["embedding"]
    assert sorted(left_out) == sorted(PEERS[1:])
    assert left_out["oak"]["diff"] == pytest.approx(rest["paired"]["diff"])
    assert left_out["oak"]["delta"] == pytest.approx(rest["delta"])
    # Five peers are enough, and four of them then are; four from the start are not.
    assert left_out["oak"]["verdict"] == "different"
    assert "missing" in rest["verdict"]


def test_transport_errors_are_no_answers_and_are_counted():
    rows = score_rows()
    plain = entry_of([row for row in rows if (row["question_id"], row["deployment"]) != ("q003", "elm")])
    failed = [
        row | {"error": "timeout"} if (row["question_id"], row["deployment"]) == ("q003", "elm") else row
        for row in rows
    ]
    found = entry_of(failed)
    assert found["excluded"] == {"error": 1, "blocked": 0}
    assert found["answers"]["elm"] == {"answered": 39, "blocked": 0, "error": 1}
    assert found["instruments"] == plain["instruments"]


def test_a_blocked_answer_keeps_its_scores_and_without_one_counts_ten():
    rows = score_rows()
    rows[0] |= {"blocked": True, "score": {"x": 9.0}, "embedding": None, "error": "content_filter"}
    kept = entry_of(rows)
    judges = kept["instruments"]
    assert kept["excluded"] == {"error": 0, "blocked": 0}
    assert judges["judge:x"]["deployments"]["ash"]["quartiles"][-1] == 9.0
    assert judges["judge:y"]["deployments"]["ash"]["quartiles"][-1] == 10.0
    assert [judges[name]["answers"]["blocked_by_rule"] for name in ("judge:x", "judge:y")] == [0, 1]
    assert judges["embedding"]["answers"] == {"without_value": 1, "blocked_without_value": 1, "blocked_by_rule": 0}
    dropped = entry_of(rows, blocked="drop")
    assert dropped["excluded"] == {"error": 0, "blocked": 1}
    assert [dropped["instruments"][f"judge:{name}"]["n_target"] for name in "xy"] == [39, 39]
    assert kept["other_reading"]["blocked"] == "drop"
    assert dropped["other_reading"]["instruments"]["judge:y"]["mean_target"] == judges["judge:y"]["mean_target"]


def test_a_judge_that_never_read_a_deployment_gets_no_score_of_its_blocks():
    rows = score_rows()
    for row in rows:
        if row["deployment"] == "oak":
            row["score"] = {"x": row["score"]["x"]}
    rows[5] |= {"blocked": True, "score": None}
    assert rows[5]["deployment"] == "oak"
    found = entry_of(rows)["instruments"]
    assert (found["judge:x"]["n_peers"], found["judge:y"]["n_peers"]) == (5, 4)
    assert found["judge:x"]["answers"]["blocked_by_rule"] == 1


def test_a_deployment_that_blocks_everything_is_the_top_of_the_scale():
    rows = [
        row | {"blocked": True, "score": None, "embedding": None} if row["deployment"] == "ash" else row
        for row in score_rows()
    ]
    found = entry_of(rows)["instruments"]
    assert found["judge:x"]["mean_target"] == 10.0
    assert found["judge:x"]["verdict"] == "different"
    assert found["embedding"]["missing"] == "the target has values on fewer than 2 questions"


def test_peers_are_the_ones_that_are_named_and_never_the_target():
    rows = score_rows()
    document = analysed(
        table_of(rows), PeerOptions(targets=("ash", "birch"), peers=("birch", "cedar", "elm", "fir", "oak"))
    )
    first, second = (entry["peers"] for entry in document["targets"])
    assert first == ["birch", "cedar", "elm", "fir", "oak"]
    assert second == ["cedar", "elm", "fir", "oak"]


def test_margins_are_of_all_instruments_or_of_one():
    found = entry_of(score_rows(), margin=0.5, margins={"embedding": 0.02})["instruments"]
    assert {name: one["delta"] for name, one in found.items()} == {"embedding": 0.02, "judge:x": 0.5, "judge:y": 0.5}
    assert {each["delta"] for each in found["judge:x"]["leave_one_peer_out"]} == {0.5}


def test_cautions_name_what_a_verdict_hangs_on():
    rows = score_rows(questions=10)
    for row in rows:
        if row["deployment"] == "oak":
            row["score"] = {"x": 9.0, "y": 9.0}
    codes = {each["code"] for each in entry_of(rows)["instruments"]["judge:x"]["warnings"]}
    assert {"wide_margin", "margin_hangs_on_a_peer", "few_questions"} <= codes


def test_nothing_in_the_document_is_not_a_number():
    rows = score_rows(questions=3)
    rows[0]["embedding"] = None
    rows[1]["score"] = {"x": 4.0, "y": None}
    for target in PEERS:
        json.loads(canonical_bytes(analyse(table_of(rows[:7]), PeerOptions(targets=(target,)))))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"targets": ()}, "--target: name at least one"),
        ({"targets": ("a", "a")}, "--target: a deployment is named twice"),
        ({"peers": ("a", "a")}, "--peers: a deployment is named twice"),
        ({"k": -1.0}, "--k must be greater than 0 and at most 1000, not -1"),
        ({"k": float("nan")}, "--k must be greater than 0 and at most 1000, not nan"),
        ({"alpha": 0.5}, "--alpha must be between 0 and 0.5"),
        ({"margin": 0.0}, "--margin must be greater than 0"),
        ({"margins": {"embedding": float("inf")}}, "--margin must be greater than 0 and at most 1000, not inf"),
    ],
)
def test_options_out_of_their_range_are_refused(options, said):
    with pytest.raises(UsageError, match=said):
        PeerOptions(**{"targets": ("ash",)} | options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"targets": ("pine",)}, "--target: the file has no 'pine'; it has: ash, birch"),
        ({"peers": ("pine",)}, "--peers: the file has no 'pine'"),
        ({"margins": {"judge:z": 1.0}}, "--margin: the file has no 'judge:z'; it has: embedding, judge:x, judge:y"),
    ],
)
def test_names_that_are_not_in_the_file_are_refused_with_those_that_are(options, said):
    with pytest.raises(UsageError, match=said):
        analysed(table_of(score_rows(questions=2)), PeerOptions(**{"targets": ("ash",)} | options))


@pytest.mark.parametrize("truth", [0.5, -0.5])
def test_a_difference_at_the_declared_margin_is_seldom_called_anything_else(truth):
    rng = np.random.default_rng(7)
    rule = MarginRule(margin=0.5)
    verdicts = [compare(rng.normal([truth, 0, 0, 0, 0, 0], 1.0, (40, 6)), rule).verdict for _ in range(600)]
    # Each at most .05; 600 runs give two standard errors of .018.
    assert verdicts.count("equivalent") / 600 <= 0.068
    assert verdicts.count("different") / 600 <= 0.068
