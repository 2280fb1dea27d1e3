"""Hold the answers of one group by arm, and find the parents on which arms can be compared.

An arm is the stored answers, or the answers to one format. Scores of several arms are comparable on the same
parents only; ``common_parents`` finds the parents that were asked in every arm, and what that excludes.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Self

import numpy as np

from auditor.counting.joint import N_CELLS, SHAPE, Floats, Ints, LabelPair, is_selection_free, joint_cell
from auditor.documents.estimates import CoverageEntry
from auditor.domain.condition import Task
from auditor.metrics.bounds import coverage

#: The arm of the stored answers.
STORED: Final = "stored"
#: The cell of a parent that was not asked in this arm.
ABSENT: Final = -1
#: The least share of the parents that an arm must have been asked about. Others would leave too few common parents.
MOST: Final = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class Arm:
    """Each parent's coded answer in one arm, or the reason why it was not asked."""

    name: str
    task: Task | None  #: the task format of the answers; ``None`` for an application's own question
    answers: Sequence[LabelPair | str]
    rubric: str | None = None  #: under the open rubric there is no selection layer
    changes: Mapping[str, str] = field(default_factory=dict)  #: levels that differ from the first arm's
    repeats: bool = False  #: whether it asks the same as the first arm, so that all differences are due to chance
    excluded_reason: str = ""  #: why its scores are not compared with those of the other arms
    tokens: Sequence[int | None] = ()  #: completion tokens of each answer, if known

    @property
    def cells(self) -> Ints:
        """The cell of each answer in the joint table, or ``ABSENT``.

        Raises
        ------
        ValueError
            Labels contradict their reasons.
        """
        return np.array([self._cell(answer) for answer in self.answers], dtype=np.int64)

    def _cell(self, answer: LabelPair | str) -> int:
        if isinstance(answer, str):
            return ABSENT
        return joint_cell(answer, free=is_selection_free(self.task, self.rubric, answer.sel))


@dataclass(frozen=True, kw_only=True, slots=True)
class ArmCounts:
    """The number of answers in one arm, and the share of them that could be coded."""

    n: int  #: parents that were asked in this arm
    coverage: CoverageEntry | None  #: share of those; ``None`` if there are none
    missing: Mapping[str, int]  #: parents that were not asked in this arm, by reason

    @classmethod
    def of(cls, arm: Arm) -> Self:
        """Count one arm's answers.

        Examples
        --------
        >>> said = LabelPair(sel="E", sel_reason=None, elab="D", elab_reason=None)
        >>> found = ArmCounts.of(Arm(name=STORED, task=Task.BJ, answers=[said, said, "not_sent"]))
        >>> found.n, found.coverage.eligible, found.missing
        (2, 1.0, {'not_sent': 1})
        """
        cells = arm.cells
        present = cells[cells != ABSENT]
        reasons = Counter(answer for answer in arm.answers if isinstance(answer, str))
        return cls(
            n=len(present),
            coverage=coverage(np.bincount(present, minlength=N_CELLS).reshape(SHAPE)) if len(present) else None,
            missing=dict(sorted(reasons.items())),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Arms:
    """The answers to P parents in S arms. The first arm is the one that others are compared with."""

    arms: tuple[Arm, ...]
    cells: Ints  #: shape [P, S]
    cluster: Ints  #: shape [P]: index of the parent's statement
    weight: Floats  #: shape [P]: weight of each parent (the exchanges that it represents), scaled to sum to P

    @classmethod
    def of(cls, arms: Sequence[Arm], statements: Sequence[str], weights: Sequence[float] | None = None) -> Self:
        """Combine arms.

        Parameters
        ----------
        arms
            Answers in the order of ``statements``.
        statements
            The cluster of each parent. Clusters are numbered by name, so the order of the parents has no effect.
        weights
            Above 0; by default all parents have the same weight.

        Raises
        ------
        ValueError
            The arms have different lengths, or labels contradict their reasons.
        """
        if any(len(arm.answers) != len(statements) for arm in arms):
            raise ValueError("every arm needs an answer, or a reason, for every parent")
        weight = np.ones(len(statements)) if weights is None else np.asarray(weights, dtype=np.float64)
        return cls(
            arms=tuple(arms),
            cells=np.stack([arm.cells for arm in arms], axis=1),
            cluster=np.unique(np.array(statements, dtype=object).astype(str), return_inverse=True)[1].astype(np.int64),
            weight=_in_parents(weight),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the arms, in their order."""
        return tuple(arm.name for arm in self.arms)

    def values(self, values: Floats) -> Floats:
        """Return ``values[cell]`` of every answer, 0 for an absent one; shape [P, S]."""
        answer_values: Floats = np.append(values.ravel(), 0.0)[self.cells]  # the last entry is ABSENT's
        return answer_values

    def sum_by_statement(self, values: Floats) -> Floats:
        """Return the weighted sums of the answers' values [P, ...] by statement; shape [G, ...]."""
        out = np.zeros((int(self.cluster.max(initial=-1)) + 1, *values.shape[1:]))
        np.add.at(out, self.cluster, values * self.weight.reshape(-1, *[1] * (values.ndim - 1)))
        return out

    def only(self, parents: np.ndarray, places: Sequence[int]) -> "Arms":
        """Return some of the parents (a mask) and arms (their indices)."""
        rows = np.flatnonzero(parents).tolist()
        return Arms(
            arms=tuple(_of_parents(self.arms[place], rows) for place in places),
            cells=self.cells[parents][:, list(places)],
            cluster=np.unique(self.cluster[parents], return_inverse=True)[1].astype(np.int64),
            weight=_in_parents(self.weight[parents]),
        )


def _in_parents(weight: Floats) -> Floats:
    """Scale weights to sum to the number of parents, so that weighted sums are comparable to counts."""
    return weight * (len(weight) / weight.sum()) if len(weight) else weight


def _of_parents(arm: Arm, rows: Sequence[int]) -> Arm:
    return replace(
        arm,
        answers=[arm.answers[row] for row in rows],
        tokens=[arm.tokens[row] for row in rows] if arm.tokens else (),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class CommonParents:
    """The parents that were asked in every arm that is compared."""

    arms: Arms
    left_out: Mapping[str, str]  #: the reason why an arm is excluded, by its name
    n_left_out: int  #: parents that were not asked in all other arms


def common_parents(whole: Arms) -> CommonParents:
    """Find the parents that were asked in every arm, after excluding arms that were asked of few parents.

    A failed call counts as asked, because failures are an effect of the format. Arms with an ``excluded_reason`` stay
    excluded; at least one arm must have none.

    Examples
    --------
    >>> said = LabelPair(sel="E", sel_reason=None, elab="E", elab_reason=None)
    >>> stored = Arm(name=STORED, task=Task.BJ, answers=[said] * 4)
    >>> some = Arm(name="CTO", task=Task.CTO, answers=[said, said, said, "no options"])
    >>> few = Arm(name="SC", task=Task.SC, answers=[said, *["no blank"] * 3])
    >>> found = common_parents(Arms.of([stored, some, few], ["s1", "s2", "s3", "s4"]))
    >>> found.arms.names, found.n_left_out, dict(found.left_out)
    (('stored', 'CTO'), 1, {'SC': 'asked of 1 of 4 exchanges'})
    """
    present = whole.cells != ABSENT
    n = len(present)
    counts = present.sum(axis=0).tolist()
    reasons = [arm.excluded_reason for arm in whole.arms]
    first = reasons.index("")
    for place, count in enumerate(counts):
        if place != first and count < MOST * n:
            reasons[place] = reasons[place] or f"asked of {count} of {n} exchanges"
    kept = [place for place, reason in enumerate(reasons) if not reason]
    parents = present[:, kept].all(axis=1)
    return CommonParents(
        arms=whole.only(parents, kept),
        left_out={name: reason for name, reason in zip(whole.names, reasons, strict=True) if reason},
        n_left_out=int(n - parents.sum()),
    )
