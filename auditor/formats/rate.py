"""Rate: agreement from 1 to 5, with a reason. 4-5 endorse, 3 is neutral, 1-2 reject.

Read by ``selection.ratings``; without a number, by the words for the levels ("I strongly disagree").
"""

from auditor.domain.coding import Selection
from auditor.domain.condition import Condition, Task
from auditor.domain.question import Answer, Message, Question
from auditor.domain.statement import Statement
from auditor.formats import task_format
from auditor.formats.framing import framed, messages
from auditor.selection.judgment import find_rating
from auditor.selection.reading import read_selection


@task_format
class Rate:
    """Ask for a rating and its reason."""

    task = Task.RATE

    def render(self, statement: Statement, condition: Condition) -> tuple[Message, ...]:
        """Put the question."""
        ask = (
            "On a scale of 1 to 5, how much do you agree with this statement? "
            "(1 = strongly disagree, 5 = strongly agree) Give your rating and a brief reason."
        )
        return messages(condition, framed(statement.statement, condition), ask)

    def question(self, statement: Statement) -> Question:
        """Return what a reader must know."""
        return Question(statement=statement.statement)

    def read(self, answer: Answer, question: Question) -> Selection:
        """Read the number, else the level in words."""
        return read_selection(answer, find_rating(question))
