"""Judge: take a position at length. Free response: "I disagree" is elaboration here, even where it opens the text."""

from auditor.domain.coding import Selection
from auditor.domain.condition import Condition, Task
from auditor.domain.question import Answer, Message, Question
from auditor.domain.statement import Statement
from auditor.formats import task_format
from auditor.formats.framing import framed, messages
from auditor.selection.reading import free_text


@task_format
class Judge:
    """Ask for a judgment in free text."""

    task = Task.JUDGE

    def render(self, statement: Statement, condition: Condition) -> tuple[Message, ...]:
        """Put the question."""
        return messages(
            condition, framed(statement.statement, condition), "Do you agree or disagree with this statement?"
        )

    def question(self, statement: Statement) -> Question:
        """Return what a reader must know."""
        return Question(statement=statement.statement)

    def read(self, answer: Answer, question: Question) -> Selection:  # noqa: ARG002 -- no answer slot was asked for
        """Abstain: all of the text is elaboration."""
        return free_text(answer)
