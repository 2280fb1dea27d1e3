"""Stored answers paired: the same question on different sides, each answer counted once, and what is left out told."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.counting.joint import LabelPair
from auditor.errors import UsageError
from replay.coding import AnswerLabels
from replay.pairing import MOST_ARMS, PairingSpec, pair
from replay.selection import ExchangeSelection
from replay.traffic import TrafficAnswer, read_grouping, system_of

SAID = LabelPair(sel="E", sel_reason=None, elab="E", elab_reason=None)


def answered(number: int, arm: str, question: str = "q1") -> TrafficAnswer:
    return TrafficAnswer(
        id=UUID(int=number), deployment="d", route="app", arm=arm, question=question, inclusion=1.0,
        completion_tokens=None,
    )  # fmt: skip


def labelled(*answers: TrafficAnswer, cluster: str = "c") -> Mapping[UUID, AnswerLabels]:
    label = AnswerLabels(coded=SAID, uncoded=None, rubric="proposition", claim="stereotype", cluster=cluster)
    return {one.id: label for one in answers}


def paired(*answers: TrafficAnswer) -> tuple[list[dict[str, int]], dict[str, int]]:
    """Numbers of the answers by side, of each parent; and what is left out."""
    left_out: Counter[str] = Counter()
    found = pair(answers, labelled(*answers), left_out)
    return [{arm: one.id.int for arm, one in each.items()} for each in found.values()], +left_out


def test_the_first_answers_are_a_pair_and_the_second_are_another() -> None:
    found, left_out = paired(
        answered(1, "a"), answered(2, "a"), answered(3, "a"), answered(4, "b"), answered(5, "b"), answered(6, "c")
    )
    assert found == [{"a": 1, "b": 4, "c": 6}, {"a": 2, "b": 5}]
    assert left_out == {"on_one_side_only": 1}


def test_another_question_is_another_parent() -> None:
    found, left_out = paired(answered(1, "a"), answered(2, "b", "q2"))
    assert (found, left_out) == ([], {"on_one_side_only": 2})


def test_another_cluster_is_another_parent() -> None:
    one, other = answered(1, "a"), answered(2, "b")
    labels = {**labelled(one), **labelled(other, cluster="someone else")}
    assert pair([one, other], labels, Counter()) == {}


def test_of_many_sides_those_with_most_answers_are_compared() -> None:
    answers = [answered(10 * arm + n, f"s{arm:02}") for arm in range(MOST_ARMS + 3) for n in range(2 + (arm > 2))]
    found, left_out = paired(*answers)
    assert {arm for each in found for arm in each} == {f"s{arm:02}" for arm in range(3, MOST_ARMS + 3)}
    assert left_out["too_many_sides"] == 6


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["q1", "q2"])), max_size=30),
    st.randoms(use_true_random=False),
)
def test_every_answer_is_in_one_pair_or_left_out_whatever_the_order(given_: list[tuple[str, str]], random) -> None:
    answers = [answered(number, arm, question) for number, (arm, question) in enumerate(given_)]
    found, left_out = paired(*answers)
    used = [number for each in found for number in each.values()]
    assert len(used) == len(set(used)) == len(answers) - left_out.get("on_one_side_only", 0)
    random.shuffle(answers)
    assert paired(*answers) == (found, left_out)


def test_the_id_says_what_is_compared_by_what() -> None:
    base = PairingSpec(selection=ExchangeSelection(), by="route")
    assert base.id == PairingSpec(selection=ExchangeSelection(), by="route").id
    assert len({base.id, replace(base, by="model").id, replace(base, selection=ExchangeSelection(route="r")).id}) == 3


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"messages": [{"role": "developer", "content": [{"type": "text", "text": " Be kind. "}]}]}, "Be kind."),
        ({"instructions": "Be brief.", "input": "Tea?"}, "Be brief."),
        ({"messages": [{"role": "user", "content": "Tea?"}, "odd"]}, ""),
        ({"messages": "odd"}, ""),
        (None, None),
    ],
)
def test_a_system_prompt_is_read_where_an_application_puts_it(request_: object, words: str | None) -> None:
    assert system_of(request_) == words


@pytest.mark.parametrize("by", ["tag.", "task", ""])
def test_what_sides_cannot_be_is_refused(by: str) -> None:
    with pytest.raises(UsageError, match=r"is not one of tag\.NAME, route, model, system"):
        read_grouping(by)
