"""The queue of one draw, layer and view: who labels which answer next, and which labels differ.

Each answer gets the labels of two reviewers. While one reads it, it is locked for the others. Where the two differ, a
third person adjudicates.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from auditor.reviews.opinions import AnswerView, Layer

#: Labels that an answer gets, not counting an adjudication.
REVIEWERS: Final = 2
#: How long an answer stays with a reviewer who does not label it.
LOCK_FOR: Final = timedelta(minutes=10)


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueKey:
    """What a queue asks for."""

    draw: str
    layer: Layer
    view: AnswerView


@dataclass(frozen=True, kw_only=True, slots=True)
class GivenLabel:
    """A reviewer's newest label of an answer; ``id`` grows with time."""

    id: int
    reviewer: str
    label: str
    note: str | None = None
    adjudicates: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueItem:
    """One answer of a queue."""

    exchange_id: UUID
    labels: tuple[GivenLabel, ...] = ()
    locked_by: str | None = None
    locked_until: datetime | None = None

    @property
    def independent(self) -> tuple[GivenLabel, ...]:
        """The labels of those who had not seen another's."""
        return tuple(each for each in self.labels if not each.adjudicates)

    @property
    def is_disputed(self) -> bool:
        """Whether its labels differ, and nobody has settled it."""
        different = len({each.label for each in self.independent}) > 1
        return different and len(self.independent) == len(self.labels)

    def by(self, reviewer: str) -> GivenLabel | None:
        """Return a reviewer's label."""
        return next((each for each in self.labels if each.reviewer == reviewer), None)

    def open_to(self, reviewer: str) -> bool:
        """Whether the answer still needs a label, and this reviewer has given none."""
        return self.by(reviewer) is None and len(self.independent) < REVIEWERS

    def settled_by(self, reviewer: str) -> bool:
        """Whether this reviewer may adjudicate: the labels differ, and none is the reviewer's."""
        return self.is_disputed and self.by(reviewer) is None

    def is_free(self, reviewer: str, now: datetime) -> bool:
        """Whether nobody else is reading it."""
        held = self.locked_until is not None and self.locked_until > now
        return not held or self.locked_by == reviewer


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueProgress:
    """Numbers of answers of a queue."""

    items: int
    by_reviewer: int  #: labelled by the reviewer
    complete: int  #: answers with the labels of ``REVIEWERS`` people
    disputed: int  #: labels differ, and nobody has settled it
    adjudicated: int


def candidates(
    items: Sequence[QueueItem], reviewer: str, now: datetime, *, adjudicate: bool = False
) -> list[QueueItem]:
    """Return what a reviewer may label now, in the order of the draw; the first comes next."""
    return [
        item
        for item in items
        if (item.settled_by(reviewer) if adjudicate else item.open_to(reviewer)) and item.is_free(reviewer, now)
    ]


def history(items: Sequence[QueueItem], reviewer: str) -> list[QueueItem]:
    """Return what a reviewer has labelled, the latest label last."""
    labelled = [(label.id, item) for item in items if (label := item.by(reviewer)) is not None]
    return [item for _, item in sorted(labelled, key=lambda pair: pair[0])]


def progress(items: Sequence[QueueItem], reviewer: str) -> QueueProgress:
    """Count how far a queue has come."""
    return QueueProgress(
        items=len(items),
        by_reviewer=sum(item.by(reviewer) is not None for item in items),
        complete=sum(len(item.independent) >= REVIEWERS for item in items),
        disputed=sum(item.is_disputed for item in items),
        adjudicated=sum(len(item.independent) < len(item.labels) for item in items),
    )
