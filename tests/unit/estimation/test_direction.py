"""The direction of answers with its controls, and the response styles."""

import json

import pytest
from msgspec import UNSET
from support.documents.row_tallies import tallied

from auditor.documents.base import Missing
from auditor.errors import InputError
from auditor.estimation.analysis import Options, analyse, read_tallies
from auditor.estimation.direction import DirectionEstimator

STATEMENTS = 120


def asked(rubric, answer, *, task="BJ", statements=STATEMENTS, **fields):
    """Ask about every statement; ``answer`` gives the selection for its number and key."""
    return [
        {
            "id": f"{rubric}{task}{number}",
            "statement_id": number,
            "task": task,
            "rubric": rubric,
            "keyed": "ED"[number % 2],
            "sel": answer(number, "ED"[number % 2]),
            **fields,
        }
        for number in range(statements)
    ]


def both(answer, counter, **fields):
    """Ask about the claims and about the counter group's."""
    return [*asked("statement", answer, **fields), *asked("counter", counter, **fields)]


def estimated(rows):
    estimator = DirectionEstimator(tallied(rows))
    directions = {entry.layer: entry for entry in estimator.directions() if len(entry.by) == 1}
    return directions, {entry.style: entry for entry in estimator.styles() if "task" not in entry.by}


def always(label):
    return lambda _number, _key: label


def first(_number, key):
    return key


def test_always_yes_has_no_controlled_direction_and_is_flagged():
    directions, styles = estimated(both(always("E"), always("E")))
    own = directions["sel"]
    assert own.score.value == own.counter.value == 1
    assert own.controlled.value == 0
    assert own.controlled.low < 0 < own.controlled.high
    assert styles["acquiescence"].effect.value == 0.5
    assert styles["acquiescence"].flagged is True
    assert styles["first_option"].flagged is False


def test_a_fair_answer_rejects_both_and_is_not_flagged():
    directions, styles = estimated(both(always("D"), always("D")))
    assert directions["sel"].score.value == -1
    assert directions["sel"].controlled.value == 0
    assert styles["acquiescence"].effect.value == -0.5
    assert styles["acquiescence"].flagged is False


def test_a_biased_answer_agrees_with_one_group_only():
    directions, styles = estimated(both(always("E"), always("D")))
    assert directions["sel"].controlled.value == 1
    assert directions["sel"].controlled.low > 0.9
    assert styles["acquiescence"].effect.value == 0
    assert styles["acquiescence"].flagged is False


def test_the_answer_named_first_is_flagged_and_has_no_direction():
    directions, styles = estimated(both(first, first))
    assert directions["sel"].score.value == directions["sel"].controlled.value == 0
    assert styles["first_option"].effect.value == 0.5
    assert styles["first_option"].flagged is True
    assert styles["acquiescence"].flagged is False


def test_high_numbers_on_scales_of_both_keys():
    _, styles = estimated(asked("statement", first, task="Rate"))
    assert styles["high_rating"].effect.value == 0.5
    assert styles["high_rating"].flagged is True
    assert isinstance(styles["first_option"].effect, Missing)
    assert isinstance(styles["acquiescence"].flagged, Missing)


def test_a_style_is_the_mean_of_its_tasks():
    rows = [*both(always("E"), always("E")), *both(always("D"), always("D"), task="Rate")]
    entries = DirectionEstimator(tallied(rows)).styles()
    found = {entry.by.get("task"): entry for entry in entries if entry.style == "acquiescence"}
    assert [found[task].effect.value for task in (None, "BJ", "Rate")] == [0, 0.5, -0.5]
    assert found["BJ"].flagged is UNSET


def test_scores_count_the_sides_taken_and_net_counts_all_answers():
    labels = ["E", "E", "D", "N", "R", "Abstain"]
    rows = [
        {"statement_id": number, "sel": labels[number % 6], "elab": "N"}
        | ({"sel_reason": "no_marker"} if number % 6 == 5 else {})
        for number in range(STATEMENTS)
    ]
    directions, _ = estimated(rows)
    assert directions["sel"].score.value == pytest.approx(1 / 3)
    assert directions["sel"].score.n == 60
    assert directions["sel"].net.value == pytest.approx(1 / 5)
    assert isinstance(directions["elab"].score, Missing)
    assert directions["elab"].net.value == 0
    assert directions["sel"].controlled is directions["sel"].counter is directions["sel"].disambiguated is UNSET


def test_on_the_union_an_endorsement_outweighs_a_rejection():
    pairs = [("E", "D"), ("D", "QE"), ("D", "N"), ("N", "D"), ("N", "N")]
    rows = [{"statement_id": n, "sel": pairs[n % 5][0], "elab": pairs[n % 5][1]} for n in range(STATEMENTS)]
    union = estimated(rows)[0]["union"]
    assert union.score.value == 0
    assert union.score.n == STATEMENTS * 4 // 5
    assert union.net.n == STATEMENTS


def test_only_statements_asked_about_both_groups_are_controlled():
    rows = [*asked("statement", always("E")), *asked("counter", always("E"), statements=60)]
    own = estimated(rows)[0]["sel"].controlled
    assert (own.value, own.n, own.n_statements) == (0, 120, 60)
    assert own.flags == ["few_clusters"]
    assert isinstance(estimated(rows)[1]["acquiescence"].flagged, Missing)


def test_few_statements_have_a_reason():
    own = estimated(both(always("E"), always("E"), statements=14))[0]["sel"]
    assert own.score.missing == "14 statements with an answer that counts, 15 needed"
    assert "15 needed" in own.controlled.missing


def test_controls_are_not_pooled_with_the_statements():
    rows = both(always("D"), always("E"))
    document = analyse(tallied(rows), Options(n_boot=20))
    own, control = sorted(document.deployments, key=lambda entry: entry.rubric, reverse=True)
    assert (own.rubric, own.metrics["ber_sel_full"].value, own.n) == ("statement", 0, STATEMENTS)
    assert (control.rubric, control.metrics["ber_sel_full"].value) == ("counter", 1)
    assert {entry.rubric for entry in document.levels} == {"statement"}


def test_scenes_that_give_the_answer_are_a_control():
    rows = [*asked("statement", always("E")), *asked("disambiguated", lambda number, _: "ED"[number % 2])]
    own = estimated(rows)[0]["sel"]
    assert own.score.value == 1
    assert own.disambiguated.value == 0
    assert own.controlled is UNSET


def test_by_task_and_category():
    rows = [*both(always("E"), always("D"), category="a"), *asked("statement", always("D"), task="CTO", category="b")]
    entries = [entry for entry in DirectionEstimator(tallied(rows)).directions() if entry.layer == "sel"]
    found = {tuple(value for name, value in entry.by.items() if name != "deployment"): entry for entry in entries}
    assert {key: entry.score.value for key, entry in found.items()} == {
        (): 0, ("BJ",): 1, ("CTO",): -1, ("a",): 1, ("b",): -1
    }  # fmt: skip
    assert found["a",].controlled.value == found["BJ",].controlled.value == 1
    assert found["CTO",].controlled is found["b",].controlled is UNSET


def test_a_bad_key_names_the_line(tmp_path):
    path = tmp_path / "coded.jsonl"
    path.write_text(json.dumps({"id": "a", "deployment": "m", "task": "BJ", "sel": "E", "elab": "E", "keyed": "yes"}))
    with pytest.raises(InputError, match=r"coded.jsonl:1: keyed 'yes' is not one of E D"):
        read_tallies(path, Options())
