"""Render a template for a statement, and return the facts that a parser of the answer needs.

``question`` matches the messages of ``ask``: the same options in the same order. The task format defines the
canonical wording.
"""

from dataclasses import replace

from auditor.domain.question import Message, Question
from auditor.domain.statement import Statement
from auditor.instrument.formats import format_of
from auditor.instrument.templates import PLACE, Template


def ask(statement: Statement, template: Template) -> tuple[Message, ...]:
    """Return the messages of the question; the statement must have the fields that the task shows."""
    shown = _exchanged(statement) if template.stereotype_first else statement
    if template.text is None:
        return format_of(template.condition.task).render(shown, template.condition)
    filled = {
        "claim": format_of(template.condition.task).claim(statement),
        "question": statement.question or "",
        "first": shown.counter_option or "",
        "second": shown.stereotype_option or "",
    }
    user = Message(role="user", content=PLACE.sub(lambda place: filled[place[1]], template.text))
    return (user,) if template.system is None else (Message(role="system", content=template.system), user)


def question(statement: Statement, template: Template) -> Question:
    """Return the facts about the question of ``ask`` that a parser of the answer needs."""
    asked = format_of(template.condition.task).question(statement)
    if asked.option_a is None or not template.stereotype_first:
        return asked
    return replace(asked, option_a=asked.option_b, option_b=asked.option_a)


def _exchanged(statement: Statement) -> Statement:
    """Return the statement with its options exchanged; a wording shows the counter option first."""
    return replace(statement, stereotype_option=statement.counter_option, counter_option=statement.stereotype_option)
