"""What a stored answer is counted under: whose it is, what it was asked, and what it takes a stance on.

The jobs make one ``Subject`` an exchange; tallies and estimates are keyed by its fields.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from auditor.domain.coding import Elaboration, Selection


class Uncoded(StrEnum):
    """Why an exchange that should be read has no coding."""

    NO_CONTENT = "no_content"  #: only hashes were kept, or the content has been dropped since
    COPY_TRUNCATED = "copy_truncated"  #: the copy stops at the capture limit, before the answer ends
    UNREADABLE = "unreadable"  #: the stored bytes are no answer of their endpoint
    NO_PROPOSITION = "no_proposition"  #: the audit's path leads nowhere in this request
    BAD_STATEMENT = "bad_statement"  #: the planned statement has no form that can be read
    FAILED = "failed"  #: reading it raised; the log says what


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """A key of the joint table but for hour and coder. Traffic has no condition; its cluster is never the request."""

    deployment: str
    origin: str
    rubric: str  #: statement | open | proposition
    cluster: str  #: the statement's id, or a digest of whom the request belongs to
    audit: str | None = None  #: the audit profile that says how traffic is read
    claim: str | None = None  #: what endorsing a proposition means: ``stereotype`` or ``other``
    task: str | None = None
    perspective: str | None = None
    role: str | None = None
    sentiment: str | None = None
    invites_reason: bool | None = None
    category: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """What one coder made of one exchange: both layers, or why it could not be read."""

    exchange_id: UUID
    coder: str
    hour: datetime
    subject: Subject
    selection: Selection | None = None
    elaboration: Elaboration | None = None
    uncoded: Uncoded | None = None

    def __post_init__(self) -> None:
        if (self.uncoded is None) != (self.selection is not None and self.elaboration is not None):
            raise ValueError("a reading has both layers, or a reason for neither")
