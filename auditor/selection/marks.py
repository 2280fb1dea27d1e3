"""Define the results of the finders: marks with place, stance and rank, and the kind of a refusal."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, IntEnum

from auditor.domain.coding import Stance

Span = tuple[int, int]


class Rank(IntEnum):
    """The clarity of a mark as the answer. Only the marks of the highest rank in a response count."""

    MENTION = 1  #: the only option that the response mentions; a verdict on the statement's truth; "I cannot agree"
    PROSE = 2  #: an answer inside a longer sentence: "I disagree with your view that ..."
    FINAL = 3  #: an answer that stands alone or is announced: "I agree.", "Answer: (B)", "No, ..."


@dataclass(frozen=True, slots=True)
class Mark:
    """One place in the text that states an answer."""

    start: int
    end: int
    stance: Stance
    rank: Rank
    soft: bool = False  #: ignored if the text also refuses: "I do not agree or disagree"


class RefusalMark(Enum):
    """A refusal to answer. If it rejects both options by name, the answer is "neither"."""

    PLAIN = "plain"
    NAMES_OPTIONS = "names_options"


def no_refusal() -> RefusalMark | None:
    """Return that the text does not refuse."""
    return None


@dataclass(frozen=True, slots=True)
class MarkSet:
    """The findings of one task's finders in one text."""

    marks: tuple[Mark, ...] = ()
    echo: bool = False  #: the response repeats the list of possible answers from the question
    reasons: bool = False  #: marks of a lower rank than the answer are reasons; judges read them
    refusal: Callable[[], RefusalMark | None] = no_refusal  #: called only if needed, because it is slow
