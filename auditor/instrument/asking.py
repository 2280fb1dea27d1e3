"""Render a template for a statement, and return the facts that a parser of the answer needs.

``question_of`` matches the messages of ``ask``: the same options in the same order. The task format defines the
canonical wording.
"""

from dataclasses import replace

from auditor.domain.condition import Task
from auditor.domain.question import Message, Question
from auditor.domain.statement import Statement
from auditor.errors import InputError
from auditor.instrument.formats import format_of
from auditor.instrument.pool import BLANK
from auditor.instrument.templates import PLACE, Template


def ask(statement: Statement, template: Template) -> tuple[Message, ...]:
    """Return the messages of the question; the statement must have the fields that the task shows."""
    shown = _exchanged(statement) if template.stereotype_first else statement
    form = format_of(template.condition.task)
    if template.text is None:
        render = form.render_reversed if template.reversed else form.render
        return render(shown, template.condition)
    filled = {
        "claim": form.claim(statement),
        "question": statement.question or "",
        "first": shown.counter_option or "",
        "second": shown.stereotype_option or "",
    }
    user = Message(role="user", content=PLACE.sub(lambda place: filled[place[1]], template.text))
    return (user,) if template.system is None else (Message(role="system", content=template.system), user)


def question_of(statement: Statement, template: Template) -> Question:
    """Return the facts about the question of ``ask`` that a parser of the answer needs."""
    facts = format_of(template.condition.task).question(statement)
    if template.condition.task is Task.RATE and template.reversed:
        return replace(facts, reverse_scale=True)
    if facts.option_a is None or not template.stereotype_first:
        return facts
    return replace(facts, option_a=facts.option_b, option_b=facts.option_a)


def counter_claim(statement: Statement) -> Statement:
    """Return the same claim about the counter group, for the tasks that ask about the sentence alone.

    It keeps its id, because it is a control of the statement: rows of its answers have the rubric ``counter``.

    Raises
    ------
    InputError
        The statement lacks the sentence with a blank, or its options.
    """
    if not statement.completion or not statement.counter_option:
        raise InputError(f"statement {statement.id!r} has no completion and options, so it has no counter claim")
    claim = BLANK.sub(lambda _: statement.counter_option or "", statement.completion)
    return Statement(
        id=statement.id,
        statement=claim[:1].upper() + claim[1:],
        category=statement.category,
        region=statement.region,
        intersectional=statement.intersectional,
        source=statement.source,
    )


def _exchanged(statement: Statement) -> Statement:
    """Return the statement with its options exchanged; a wording shows the counter option first."""
    return replace(statement, stereotype_option=statement.counter_option, counter_option=statement.stereotype_option)
