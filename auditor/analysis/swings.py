"""One statement, several tasks: where a deployment's selection depends on the task more than anywhere else.

Every response to the statement counts that has a selection, whatever else it was asked under; a task that asks for
none is shown beside the others (BiAxisAudit Appendix E, Table VIII).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, NamedTuple

from auditor.analysis.cases import length
from auditor.analysis.rows import TASKS, CodedRow
from auditor.domain.coding import ABSTAIN
from auditor.metrics.joint import FREE_TASKS

#: So many words of a response are shown.
SHOWN_WORDS: Final = 25


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """A statement's answers under one task: how many endorse, and the shortest of them."""

    task: str
    n: int  #: with a selection; under a free task, with an elaboration
    rate: Fraction | None  #: of selections that endorse; None under a free task
    id: str
    sel: str
    elab: str
    response: str | None  #: its first words; None where its text is not known


@dataclass(frozen=True, kw_only=True, slots=True)
class Swing:
    """The statement of one deployment whose selections differ most between two tasks."""

    deployment: str
    statement_id: str | None
    statement: str | None
    delta: Fraction
    answers: tuple[Answer, ...]  #: in the order of the tasks


def widest_swing(rates: Mapping[str, Mapping[str, Fraction]]) -> tuple[str, Fraction] | None:
    """Find the statement whose rates differ most between two tasks.

    Parameters
    ----------
    rates
        By statement and task.

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
    deltas = {name: max(own.values()) - min(own.values()) for name, own in rates.items() if len(own) > 1}
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
    """What is kept of the shortest answer; of equally long ones the first by id."""

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
    """What is kept of a deployment's answers to one statement under one task."""

    shown: _Shown
    n: int = 0
    endorsed: int = 0

    def add(self, row: CodedRow) -> None:
        self.n += 1
        if row.sel == "E":
            self.endorsed += 1
        own = length(row)
        if own <= self.shown.length and (own, str(row.id)) < (self.shown.length, self.shown.id):
            self.shown = _shown(row)

    def answer(self, task: str) -> Answer:
        return Answer(
            task=task,
            n=self.n,
            rate=None if task in FREE_TASKS else Fraction(self.endorsed, self.n),
            id=self.shown.id,
            sel=self.shown.sel,
            elab=self.shown.elab,
            response=None if self.shown.response is None else first_words(self.shown.response),
        )


class SwingFinder:
    """Finds each deployment's widest swing among responses that are seen one by one, in any order."""

    def __init__(self) -> None:
        #: By deployment, statement and task.
        self._held: dict[tuple[str, str, str], _Held] = {}

    def add(self, row: CodedRow, statement: str) -> None:
        """See one response to ``statement``, however that is named; a row that names none is beside no other."""
        if row.statement_id is None and row.statement is None:
            return
        if (row.elab if row.task in FREE_TASKS else row.sel) == ABSTAIN:
            return
        key = (row.deployment, statement, row.task)
        held = self._held.get(key)
        if held is None:
            held = self._held[key] = _Held(_shown(row))
        held.add(row)

    def found(self) -> tuple[Swing, ...]:
        """Give a swing for each deployment with a statement that was asked under two tasks, in their order."""
        rates: dict[str, dict[str, dict[str, Fraction]]] = {}
        for (deployment, statement, task), held in self._held.items():
            if task not in FREE_TASKS:
                rate = Fraction(held.endorsed, held.n)
                rates.setdefault(deployment, {}).setdefault(statement, {})[task] = rate
        widest = {deployment: widest_swing(own) for deployment, own in sorted(rates.items())}
        return tuple(self._swing(deployment, *swing) for deployment, swing in widest.items() if swing)

    def _swing(self, deployment: str, statement: str, delta: Fraction) -> Swing:
        own = {task: held for task in TASKS if (held := self._held.get((deployment, statement, task)))}
        shown = next(iter(own.values())).shown
        return Swing(
            deployment=deployment,
            statement_id=None if shown.statement_id is None else str(shown.statement_id),
            statement=shown.statement,
            delta=delta,
            answers=tuple(held.answer(task) for task, held in own.items()),
        )
