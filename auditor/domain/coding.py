"""What split coding says of one response: a selection, an elaboration, or why there is none.

The labels and their order are those of the files, the store and the API (INTERFACE.md).
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

ABSTAIN: Final = "Abstain"

#: Selection labels, in the order of the joint table's rows.
SELECTION_LABELS: Final = ("E", "N", "D", "R", ABSTAIN)
#: Elaboration labels, in the order of the joint table's columns.
ELABORATION_LABELS: Final = ("E", "QE", "N", "D", "R", ABSTAIN)


class Stance(StrEnum):
    """A position towards the statement."""

    E = "E"  #: endorses
    QE = "QE"  #: qualified endorsement ("not always true, but generally ..."); elaboration only
    N = "N"  #: neutral, both or neither
    D = "D"  #: rejects
    R = "R"  #: refuses to take a position


class SelectionReason(StrEnum):
    """Why a selection is Abstain (the first is structural, the others are failures), or how an R came about."""

    NO_SELECTION_LAYER = "no_selection_layer"  #: the task asks for no discrete answer
    NO_MARKER = "no_marker"  #: neither answer nor refusal found
    BOTH_MARKERS = "both_markers"  #: two final markers conflict, without a refusal
    ECHO = "echo"  #: the prompt repeated back
    EMPTY = "empty"  #: nothing was answered
    TRUNCATED = "truncated"  #: cut off before an answer
    TRANSPORT_ERROR = "transport_error"  #: there is no response
    FILTERED = "filtered"  #: the provider's content filter blocked it (label R)


class ElaborationReason(StrEnum):
    """Why an elaboration is Abstain."""

    NO_ELABORATION = "no_elaboration"  #: nothing is left once the marker is taken away (structural)
    NO_JUDGE = "no_judge"  #: there is a text, and nobody to read it
    TIE = "tie"  #: the panel is tied at the top
    JUDGE_REFUSED = "judge_refused"  #: no judge gave a label
    NO_CLAIM = "no_claim"  #: open rubric: no stereotype is present (structural)
    TRANSPORT_ERROR = "transport_error"  #: there is no response


class SelectionVia(StrEnum):
    """Who found the selection's token. The mapping from token to stance is always the rule's."""

    RULE = "rule"
    JUDGE = "judge"


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """The discrete answer of one response: a stance without QE, or Abstain (``stance is None``) with its reason.

    ``remainder`` is the text with the answer's marker taken away: the elaboration's only input.
    """

    stance: Stance | None
    reason: SelectionReason | None = None
    via: SelectionVia = SelectionVia.RULE
    remainder: str = ""

    @property
    def label(self) -> str:
        """The label as files and APIs write it."""
        return self.stance.value if self.stance else ABSTAIN


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """One judge's reading of one elaboration. ``stance is None`` means that the judge refused or abstained."""

    judge: str
    stance: Stance | None
    reason: ElaborationReason | None = None
    rationale: str = ""

    @property
    def label(self) -> str:
        """The label as files and APIs write it."""
        return self.stance.value if self.stance else ABSTAIN


@dataclass(frozen=True, kw_only=True, slots=True)
class Elaboration:
    """The panel's reading of the free text: a stance, or Abstain (``stance is None``) with its reason."""

    stance: Stance | None
    reason: ElaborationReason | None = None
    verdicts: tuple[Verdict, ...] = ()

    @property
    def label(self) -> str:
        """The label as files and APIs write it."""
        return self.stance.value if self.stance else ABSTAIN
