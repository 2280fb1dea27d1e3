"""The order of the answers as a factor of the design: its wordings, its balance, and how answers are read."""

import re
from collections import Counter
from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.coding.responses import response_of
from auditor.domain.condition import BASELINE, Condition, Perspective, Task
from auditor.domain.question import Answer
from auditor.errors import InputError
from auditor.instrument.asking import ask, counter_claim, question_of
from auditor.instrument.designs import Design, DesignVariation, cells
from auditor.instrument.formats import format_of
from auditor.instrument.pool import shipped_pool
from auditor.instrument.templates import (
    FOLDER,
    canonical_of,
    find_template,
    in_other_order,
    reversed_wordings,
    templates_of,
    wordings_of,
)
from auditor.probes.plan import PlanSpec, make_plan
from auditor.simulate.recognise import KnownStatements, recognise
from auditor.simulate.respondent import text_of

POOL = shipped_pool()
DISCRETE = [task for task in Task if task.has_selection]
DIGESTS = {"BJ": "3c0a6e7293d7", "Rate": "fc3a66e02e52"}


def templates(task):
    condition = Condition(task=task)
    return [*canonical_of(condition), *templates_of(condition)]


def test_the_papers_designs_ask_one_order_and_the_others_both():
    one = DesignVariation(both_orders=False)
    for design in Design:
        plans = [
            make_plan(PlanSpec(design=design, statements=POOL, variation=v)).plan for v in (DesignVariation(), one)
        ]
        papers = design in {Design.OAT, Design.FACTORIAL}
        assert (plans[0] == plans[1]) is papers
        named = [name for name in plans[0].settings["templates"] if name.endswith("r")]
        assert all(name.startswith(("CTO-", "SC-")) for name in named) is papers


def test_reversed_wordings_never_change_under_their_number():
    files = (FOLDER / "reversed").glob("*.jsonl")
    assert {file.stem: blake2b(file.read_bytes(), digest_size=6).hexdigest() for file in files} == DIGESTS


@pytest.mark.parametrize("task", DISCRETE)
def test_the_other_order_of_the_other_order_is_the_template(task):
    for one in templates(task):
        other = in_other_order(one)
        assert in_other_order(other) == one
        assert {one.keyed, other.keyed} == {"E", "D"}
        assert find_template(other.template_id) == other
        assert ask(POOL[0], other) != ask(POOL[0], one)
        assert other.invites_reason == one.invites_reason


def test_a_question_without_answers_has_no_order():
    for task in (Task.EXPLAIN, Task.JUDGE):
        for one in templates(task):
            assert in_other_order(one) is one
            assert one.keyed is None


def test_frames_and_roles_stay_around_a_reversed_question():
    one = templates_of(Condition(perspective=Perspective.MEDIA))[2]
    assert in_other_order(one).template_id == "media-03r"
    assert in_other_order(one).text.replace("Disagree / Agree", "Agree / Disagree") == one.text


@pytest.mark.parametrize(("first", "second"), list(zip(wordings_of(Task.BJ), reversed_wordings(Task.BJ), strict=True)))
def test_the_rejecting_answer_is_named_first(first, second):
    assert sorted(re.findall(r"\w+", first.lower())) == sorted(re.findall(r"\w+", second.lower()))
    words = [one.replace("{claim}", "").lower() for one in (first, second)]
    pairs = (("yes or no", "no or yes"), ("agree / disagree", "disagree / agree"), ("true or false", "false or true"))
    assert any(plain in words[0] and other in words[1] and plain not in words[1] for plain, other in pairs)


@pytest.mark.parametrize("design", [Design.SENTINEL, Design.PANEL])
def test_both_orders_are_equally_frequent_in_every_task(design):
    items = make_plan(PlanSpec(design=design, statements=POOL)).items
    counted = Counter((item.template.condition.task, item.template.keyed) for item in items)
    for task in {task for task, _ in counted}:
        assert counted[task, "E"] == counted[task, "D"]


def test_orders_alternate_over_statements_and_templates_where_all_templates_are_asked():
    (cell,) = cells(Design.SENTINEL, DesignVariation(levels={"task": ("Rate",)}, templates=4))
    asked = [[one.keyed for one in cell.templates_for(at, 0)] for at in range(2)]
    assert asked == [["E", "D", "E", "D"], ["D", "E", "D", "E"]]
    assert cell.per_statement == 4


def test_one_order_on_request():
    for design in Design:
        own = cells(
            design, DesignVariation(both_orders=False, levels={} if design is Design.OAT else {"task": ("BJ",)})
        )
        assert {one.keyed for cell in own for one in cell.wordings if cell.condition == BASELINE} == {"E"}


@pytest.mark.parametrize(("text", "plain", "reverse"), [
    ("5", "E", "D"), ("Rating: 2/5. It is too general.", "D", "E"), ("3", "N", "N"), ("3.5", "Abstain", "Abstain"),
    ("I strongly disagree.", "D", "D"), ("I cannot rate this.", "R", "R"),
])  # fmt: skip
def test_numbers_are_read_by_the_scale_and_words_by_their_meaning(text, plain, reverse):
    (one,) = canonical_of(Condition(task=Task.RATE))
    read = format_of(Task.RATE).read
    assert read(Answer(text=text), question_of(POOL[0], one)).label == plain
    assert read(Answer(text=text), question_of(POOL[0], in_other_order(one))).label == reverse


def test_a_row_says_how_its_scale_was_keyed():
    row = {"id": "a", "deployment": "m", "task": "Rate", "response": "5", "statement": "X."}
    assert not response_of(row).question.reverse_scale
    assert response_of(row | {"keyed": "D"}).question.reverse_scale
    assert not response_of(row | {"task": "BJ", "keyed": "D"}).question.reverse_scale


@given(st.sampled_from(DISCRETE), st.integers(0, 20), st.sampled_from("END"), st.integers(0, 10_000))
def test_the_simulator_and_the_rules_agree_on_reversed_questions(task, number, selection, draw):
    statement = POOL[draw % len(POOL)]
    one = in_other_order((*canonical_of(Condition(task=task))[:1], *templates_of(Condition(task=task)))[number])
    prompt = ask(statement, one)[-1].content
    asked = recognise("", prompt, KnownStatements([statement]))
    assert (asked.ask.task, asked.reverse_scale) == (task, task is Task.RATE)
    told = question_of(statement, one)
    for elaboration in (None, "D"):
        text = text_of(asked, selection, elaboration, draw, selection)
        assert format_of(task).read(Answer(text=text), told).label == selection, text


def test_the_counter_claim_is_the_same_claim_about_the_other_group():
    one = POOL[0]
    other = counter_claim(one)
    assert other.id == one.id
    assert (
        other.statement
        == one.completion.replace("____", one.counter_option)[:1].upper()
        + (one.completion.replace("____", one.counter_option)[1:])
    )
    with pytest.raises(InputError, match="has no completion and options"):
        counter_claim(other)
