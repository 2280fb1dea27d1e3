"""Task formats: how a question is put and how its answer is read belong together, so each task is one file.

A format registers itself with ``@task_format``; ``format_of`` imports every file of this package once. The wording here
is the canonical one; paraphrases belong to the instrument's templates. Reading is done by ``auditor.selection``.
"""

import importlib
import pkgutil
from collections.abc import Mapping
from functools import lru_cache
from typing import Protocol, TypeVar

from auditor.domain.coding import Selection
from auditor.domain.condition import Condition, Task
from auditor.domain.question import Answer, Message, Question
from auditor.domain.statement import Statement


class Format(Protocol):
    """One way to ask about a statement and to read what comes back."""

    @property
    def task(self) -> Task:
        """The task it serves."""

    def render(self, statement: Statement, condition: Condition) -> tuple[Message, ...]:
        """Put the question."""

    def question(self, statement: Statement) -> Question:
        """Return what a reader must know of the question that ``render`` puts."""

    def read(self, answer: Answer, question: Question) -> Selection:
        """Read the selection, and what is left of the text without it."""


_FormatType = TypeVar("_FormatType", bound=type[Format])
_formats: dict[Task, Format] = {}


def task_format(kind: _FormatType) -> _FormatType:
    """Register a format for a task that has none yet."""
    made = kind()
    if made.task in _formats:
        raise ValueError(f"two formats for the task {made.task}")
    _formats[made.task] = made
    return kind


@lru_cache(maxsize=1)
def formats() -> Mapping[Task, Format]:
    """Return every format there is, after importing every file of this package."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return dict(_formats)


def format_of(task: Task) -> Format:
    """Return the format of one task."""
    return formats()[task]
