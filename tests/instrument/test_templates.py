"""Templates: what each asks for can be read, options stand where it says, and wordings never change under their id."""

from collections import Counter
from dataclasses import replace

import pytest

from auditor.domain.coding import Stance
from auditor.domain.condition import Condition, Perspective, Role, Sentiment, Task
from auditor.domain.question import Answer
from auditor.formats import format_of
from auditor.instrument.asking import ask, question
from auditor.instrument.pool import shipped_pool
from auditor.instrument.templates import Template, canonical, find_template, templates_of
from auditor.simulate.recognise import Pool, complete, recognise

POOL = shipped_pool()
ALL = [template for task in Task for template in templates_of(task)]
KNOWN = Pool(POOL)
FRAMED = {"perspective": Perspective.MEDIA, "role": Role.MILITARY, "sentiment": Sentiment.SKEPTICAL}

one_template = pytest.mark.parametrize("template", ALL, ids=lambda one: one.template_id)

#: A stored answer is read by the wording it was given to: a change here is a new id, never a new digest.
DIGESTS = {
    "BJ-01": "b1fe5094",
    "BJ-02": "281e38f9",
    "BJ-03": "ce4f5861",
    "BJ-04": "7f1e620a",
    "BJ-05": "3f1c833c",
    "BJ-06": "75b073d4",
    "SC-01": "f8dd04a0",
    "SC-02": "79c7eff9",
    "SC-03": "0e5636df",
    "SC-04": "733cf215",
    "SC-05": "46e11883",
    "CTO-01": "e7aed006",
    "CTO-02": "ebbfec25",
    "CTO-03": "a07087af",
    "CTO-04": "12fa5fde",
    "CTO-05": "031f3804",
    "Explain-01": "b339ffac",
    "Explain-02": "f4aa16b3",
    "Explain-03": "ef2ef29b",
    "Explain-04": "3fdcc0e3",
    "Explain-05": "7cb0f848",
    "Judge-01": "a5d459c5",
    "Judge-02": "c9fa6416",
    "Judge-03": "7d81ea5c",
    "Judge-04": "1c99c6c2",
    "Judge-05": "2576c63e",
    "Rate-01": "012d5d58",
    "Rate-02": "2c0b8358",
    "Rate-03": "4c7c92c1",
    "Rate-04": "8c1451f3",
    "Rate-05": "6737618c",
}


def test_wordings_never_change_under_their_id() -> None:
    now = {one.template_id: one.digest for one in ALL if one.text is not None}
    assert now == DIGESTS


def test_ids_are_unique_and_the_canonical_one_is_first() -> None:
    assert len({one.template_id for one in ALL}) == len(ALL)
    for task in Task:
        templates = templates_of(task)
        assert templates[0] == canonical(task)
        assert all(one.task is task for one in templates)
        assert all(find_template(one.template_id) == one for one in templates)
    for unknown in ("BJ-99", "nonsense", ""):
        with pytest.raises(KeyError):
            find_template(unknown)


def test_half_of_the_paraphrases_of_the_baseline_task_ask_for_a_reason() -> None:
    invites = Counter(one.invites_reason for one in templates_of(Task.BJ)[1:])
    assert invites[True] == invites[False]
    assert canonical(Task.BJ).invites_reason
    assert all(one.invites_reason for task in (Task.RATE, Task.EXPLAIN, Task.JUDGE) for one in templates_of(task))


@pytest.mark.parametrize("task", [Task.CTO, Task.SC])
def test_each_option_stands_first_in_half_of_the_templates(task: Task) -> None:
    first = Counter(one.stereotype_first for one in templates_of(task))
    assert first[True] == first[False]


@one_template
def test_a_template_puts_the_statement_and_its_options_in_its_order(template: Template) -> None:
    for statement in POOL:
        condition = Condition(task=template.task)
        (message,) = ask(statement, condition, template)
        shown = {Task.SC: statement.completion, Task.CTO: statement.context}.get(template.task, statement.statement)
        assert shown
        assert shown in message.content
        assert "{" not in message.content
        if template.task in {Task.CTO, Task.SC}:
            words = message.content.replace(shown, "").replace(statement.question or "", "")
            places = [words.index(option) for option in (statement.stereotype_option, statement.counter_option)]
            assert (places[0] < places[1]) == template.stereotype_first


@one_template
def test_a_template_keeps_perspective_role_and_sentiment(template: Template) -> None:
    condition = Condition(task=template.task, **FRAMED)
    plain = ask(POOL[0], condition, canonical(template.task))
    put = ask(POOL[0], condition, template)
    assert [one.role for one in put] == ["system", "user"]
    assert put[0] == plain[0]
    for line in ("The following has been reported in the media.", "There are reasons to doubt it."):
        assert line in put[1].content


@one_template
def test_the_simulator_understands_every_template(template: Template) -> None:
    for statement in POOL:
        for levels in ({}, FRAMED):
            condition = Condition(task=template.task, **levels)
            *system, message = ask(statement, condition, template)
            prompted = recognise(system[0].content if system else "", message.content, KNOWN)
            asked = prompted.ask
            assert (asked.task, asked.perspective, asked.role, asked.sentiment) == (
                condition.task, condition.perspective, condition.role, condition.sentiment
            )  # fmt: skip
            assert asked.told_only is not template.invites_reason
            assert prompted.statement == statement.statement
            if template.task is Task.CTO:
                assert prompted.stereotype_letter == ("A" if template.stereotype_first else "B")


@one_template
@pytest.mark.parametrize("stance", [Stance.E, Stance.D])
def test_the_answer_a_template_asks_for_is_read(template: Template, stance: Stance) -> None:
    """A plain answer, with a reason where one is invited, gives the stance, and the reason is what is left."""
    if not template.task.has_selection:
        return
    reason = "That is what I have seen." if template.invites_reason else ""
    for statement in POOL:
        asked = question(statement, template)
        endorses = stance is Stance.E
        option = statement.stereotype_option if endorses else statement.counter_option
        assert option
        assert statement.completion
        token = {
            Task.BJ: "Yes." if endorses else "No.",
            Task.SC: complete(statement.completion, option),
            Task.CTO: f"({'A' if endorses == template.stereotype_first else 'B'}) {option}.",
            Task.RATE: "5." if endorses else "1.",
        }[template.task]
        read = format_of(template.task).read(Answer(text=f"{token} {reason}".strip()), asked)
        assert read.stance is stance, (token, read)
        assert read.remainder.strip() == reason


def test_places_are_filled_once_and_braces_of_a_statement_stay() -> None:
    odd = replace(POOL[0], context="A {first} and a {claim} met.", question="Who is {second}?")
    (message,) = ask(odd, Condition(task=Task.CTO), find_template("CTO-01"))
    assert "A {first} and a {claim} met." in message.content
    assert "Who is {second}?" in message.content
