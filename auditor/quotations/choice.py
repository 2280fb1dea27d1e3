"""Find the responses that reports quote: case studies, and the statement with the largest swing between two tasks.

A case study is the shortest response of its kind whose two layers clearly disagree: every judge of the panel gave the
reported label. A swing is the statement on which a deployment's selections differ most between two tasks; a task
without a selection is shown beside the others. Rules choose the examples, so nobody can choose convenient ones
(BiAxisAudit Appendix E, Table VIII).
"""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, NamedTuple

from msgspec import UNSET

from auditor.counting.conditions import FACTORS, Levels
from auditor.counting.joint import FREE_TASKS
from auditor.counting.rows import STATEMENT, TASKS, CodedRow, Vote
from auditor.documents.analysis import CaseEntry, SwingAnswer, SwingEntry, VoteEntry
from auditor.domain.coding import ABSTAIN
from auditor.reviews.opinions import Layer

#: Over: only the selection endorses. Under: only the elaboration endorses (E). Qualified: the same with QE.
Stratum = Literal["over", "under", "qualified"]
STRATA: Final[tuple[Stratum, ...]] = ("over", "under", "qualified")

_BY_LABELS: Final[Mapping[tuple[str, str], Stratum]] = dict(
    [(("E", elab), "over") for elab in ("N", "D", "R")]
    + [((sel, "E"), "under") for sel in ("N", "D", "R")]
    + [((sel, "QE"), "qualified") for sel in ("N", "D", "R")]
)
_SEL: Final = Layer.SEL.value
#: Length of an unknown text; any known text is shorter.
_ENDLESS: Final = sys.maxsize


def stratum_of(sel: str, elab: str, votes: Sequence[Vote]) -> Stratum | None:
    """Return the stratum of a response; None if its layers agree, one has no label, or a vote differs.

    Examples
    --------
    >>> stratum_of("E", "D", [Vote("a", "D"), Vote("b", "D")])
    'over'
    >>> stratum_of("E", "D", [Vote("a", "D"), Vote("b", "N")])
    """
    stratum = _BY_LABELS.get((sel, elab))
    return stratum if stratum and _unanimous(sel, elab, votes) else None


def _unanimous(sel: str, elab: str, votes: Sequence[Vote]) -> bool:
    """Return whether judges read the elaboration, and each vote is the reported label of its layer."""
    return any(vote.layer != _SEL for vote in votes) and all(
        vote.label == (sel if vote.layer == _SEL else elab) for vote in votes
    )


def length(row: CodedRow) -> int:
    """Count the characters of a response."""
    return _ENDLESS if row.response is None else len(row.response)


class CaseFinder:
    """A collector of cases from responses that are added one by one, in any order."""

    def __init__(self) -> None:
        self._seen: Counter[tuple[str, Stratum]] = Counter()
        #: The shortest response so far, with its length and id.
        self._first: dict[tuple[str, Stratum], tuple[tuple[int, str], CodedRow, Levels]] = {}

    def add(self, row: CodedRow, condition: Levels) -> None:
        """Add one response to a statement."""
        stratum = stratum_of(row.sel, row.elab, row.votes or ())
        if stratum is None:
            return
        key = (row.deployment, stratum)
        self._seen[key] += 1
        order = (length(row), str(row.id))
        if key not in self._first or order < self._first[key][0]:
            self._first[key] = (order, row, condition)

    def cases(self) -> tuple[CaseEntry, ...]:
        """Return a case for each deployment and stratum that has one, sorted by both."""
        order = sorted(self._first, key=lambda key: (key[0], STRATA.index(key[1])))
        return tuple(self._case(deployment, stratum) for deployment, stratum in order)

    def _case(self, deployment: str, stratum: Stratum) -> CaseEntry:
        _, row, condition = self._first[deployment, stratum]
        votes = sorted((vote.judge, vote.label) for vote in row.votes or () if vote.layer != _SEL)
        return CaseEntry(
            rubric=STATEMENT,
            deployment=deployment,
            stratum=stratum,
            n=self._seen[deployment, stratum],
            id=str(row.id),
            statement_id=None if row.statement_id is None else str(row.statement_id),
            statement=row.statement,
            category=row.category or None,
            **dict(zip(FACTORS, condition, strict=True)),
            sel=row.sel,
            elab=row.elab,
            votes=[VoteEntry(judge=judge, label=label) for judge, label in votes],
            response=UNSET if row.response is None else row.response,
        )


#: The number of words of a response that are shown.
SHOWN_WORDS: Final = 25
#: The measure whose swing is shown.
SWING_METRIC: Final = "ber_sel_full"


def widest_swing(rates: Mapping[str, Mapping[str, Fraction]]) -> tuple[str, Fraction] | None:
    """Find the statement whose rates differ most between two tasks.

    Parameters
    ----------
    rates
        Rates by statement and task.

    Returns
    -------
    (str, Fraction) or None
        The first by name among equals, and its largest rate minus its smallest. None where no statement has two rates.

    Examples
    --------
    >>> one, half = Fraction(1), Fraction(1, 2)
    >>> widest_swing({"S2": {"BJ": half, "CTO": one}, "S1": {"BJ": one, "CTO": half}, "S0": {"CTO": one}})
    ('S1', Fraction(1, 2))
    """
    deltas = {
        name: max(task_rates.values()) - min(task_rates.values())
        for name, task_rates in rates.items()
        if len(task_rates) > 1
    }
    if not deltas:
        return None
    name = min(deltas, key=lambda each: (-deltas[each], each))
    return name, deltas[name]


def first_words(text: str) -> str:
    r"""Cut a text to its first words.

    Examples
    --------
    >>> first_words("No.\n\nIt depends.")
    'No. It depends.'
    """
    words = text.split(maxsplit=SHOWN_WORDS)
    return " ".join(words[:SHOWN_WORDS]) + (" …" if len(words) > SHOWN_WORDS else "")


class _Shown(NamedTuple):
    """The stored part of the shortest answer; of equally long ones the first by id."""

    length: int
    id: str
    sel: str
    elab: str
    response: str | None
    statement_id: str | int | None
    statement: str | None


def _shown(row: CodedRow) -> _Shown:
    return _Shown(length(row), str(row.id), row.sel, row.elab, row.response, row.statement_id, row.statement)


@dataclass(slots=True)
class _Held:
    """The stored part of a deployment's answers to one statement under one task."""

    shown: _Shown
    n: int = 0
    endorsed: int = 0

    def add(self, row: CodedRow) -> None:
        self.n += 1
        if row.sel == "E":
            self.endorsed += 1
        n_characters = length(row)
        if n_characters <= self.shown.length and (n_characters, str(row.id)) < (self.shown.length, self.shown.id):
            self.shown = _shown(row)

    def answer(self, task: str) -> SwingAnswer:
        return SwingAnswer(
            task=task,
            n=self.n,
            id=self.shown.id,
            sel=self.shown.sel,
            elab=self.shown.elab,
            rate=UNSET if task in FREE_TASKS else self.endorsed / self.n,
            response=UNSET if self.shown.response is None else first_words(self.shown.response),
        )


class SwingFinder:
    """A collector of each deployment's largest swing from responses that are added one by one, in any order."""

    def __init__(self) -> None:
        #: By deployment, statement and task.
        self._held: dict[tuple[str, str, str], _Held] = {}

    def add(self, row: CodedRow, statement: str) -> None:
        """Add one response to ``statement``; a row that names no statement cannot be compared and is left out."""
        if row.statement_id is None and row.statement is None:
            return
        if (row.elab if row.task in FREE_TASKS else row.sel) == ABSTAIN:
            return
        key = (row.deployment, statement, row.task)
        held = self._held.get(key)
        if held is None:
            held = self._held[key] = _Held(_shown(row))
        held.add(row)

    def swings(self) -> tuple[SwingEntry, ...]:
        """Return a swing for each deployment with a statement that was asked under two tasks, by deployment."""
        rates: dict[str, dict[str, dict[str, Fraction]]] = {}
        for (deployment, statement, task), held in self._held.items():
            if task not in FREE_TASKS:
                rate = Fraction(held.endorsed, held.n)
                rates.setdefault(deployment, {}).setdefault(statement, {})[task] = rate
        widest = {deployment: widest_swing(by_statement) for deployment, by_statement in sorted(rates.items())}
        return tuple(self._swing(deployment, *swing) for deployment, swing in widest.items() if swing)

    def _swing(self, deployment: str, statement: str, delta: Fraction) -> SwingEntry:
        by_task = {task: held for task in TASKS if (held := self._held.get((deployment, statement, task)))}
        shown = next(iter(by_task.values())).shown
        return SwingEntry(
            rubric=STATEMENT,
            deployment=deployment,
            statement_id=None if shown.statement_id is None else str(shown.statement_id),
            statement=shown.statement,
            metric=SWING_METRIC,
            delta=float(delta),
            tasks=[held.answer(task) for task, held in by_task.items()],
        )
