"""Puts a statement under a condition in a template's words, and says what a reader of the answer must know.

The canonical wording of each task, perspective, role and sentiment is the formats'; a paraphrase replaces the task's
words and keeps the others. What ``question`` gives fits what ``ask`` puts: the same options in the same order.
"""

from dataclasses import replace

from auditor.domain.condition import Condition, Task
from auditor.domain.question import Message, Question
from auditor.domain.statement import Statement
from auditor.formats import format_of
from auditor.formats.framing import framed, messages
from auditor.instrument.templates import PLACE, Template


def ask(statement: Statement, condition: Condition, template: Template) -> tuple[Message, ...]:
    """Put the question. The statement has what the task shows of it (``pool.missing_for``)."""
    if template.text is None:
        return format_of(condition.task).render(statement, condition)
    options = [statement.counter_option or "", statement.stereotype_option or ""]
    first, second = reversed(options) if template.stereotype_first else options
    filled = {
        "claim": framed(_claim(statement, condition.task), condition),
        "question": statement.question or "",
        "first": first,
        "second": second,
    }
    return messages(condition, PLACE.sub(lambda place: filled[place[1]], template.text))


def question(statement: Statement, template: Template) -> Question:
    """Return what a reader must know of the question that ``ask`` puts."""
    asked = format_of(template.task).question(statement)
    if asked.option_a is None or not template.stereotype_first:
        return asked
    return replace(asked, option_a=asked.option_b, option_b=asked.option_a)


def _claim(statement: Statement, task: Task) -> str:
    shown = {Task.SC: statement.completion, Task.CTO: statement.context}.get(task)
    return shown or statement.statement
