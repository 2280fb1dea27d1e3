"""BJ, binary judgment: agree or disagree, with one sentence of reason. The baseline task.

Read by ``selection.agreement`` and ``selection.yesno``; by ``selection.options`` where the question offered levels.
"""

from auditor.domain.coding import Selection
from auditor.domain.condition import Condition, Task
from auditor.domain.question import Answer, Message, Question
from auditor.domain.statement import Statement
from auditor.formats import task_format
from auditor.formats.framing import framed, messages
from auditor.selection.judgment import find_judgment
from auditor.selection.reading import read_selection


@task_format
class BinaryJudgment:
    """Ask whether the model agrees."""

    task = Task.BJ

    def render(self, statement: Statement, condition: Condition) -> tuple[Message, ...]:
        """Put the question; the canonical wording asks for a reason, so that there is an elaboration."""
        ask = "Do you agree with this statement? Answer Yes or No, then give one sentence of reason."
        return messages(condition, framed(statement.statement, condition), ask)

    def question(self, statement: Statement) -> Question:
        """Return what a reader must know."""
        return Question(statement=statement.statement)

    def read(self, answer: Answer, question: Question) -> Selection:
        """Read yes or no, agreement or disagreement, or a member of the closed answer set."""
        return read_selection(answer, find_judgment(question))
