"""Task formats: all that is particular to one task is one module of this package.

A module holds how the question is put and which fields of a statement it shows, how the answer is read, what a judge is
told when it points at an answer, how a stored request is asked in this format, and how a simulated deployment answers.
Besides, a task needs its code in ``domain.condition.Task`` and its file of templates.

A format registers itself with ``@task_format``; ``format_of`` imports every module of this package once. The wording
here is the canonical one; paraphrases belong to the templates. Answers are read by ``auditor.selection``.
"""

import importlib
import pkgutil
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal, TypeVar

from auditor.domain.coding import Selection
from auditor.domain.condition import Condition, Task
from auditor.domain.question import Answer, Message, Question
from auditor.domain.statement import Statement
from auditor.instrument.formats.framing import framed, messages
from auditor.selection.reading import free_text

#: Where the discrete answer stands in a simulated response: alone, before, joined to or after its reason.
Position = Literal["alone", "first", "because", "last"]
#: Wordings of a discrete answer by position, with placeholders for its words.
AnswerForms = Mapping[Position, tuple[str, ...]]


@dataclass(frozen=True, kw_only=True, slots=True)
class SimulatedAnswers:
    """How the simulator recognises a question in this format, and words its answers."""

    cue: re.Pattern[str]  #: pattern of the prompt's words
    rank: int  #: prompts are tried by rank, because a question may have the cues of several formats
    forms: AnswerForms | None = None  #: answers that endorse or reject; None without a selection layer
    neutral: AnswerForms | None = None
    json: str | None = None  #: the "answer" member of an answer written as JSON
    json_when_neutral: bool = False


class TaskFormat:
    """One way to ask about a statement and to read the answer."""

    task: ClassVar[Task]
    #: Fields of a statement that the question shows beside its sentence.
    needs: ClassVar[tuple[str, ...]] = ()
    #: Places that a template of this task leaves open.
    places: ClassVar[frozenset[str]] = frozenset({"claim"})
    #: How the two options are offered: lettered, or to fill a blank. None: the question offers none.
    options: ClassVar[Literal["letters", "blank"] | None] = None
    #: What a judge that points at an answer is told of the possible answers; options are listed as they are.
    answer_hint: ClassVar[str | None] = None
    #: The same where the question has the answers in the other order, if that changes what they mean.
    answer_hint_reversed: ClassVar[str | None] = None
    #: A word of a text that may be an answer; without options and without this, no judge is asked.
    answer_words: ClassVar[re.Pattern[str] | None] = None
    #: Assumed tokens of an answer without and with a reason, where a deployment has shown none.
    assumed_tokens: ClassVar[tuple[int, int]] = (8, 60)
    #: Instruction that puts a stored request in this format; None where a request cannot be put so.
    framing: ClassVar[str | None] = None
    simulated: ClassVar[SimulatedAnswers]
    #: The question after the claim.
    ask: ClassVar[str]
    #: The question with its answers in the other order, or with its scale the other way round; with it, the folder
    #: ``templates/reversed`` has a file of the task. None for a task without answers, and where options are offered.
    ask_reversed: ClassVar[str | None] = None

    def render(self, statement: Statement, condition: Condition) -> tuple[Message, ...]:
        """Return the messages of the question."""
        return messages(condition, framed(self.claim(statement), condition), self.ask)

    def render_reversed(self, statement: Statement, condition: Condition) -> tuple[Message, ...]:
        """Return the messages of the question with its answers in the other order; it must have one.

        Where options are offered, ``render`` is given the statement with its options exchanged instead.
        """
        assert self.ask_reversed is not None
        return messages(condition, framed(self.claim(statement), condition), self.ask_reversed)

    def claim(self, statement: Statement) -> str:
        """Return the text that the question shows in the place of the claim."""
        return statement.statement

    def question(self, statement: Statement) -> Question:
        """Return what a reader must know of the question that ``render`` puts."""
        return Question(statement=statement.statement)

    def read(self, answer: Answer, question: Question) -> Selection:  # noqa: ARG002 -- formats with a selection use it
        """Read the selection, and what is left of the text without it; without a selection layer, all of it is left."""
        return free_text(answer)


_FormatType = TypeVar("_FormatType", bound=type[TaskFormat])
_formats: dict[Task, TaskFormat] = {}


def task_format(kind: _FormatType) -> _FormatType:
    """Register a format for a task that has none yet."""
    made = kind()
    if made.task in _formats:
        raise ValueError(f"two formats for the task {made.task}")
    _formats[made.task] = made
    return kind


@lru_cache(maxsize=1)
def _import_all() -> None:
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")


def formats() -> Mapping[Task, TaskFormat]:
    """Return every format, after importing every module of this package."""
    _import_all()
    return dict(_formats)


def format_of(task: Task) -> TaskFormat:
    """Return the format of one task."""
    _import_all()
    return _formats[task]
