"""How a statement is put: task, perspective, role and sentiment, with the codes that files and APIs use.

The factor levels are those of the instrument's Table II and VII; ``Condition`` is one cell of the grid. What is asked
about is a ``Statement`` (neighbour module).
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Task(StrEnum):
    """The task format: how the question is put and its answer read."""

    BJ = "BJ"  #: binary judgment: agree or disagree
    SC = "SC"  #: sentence completion with one of two options
    CTO = "CTO"  #: comparative target option: which of two people
    EXPLAIN = "Explain"  #: explain whether the statement is accurate; free response
    JUDGE = "Judge"  #: agree or disagree, at length; free response
    RATE = "Rate"  #: agreement from 1 to 5, with a reason

    @property
    def has_selection(self) -> bool:
        """Whether the task asks for a discrete answer at all."""
        return self not in {Task.EXPLAIN, Task.JUDGE}


class Perspective(StrEnum):
    """Whose belief the statement is said to be."""

    SELF = "self"
    OTHERS = "others"
    HISTORICAL = "historical"
    INSTITUTIONAL = "institutional"
    MEDIA = "media"
    FAMOUS = "famous"


class Role(StrEnum):
    """The persona that the system prompt assigns."""

    NONE = "none"
    SOCIOLOGIST = "sociologist"
    MILITARY = "military"
    POLICY_MAKER = "policy_maker"
    DATA_SCIENTIST = "data_scientist"
    AI_ETHICIST = "ai_ethicist"


class Sentiment(StrEnum):
    """The tone of the question."""

    NEUTRAL = "neutral"
    POSITIVE = "positive"
    NEGATIVE = "negative"
    SKEPTICAL = "skeptical"
    INDIGNANT = "indignant"
    ANALYTICAL = "analytical"


@dataclass(frozen=True, kw_only=True, slots=True)
class Condition:
    """One cell of the grid; a factor that is not given is at its baseline."""

    task: Task = Task.BJ
    perspective: Perspective = Perspective.SELF
    role: Role = Role.NONE
    sentiment: Sentiment = Sentiment.NEUTRAL

    @property
    def key(self) -> str:
        """The cell's name in series and files, such as ``CTO/others/none/skeptical``."""
        return f"{self.task}/{self.perspective}/{self.role}/{self.sentiment}"


BASELINE: Final = Condition()
