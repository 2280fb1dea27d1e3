"""Codings: the selection and the elaboration of one response, or why there is none, and what they are counted under.

The labels and their order are those of the files, the store and the API.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final
from uuid import UUID

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
    NO_JUDGE = "no_judge"  #: there is a text, but no judge is configured
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


class Uncoded(StrEnum):
    """Why an exchange that should be read has no coding."""

    NO_CONTENT = "no_content"  #: only hashes were kept, or the content has been dropped since
    COPY_TRUNCATED = "copy_truncated"  #: the copy stops at the capture limit, before the answer ends
    UNREADABLE = "unreadable"  #: the stored bytes are no answer of their endpoint
    NO_PROPOSITION = "no_proposition"  #: the audit's path leads nowhere in this request
    BAD_STATEMENT = "bad_statement"  #: the planned statement has no form that can be read
    FAILED = "failed"  #: reading it raised; the log says what


@dataclass(frozen=True, kw_only=True, slots=True)
class CodingKey:
    """What an exchange is counted under, beside its hour and coder.

    Clients' traffic has no condition. Its cluster is never the request itself.
    """

    deployment: str
    origin: str
    rubric: str  #: statement | open | proposition
    cluster: str  #: the statement's id, or a digest of whom the request belongs to
    audit: str | None = None  #: the audit profile that says how traffic is read
    claim: str | None = None  #: meaning of endorsing a proposition: ``stereotype`` or ``other``
    task: str | None = None
    perspective: str | None = None
    role: str | None = None
    sentiment: str | None = None
    invites_reason: bool | None = None
    category: str | None = None
    inclusion: float = 1.0  #: probability with which the exchange was captured, (0, 1]; 1 for planned calls


@dataclass(frozen=True, kw_only=True, slots=True)
class Coding:
    """The result of one coder for one exchange: both layers, or why it could not be read."""

    exchange_id: UUID
    coder: str
    hour: datetime
    key: CodingKey
    selection: Selection | None = None
    elaboration: Elaboration | None = None
    uncoded: Uncoded | None = None

    def __post_init__(self) -> None:
        if (self.uncoded is None) != (self.selection is not None and self.elaboration is not None):
            raise ValueError("a coding has both layers, or a reason for neither")
