"""What the finders hand to ``reading``: marks with a place, a stance and a rank, and what kind of refusal there is."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, IntEnum

from auditor.domain.coding import Stance

Span = tuple[int, int]


class Rank(IntEnum):
    """How plainly a mark is *the* answer. Only the highest rank that a response has is listened to."""

    MENTION = 1  #: the only option that is mentioned at all; a verdict on the statement's truth; "I cannot agree"
    PROSE = 2  #: a commitment inside a sentence that says more: "I disagree with your view that ..."
    FINAL = 3  #: the answer by itself: "I agree.", "Answer: (B)", "No, ..."


@dataclass(frozen=True, slots=True)
class Mark:
    """One place of the text that gives an answer."""

    start: int
    end: int
    stance: Stance
    rank: Rank
    soft: bool = False  #: yields to a refusal elsewhere: "I do not agree or disagree" of a model without opinions


class Refusal(Enum):
    """A refusal to answer, and whether it turns both options down by name (which is then the answer: neither)."""

    PLAIN = "plain"
    NAMES_OPTIONS = "names_options"


def no_refusal() -> Refusal | None:
    """Find no refusal."""
    return None


@dataclass(frozen=True, slots=True)
class Found:
    """All that the finders of one task see in one text."""

    marks: tuple[Mark, ...] = ()
    echo: bool = False  #: the question's own answers, offered together, were repeated
    reasons: bool = False  #: what is fainter than the answer belongs to its reasons, and is left to the judges
    refusal: Callable[[], Refusal | None] = no_refusal  #: looked for only where it matters, for that is slow
