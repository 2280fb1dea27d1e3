"""All ways in which the parents of one group were asked, side by side, and what of them can be compared with what.

A side is one way: the stored answers, or those to one format. Scores of several sides are comparable on the same
parents only; ``support`` finds the parents that were asked every way, and says what that leaves out.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Self

import numpy as np

from auditor.domain.condition import Task
from auditor.metrics.bounds import Coverage, coverage
from auditor.metrics.joint import N_CELLS, SHAPE, Coded, Floats, Ints, joint_cell

#: The side of the answers that were there before.
STORED: Final = "stored"
#: Stands for a parent that was not asked this way.
ABSENT: Final = -1
#: A side that was asked of a smaller share of the parents is left out: it would leave too few to all others.
MOST: Final = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """One way in which all parents were asked: each parent's coded answer, or the reason why it was not asked so."""

    name: str
    task: Task | None  #: by which an answer's selection was read; an application's own question is in no format
    answers: Sequence[Coded | str]
    changes: Mapping[str, str] = field(default_factory=dict)  #: level by factor, as far as it departs from the first
    repeats: bool = False  #: whether it asks the same as the first, so that what moves between them moves by chance
    apart: str = ""  #: why its scores are not held against those of the other sides
    tokens: Sequence[int | None] = ()  #: of each parent's completion, where it is told

    @property
    def cells(self) -> Ints:
        """Each answer's cell in the joint table, or ``ABSENT``.

        Raises
        ------
        ValueError
            Labels contradict their reasons.
        """
        free = self.task is not None and not self.task.has_selection
        found = [ABSENT if isinstance(answer, str) else joint_cell(answer, free=free) for answer in self.answers]
        return np.array(found, dtype=np.int64)


@dataclass(frozen=True, kw_only=True, slots=True)
class Answers:
    """How many answers there are on one side, and how much of them could be read."""

    n: int  #: parents asked this way
    coverage: Coverage | None  #: of those; ``None`` where none was
    missing: Mapping[str, int]  #: parents not asked this way, by reason

    @classmethod
    def of(cls, side: Side) -> Self:
        """Count one side's answers.

        Examples
        --------
        >>> said = Coded(sel="E", sel_reason=None, elab="D", elab_reason=None)
        >>> found = Answers.of(Side(name=STORED, task=Task.BJ, answers=[said, said, "not_sent"]))
        >>> found.n, found.coverage.eligible, found.missing
        (2, 1.0, {'not_sent': 1})
        """
        cells = side.cells
        asked = cells[cells != ABSENT]
        reasons = Counter(answer for answer in side.answers if isinstance(answer, str))
        return cls(
            n=len(asked),
            coverage=coverage(np.bincount(asked, minlength=N_CELLS).reshape(SHAPE)) if len(asked) else None,
            missing=dict(sorted(reasons.items())),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Sides:
    """P parents, asked in S ways; the first is what the others are held against."""

    sides: tuple[Side, ...]
    cells: Ints  #: shape [P, S]
    cluster: Ints  #: shape [P]: number of the statement that a parent is about
    weight: Floats  #: shape [P], summing to P: how many exchanges a parent stands for, in such a unit

    @classmethod
    def of(cls, sides: Sequence[Side], statements: Sequence[str], weights: Sequence[float] | None = None) -> Self:
        """Put sides beside one another.

        Parameters
        ----------
        sides
            Answers in the order of ``statements``.
        statements
            What each parent is about: the clusters, numbered by name, so that the parents' order changes nothing.
        weights
            Above 0; without them all parents stand alike.

        Raises
        ------
        ValueError
            For sides of different length, or labels that contradict their reasons.
        """
        if any(len(side.answers) != len(statements) for side in sides):
            raise ValueError("every side needs an answer, or a reason, for every parent")
        weight = np.ones(len(statements)) if weights is None else np.asarray(weights, dtype=np.float64)
        return cls(
            sides=tuple(sides),
            cells=np.stack([side.cells for side in sides], axis=1),
            cluster=np.unique(np.array(statements, dtype=object).astype(str), return_inverse=True)[1].astype(np.int64),
            weight=_in_parents(weight),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Name the sides, in their order."""
        return tuple(side.name for side in self.sides)

    def worth(self, values: Floats) -> Floats:
        """Look up ``values[cell]`` of every answer, 0 where there is none; shape [P, S]."""
        found: Floats = np.append(values.ravel(), 0.0)[self.cells]  # the last entry is ABSENT's
        return found

    def by_statement(self, worth: Floats) -> Floats:
        """Sum values of answers [P, ...] over each statement's parents, weighted; shape [G, ...]."""
        out = np.zeros((int(self.cluster.max(initial=-1)) + 1, *worth.shape[1:]))
        np.add.at(out, self.cluster, worth * self.weight.reshape(-1, *[1] * (worth.ndim - 1)))
        return out

    def only(self, parents: np.ndarray, places: Sequence[int]) -> "Sides":
        """Keep some parents (a mask) and some sides (their places)."""
        rows = np.flatnonzero(parents).tolist()
        return Sides(
            sides=tuple(_of_parents(self.sides[place], rows) for place in places),
            cells=self.cells[parents][:, list(places)],
            cluster=np.unique(self.cluster[parents], return_inverse=True)[1].astype(np.int64),
            weight=_in_parents(self.weight[parents]),
        )


def _in_parents(weight: Floats) -> Floats:
    """Take such a unit of weight that counts stay counts."""
    return weight * (len(weight) / weight.sum()) if len(weight) else weight


def _of_parents(side: Side, rows: Sequence[int]) -> Side:
    return Side(
        name=side.name,
        task=side.task,
        answers=[side.answers[row] for row in rows],
        changes=side.changes,
        repeats=side.repeats,
        apart=side.apart,
        tokens=[side.tokens[row] for row in rows] if side.tokens else (),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Support:
    """The parents that were asked in every way that is compared."""

    sides: Sides
    left_out: Mapping[str, str]  #: why a side is not compared, by its name
    n_left_out: int  #: parents that were not asked all other ways


def support(whole: Sides) -> Support:
    """Find the largest ground on which sides can be compared: the first side, and each asked of most parents.

    An answer that never came counts as asked: what failed is part of what a way of asking does. Sides that are to stand
    apart do; one at least does not.

    Examples
    --------
    >>> said = Coded(sel="E", sel_reason=None, elab="E", elab_reason=None)
    >>> stored = Side(name=STORED, task=Task.BJ, answers=[said] * 4)
    >>> some = Side(name="CTO", task=Task.CTO, answers=[said, said, said, "no options"])
    >>> few = Side(name="SC", task=Task.SC, answers=[said, *["no blank"] * 3])
    >>> found = support(Sides.of([stored, some, few], ["s1", "s2", "s3", "s4"]))
    >>> found.sides.names, found.n_left_out, dict(found.left_out)
    (('stored', 'CTO'), 1, {'SC': 'asked of 1 of 4 exchanges'})
    """
    asked = whole.cells != ABSENT
    n = len(asked)
    counts = asked.sum(axis=0).tolist()
    reasons = [side.apart for side in whole.sides]
    first = reasons.index("")
    for place, count in enumerate(counts):
        if place != first and count < MOST * n:
            reasons[place] = reasons[place] or f"asked of {count} of {n} exchanges"
    kept = [place for place, reason in enumerate(reasons) if not reason]
    parents = asked[:, kept].all(axis=1)
    return Support(
        sides=whole.only(parents, kept),
        left_out={name: reason for name, reason in zip(whole.names, reasons, strict=True) if reason},
        n_left_out=int(n - parents.sum()),
    )
