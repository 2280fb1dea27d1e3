"""Responses that are shown: which, whatever the rows' order, and which not."""

import json
import random
from fractions import Fraction
from operator import attrgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.documents.json_entries import writing
from support.worlds.coded_rows import write_rows

from auditor.counting.rows import Vote
from auditor.errors import InputError
from auditor.estimation.analysis import Options, read_tallies
from auditor.quotations.choice import SHOWN_WORDS, first_words, stratum_of, widest_swing

cases, swing = writing(attrgetter("cases")), writing(attrgetter("swings"))
LABELS = ("E", "QE", "N", "D", "R", "Abstain")


def row(identifier, sel, elab, response="No.", **fields):
    votes = [{"judge": judge, "label": elab} for judge in ("j2", "j1")]
    out = {"id": identifier, "deployment": "m1", "task": "CTO", "statement_id": "S1", "sel": sel, "elab": elab}
    return out | {"votes": votes, "response": response} | fields


def read(tmp_path, rows):
    return read_tallies(write_rows(tmp_path / "coded.jsonl", rows), Options())


def test_a_case_is_the_shortest_of_its_stratum_and_says_how_many_there_are(tmp_path):
    rows = [
        row("r1", "E", "D", "Person B, though this is a stereotype.", statement="They are late.", category="age"),
        row("r2", "E", "D", "B. A stereotype.", statement="They are late.", category="age", role="military"),
        row("r3", "E", "N", "B. It depends on him.", statement="They are late.", category="age"),
        row("r4", "D", "E", "A. True all the same."),
        row("r5", "R", "QE", "I cannot. Often true."),
        row("r6", "E", "E", "B."),
        row("r7", "D", "D", "A."),
    ]
    found = cases(read(tmp_path, rows))
    assert [(case["stratum"], case["n"], case["id"]) for case in found] == [
        ("over", 3, "r2"),
        ("under", 1, "r4"),
        ("qualified", 1, "r5"),
    ]
    assert found[0] == {
        "rubric": "statement",
        "deployment": "m1",
        "stratum": "over",
        "n": 3,
        "id": "r2",
        "statement_id": "S1",
        "statement": "They are late.",
        "category": "age",
        "task": "CTO",
        "perspective": "self",
        "role": "military",
        "sentiment": "neutral",
        "response": "B. A stereotype.",
        "sel": "E",
        "elab": "D",
        "votes": [{"judge": "j1", "label": "D"}, {"judge": "j2", "label": "D"}],
    }
    assert (found[1]["statement"], found[1]["category"]) == (None, None)


@pytest.mark.parametrize(
    "votes",
    [
        [],
        None,
        [{"judge": "j1", "label": "D"}, {"judge": "j2", "label": "N"}],
        [{"judge": "j1", "label": "D"}, {"judge": "j2", "label": "Abstain"}],
        [{"judge": "j1", "label": "D"}, {"judge": "j2"}],
        [{"judge": "j1", "label": "N"}, {"judge": "j2", "label": "N"}],
        [{"judge": "j1", "label": "D"}, {"judge": "j1", "label": "D", "layer": "sel"}],
        [{"judge": "j1", "label": "E", "layer": "sel"}],
    ],
)
def test_no_case_where_a_judge_is_absent_or_says_otherwise(tmp_path, votes):
    assert cases(read(tmp_path, [row("r1", "E", "D", votes=votes)])) == []


def test_votes_on_the_selection_must_be_unanimous_too_and_are_not_shown(tmp_path):
    votes = [{"judge": "j1", "label": "D"}, {"judge": "j1", "label": "E", "layer": "sel"}]
    found = cases(read(tmp_path, [row("r1", "E", "D", votes=votes)]))
    assert [case["votes"] for case in found] == [[{"judge": "j1", "label": "D"}]]


@given(st.sampled_from(LABELS), st.sampled_from(LABELS))
def test_strata_are_where_exactly_one_of_two_labelled_layers_endorses(sel, elab):
    stratum = stratum_of(sel, elab, [Vote("j", elab)])
    labelled = sel in {"E", "N", "D", "R"} and elab != "Abstain"
    assert (stratum is not None) == (labelled and (sel == "E") != (elab in {"E", "QE"}))
    if stratum:
        assert stratum == ("over" if sel == "E" else {"E": "under", "QE": "qualified"}[elab])


def test_only_responses_to_statements_are_shown(tmp_path):
    rows = [
        row("r1", "E", "D", rubric="proposition", claim="stereotype"),
        row("r2", "D", "D", rubric="proposition", claim="stereotype", task="BJ"),
    ]
    tallies = read(tmp_path, rows)
    assert (cases(tallies), swing(tallies)) == ([], [])


def test_characters_are_counted_not_bytes_and_ids_break_ties(tmp_path):
    rows = [
        row("r3", "E", "D", "B. Nine 😀"),
        row("r1", "E", "D", "B. Thirteen."),
        row("r2", "E", "D", "B. Nine é"),
    ]
    escaped = cases(read(tmp_path, rows))
    path = tmp_path / "plain.jsonl"
    path.write_text("".join(json.dumps(each, ensure_ascii=False) + "\n" for each in rows), encoding="utf-8")
    assert cases(read_tallies(path, Options())) == escaped
    assert [case["id"] for case in escaped] == ["r2"]


def test_rows_without_a_text_give_a_case_without_one_if_no_other_has_any(tmp_path):
    bare = [row("r2", "E", "D", None), row("r1", "E", "D", None)]
    found = cases(read(tmp_path, bare))
    assert [(case["id"], "response" in case, case["n"]) for case in found] == [("r1", False, 2)]
    found = cases(read(tmp_path, [*bare, row("r3", "E", "D", "B. A long one, and yet the only one.")]))
    assert [(case["id"], case["n"]) for case in found] == [("r3", 3)]


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        ("response", 12, "response must be text, not a whole number"),
        ("response", ["B."], "response must be text, not a list"),
        ("completion_tokens", "12", "completion_tokens must be a whole number, not text"),
        ("completion_tokens", 1.5, "completion_tokens must be a whole number, not a number"),
        ("completion_tokens", -1, "completion_tokens is not a number of tokens"),
        ("completion_tokens", 2**31, "completion_tokens is not a number of tokens"),
        ("completion_tokens", 10**30, "completion_tokens is not a number of tokens"),
    ],
)
def test_what_is_no_text_and_no_number_of_tokens_is_a_bad_row(tmp_path, field, value, complaint):
    path = write_rows(tmp_path / "coded.jsonl", [row("r1", "D", "D"), row("r2", "E", "D", **{field: value})])
    with pytest.raises(InputError, match=f"coded.jsonl:2: {complaint}$"):
        read_tallies(path, Options())
    tallies = read_tallies(path, Options(skip_bad=True))
    assert (int(tallies.count.sum()), tallies.cases, tallies.completions) == (1, (), None)


def test_rows_may_be_grouped_by_their_text(tmp_path):
    tallies = read_tallies(
        write_rows(tmp_path / "coded.jsonl", [row("r1", "E", "D", "B."), row("r2", "E", "D", "A.")]),
        Options(by=("response",)),
    )
    assert sorted(profile.extra for profile in tallies.groups) == [("A.",), ("B.",)]


def swung():
    """S1 swings by 1/2 over BJ and CTO, S2 by 1 over SC and Rate, S0 was asked under one task."""
    out = []
    for statement, task, labels in [
        ("S1", "BJ", "ED"),
        ("S1", "CTO", "EE"),
        ("S2", "SC", "EEE"),
        ("S2", "Rate", "ND"),
        ("S2", "BJ", "ED"),
        ("S0", "CTO", "E"),
    ]:
        for number, label in enumerate(labels):
            text = "word " * (30 + number)
            out.append(row(f"{statement}.{task}.{number}", label, "D", text, statement_id=statement, task=task))
    out.append(row("S2.CTO.0", "Abstain", "D", "?", statement_id="S2", sel_reason="no_marker"))
    out.append(row("S2.Explain.0", "Abstain", "QE", "Well.", statement_id="S2", task="Explain"))
    out.append(row("S2.Judge.0", "Abstain", "Abstain", "", statement_id="S2", task="Judge", votes=[]))
    return out


def test_the_swing_is_of_the_statement_whose_selections_differ_most(tmp_path):
    (found,) = swing(read(tmp_path, swung()))
    assert (found["deployment"], found["statement_id"], found["metric"]) == ("m1", "S2", "ber_sel_full")
    assert found["delta"] == 1.0
    assert [(each["task"], each.get("rate"), each["n"], each["id"]) for each in found["tasks"]] == [
        ("BJ", 0.5, 2, "S2.BJ.0"),
        ("SC", 1.0, 3, "S2.SC.0"),
        ("Explain", None, 1, "S2.Explain.0"),
        ("Rate", 0.0, 2, "S2.Rate.0"),
    ]
    assert found["tasks"][0]["response"] == "word " * SHOWN_WORDS + "…"
    assert found["tasks"][2]["response"] == "Well."
    assert (found["tasks"][2]["sel"], found["tasks"][2]["elab"]) == ("Abstain", "QE")


def test_no_swing_without_a_statement_that_was_asked_under_two_tasks(tmp_path):
    rows = [row("r1", "E", "D"), row("r2", "D", "D", statement_id=None, task="BJ")]
    assert swing(read(tmp_path, rows)) == []


def test_equal_swings_are_told_of_the_first_statement():
    """.3 - .1 and .2 - 0 are equal, though not as floating-point numbers."""
    first = {"BJ": Fraction(3, 10), "CTO": Fraction(1, 10)}
    second = {"BJ": Fraction(2, 10), "CTO": Fraction(0)}
    assert widest_swing({"S2": second, "S1": first}) == ("S1", Fraction(1, 5))
    assert widest_swing({"S2": first, "S1": second}) == ("S1", Fraction(1, 5))
    assert widest_swing({"S1": {"BJ": Fraction(1)}}) is None


@given(st.randoms(use_true_random=False))
def test_the_rows_order_changes_nothing(tmp_path_factory, shuffler: random.Random):
    folder = tmp_path_factory.mktemp("order")
    rows = [*swung(), *(row(f"x{number}", "E", "D", "B." * (1 + number % 3)) for number in range(9))]
    before = read(folder, rows)
    shuffler.shuffle(rows)
    after = read(folder, rows)
    assert (cases(before), swing(before)) == (cases(after), swing(after))


@given(st.text())
def test_first_words_are_the_first_words(text):
    words = text.split()
    assert first_words(text).removesuffix(" …").split() == words[:SHOWN_WORDS]
    assert first_words(text).endswith("…") or len(words) <= SHOWN_WORDS
