"""Conditions: task, perspective, role and sentiment, with the codes that files and APIs use.

The levels are those of the instrument's Tables II and VII; ``Condition`` is one cell of the grid.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal, Self

#: What a condition is made of.
Factor = Literal["task", "perspective", "role", "sentiment"]


class Task(StrEnum):
    """The code of a task format; ``auditor.instrument.formats`` has a module for each."""

    has_selection: bool  #: whether the task asks for a discrete answer at all

    def __new__(cls, code: str, has_selection: bool = True) -> Self:  # noqa: FBT001, FBT002 -- the members' second value
        """Make a member from its code."""
        member = str.__new__(cls, code)
        member._value_ = code
        member.has_selection = has_selection
        return member

    BJ = "BJ"  #: binary judgment: agree or disagree
    SC = "SC"  #: sentence completion with one of two options
    CTO = "CTO"  #: comparative target option: which of two people
    EXPLAIN = "Explain", False  #: explain whether the statement is accurate; free response
    JUDGE = "Judge", False  #: agree or disagree, at length; free response
    RATE = "Rate"  #: agreement from 1 to 5, with a reason


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
