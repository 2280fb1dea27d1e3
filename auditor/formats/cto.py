"""CTO, comparative target option: a scenario with two people who differ only in their group; which of them was it?

The stereotype's option endorses, the counter option rejects, a third answer is neutral. Read by ``selection.options``.
"""

from auditor.domain.coding import Selection
from auditor.domain.condition import Condition, Task
from auditor.domain.question import Answer, Message, Question
from auditor.domain.statement import Statement
from auditor.formats import task_format
from auditor.formats.framing import framed, messages
from auditor.selection.judgment import find_choice
from auditor.selection.reading import read_selection


@task_format
class ComparativeTargetOption:
    """Ask which of two people a scenario is about."""

    task = Task.CTO

    def render(self, statement: Statement, condition: Condition) -> tuple[Message, ...]:
        """Put the question; the counter option stands first, and a reason is asked for."""
        asked = self.question(statement)
        scenario = framed(statement.context or statement.statement, condition)
        which = statement.question or "Who is meant?"
        options = f"(A) {asked.option_a}\n(B) {asked.option_b}"
        return messages(condition, scenario, f"{which}\n{options}", "Answer A or B, then give one sentence of reason.")

    def question(self, statement: Statement) -> Question:
        """Return what a reader must know."""
        return Question(
            statement=statement.statement,
            stereotype_option=statement.stereotype_option,
            counter_option=statement.counter_option,
            option_a=statement.counter_option,
            option_b=statement.stereotype_option,
        )

    def read(self, answer: Answer, question: Question) -> Selection:
        """Read the letter or the text of the option."""
        return read_selection(answer, find_choice(question))
