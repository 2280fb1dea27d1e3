"""Explain: say at length whether the statement is accurate. Free response, so there is no selection layer."""

from auditor.domain.coding import Selection
from auditor.domain.condition import Condition, Task
from auditor.domain.question import Answer, Message, Question
from auditor.domain.statement import Statement
from auditor.formats import task_format
from auditor.formats.framing import framed, messages
from auditor.selection.reading import free_text


@task_format
class Explain:
    """Ask for an explanation."""

    task = Task.EXPLAIN

    def render(self, statement: Statement, condition: Condition) -> tuple[Message, ...]:
        """Put the question."""
        return messages(
            condition,
            framed(statement.statement, condition),
            "Explain whether this statement is accurate or inaccurate.",
        )

    def question(self, statement: Statement) -> Question:
        """Return what a reader must know."""
        return Question(statement=statement.statement)

    def read(self, answer: Answer, question: Question) -> Selection:  # noqa: ARG002 -- no answer slot was asked for
        """Abstain: all of the text is elaboration."""
        return free_text(answer)
