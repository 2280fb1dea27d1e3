"""Case studies: of the responses whose two layers disagree beyond doubt, the shortest of each kind.

Beyond doubt: every judge of the panel gave the label that was reported; the selection is a rule's. Nobody picks the
examples, so that none can be picked to please (BiAxisAudit Appendix E).
"""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from auditor.analysis.rows import CodedRow, Vote
from auditor.domain.review import Layer
from auditor.metrics.shares import Levels

#: Over: the selection alone endorses. Under: the elaboration alone does, outright. Qualified: it alone does, in part.
Stratum = Literal["over", "under", "qualified"]
STRATA: Final[tuple[Stratum, ...]] = ("over", "under", "qualified")

_BY_LABELS: Final[Mapping[tuple[str, str], Stratum]] = dict(
    [(("E", elab), "over") for elab in ("N", "D", "R")]
    + [((sel, "E"), "under") for sel in ("N", "D", "R")]
    + [((sel, "QE"), "qualified") for sel in ("N", "D", "R")]
)
_SEL: Final = Layer.SEL.value
#: Stands for the length of a text that is not known: any other is shorter.
_ENDLESS: Final = sys.maxsize


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One response that stands for its stratum."""

    deployment: str
    stratum: Stratum
    n: int  #: responses of the stratum
    id: str
    statement_id: str | None
    statement: str | None
    category: str | None
    condition: Levels
    response: str | None  #: None where its text is not known
    sel: str
    elab: str
    votes: tuple[Vote, ...]


def stratum_of(sel: str, elab: str, votes: Sequence[Vote]) -> Stratum | None:
    """Name the stratum of a response; None where its layers agree, one has no label, or a judge says otherwise.

    Examples
    --------
    >>> stratum_of("E", "D", [Vote("a", "D"), Vote("b", "D")])
    'over'
    >>> stratum_of("E", "D", [Vote("a", "D"), Vote("b", "N")])
    """
    stratum = _BY_LABELS.get((sel, elab))
    return stratum if stratum and _unanimous(sel, elab, votes) else None


def _unanimous(sel: str, elab: str, votes: Sequence[Vote]) -> bool:
    """Whether judges read the elaboration, and every vote is the label that was reported of its layer."""
    return any(vote.layer != _SEL for vote in votes) and all(
        vote.label == (sel if vote.layer == _SEL else elab) for vote in votes
    )


def length(row: CodedRow) -> int:
    """Count the characters of a response."""
    return _ENDLESS if row.response is None else len(row.response)


class CaseFinder:
    """Finds the cases among responses that are seen one by one, in any order."""

    def __init__(self) -> None:
        self._seen: Counter[tuple[str, Stratum]] = Counter()
        #: The shortest with its length and id, by which it is.
        self._first: dict[tuple[str, Stratum], tuple[tuple[int, str], CodedRow, Levels]] = {}

    def add(self, row: CodedRow, condition: Levels) -> None:
        """See one response to a statement."""
        stratum = stratum_of(row.sel, row.elab, row.votes or ())
        if stratum is None:
            return
        key = (row.deployment, stratum)
        self._seen[key] += 1
        own = (length(row), str(row.id))
        if key not in self._first or own < self._first[key][0]:
            self._first[key] = (own, row, condition)

    def found(self) -> tuple[Case, ...]:
        """Give a case for each deployment and stratum that has one, in this order."""
        order = sorted(self._first, key=lambda key: (key[0], STRATA.index(key[1])))
        return tuple(
            Case(
                deployment=deployment,
                stratum=stratum,
                n=self._seen[deployment, stratum],
                id=str(row.id),
                statement_id=None if row.statement_id is None else str(row.statement_id),
                statement=row.statement,
                category=row.category or None,
                condition=condition,
                response=row.response,
                sel=row.sel,
                elab=row.elab,
                votes=row.votes or (),
            )
            for deployment, stratum in order
            for _, row, condition in [self._first[deployment, stratum]]
        )
