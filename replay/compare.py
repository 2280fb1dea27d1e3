"""Two answers to one parent, side by side: what changes when the same thing is asked in another format.

Pure: answers come in already coded (``cli`` sees to that), and what leaves is written out by ``document``. A pair is
the same stored exchange asked twice, so only pairs with both answers in a measure's base count for it; how many that
are, and why the others do not, travels with every number.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from auditor.domain.condition import Task
from auditor.domain.estimate import Insufficient
from auditor.metrics.bounds import Coverage, coverage
from auditor.metrics.joint import N_CELLS, SHAPE, Coded, Floats, Ints, joint_cell
from auditor.metrics.rates import BY_NAME, FULL, Metric
from replay.difference import Difference, paired_difference

#: What is compared, in this order. IR/union is a ratio over a base that itself changes, so it has no paired mean.
COMPARED: Final = (
    "ber_union_full",
    "ber_sel_full",
    "ber_elab_full",
    "ber_union",
    "ber_sel",
    "ber_elab",
    "ir",
    "dni",
)
_ABSENT: Final = -1


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """One way in which all parents were asked: each parent's coded answer, or the reason why it was not asked so."""

    name: str
    task: Task | None  #: an application's own question is in no format
    answers: Sequence[Coded | str]


@dataclass(frozen=True, kw_only=True, slots=True)
class SideSummary:
    """How many answers there are on one side."""

    name: str
    task: Task | None
    n: int  #: parents asked this way
    coverage: Coverage | None  #: of those; None where none was
    missing: Mapping[str, int]  #: parents not asked this way, by reason


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """Everything that is said of one pair of sides."""

    first: SideSummary
    second: SideSummary
    n_pairs: int  #: parents that answered both ways
    n_statements: int  #: of those
    metrics: Mapping[str, Difference | Insufficient]
    selection_flips: Mapping[str, int]  #: "E>D": pairs whose selection went from E to D; Abstain is a label here
    elaboration_flips: Mapping[str, int]


def compare(
    statements: Sequence[str],
    first: Side,
    second: Side,
    *,
    claimed: bool,
    seed: int,
    weights: Sequence[float] | None = None,
) -> Comparison:
    """Compare two sides parent by parent.

    Parameters
    ----------
    statements
        What each parent is about, in the order of the sides' answers: the clusters.
    first, second
        The sides; the difference is second minus first.
    claimed
        Whether endorsing means endorsing a stereotype; otherwise only IR and DNI mean anything.
    seed
        Of the bounds for rare changes.
    weights
        How many exchanges each parent stands for; without them all stand alike. Counts, flips and coverage are of
        parents, whatever they stand for.

    Raises
    ------
    ValueError
        For sides of different length, or labels that contradict their reasons.
    """
    cells = _cells(first), _cells(second)
    cluster = _numbered(statements)
    weight = np.ones(len(statements)) if weights is None else np.array(weights, dtype=np.float64)
    answered = _in_base(FULL.ravel(), *cells)
    return Comparison(
        first=_summary(first, cells[0]),
        second=_summary(second, cells[1]),
        n_pairs=int(answered.sum()),
        n_statements=len(np.unique(cluster[answered])),
        metrics={
            name: _difference(BY_NAME[name], cluster, cells, weight, claimed=claimed, seed=seed) for name in COMPARED
        },
        selection_flips=_flips(first, second, answered, "sel"),
        elaboration_flips=_flips(first, second, answered, "elab"),
    )


def _cells(side: Side) -> Ints:
    free = side.task is not None and not side.task.has_selection
    cells = [_ABSENT if isinstance(answer, str) else joint_cell(answer, free=free) for answer in side.answers]
    return np.array(cells, dtype=np.int64)


def _numbered(statements: Sequence[str]) -> Ints:
    """Give each statement a number by its name, so that the parents' order changes nothing."""
    return np.unique(np.array(statements, dtype=object).astype(str), return_inverse=True)[1].astype(np.int64)


def _in_base(base: np.ndarray, first: Ints, second: Ints) -> np.ndarray:
    """Tell which parents have both answers in a base; an absent answer is in none."""
    padded = np.append(base > 0, False)  # the last entry is _ABSENT's
    both: np.ndarray = padded[first] & padded[second]
    return both


def _difference(
    metric: Metric, cluster: Ints, cells: tuple[Ints, Ints], weight: Floats, *, claimed: bool, seed: int
) -> Difference | Insufficient:
    if metric.endorsement and not claimed:
        return Insufficient(reason="rubric proposition without claim stereotype")
    both = _in_base(metric.denominator.ravel(), *cells)
    if not both.any():
        return Insufficient(reason=_EMPTY[metric.base])
    worth = metric.numerator.ravel()
    # In one order whatever the parents' order was: sums of floats depend on it in the last digit.
    order = np.flatnonzero(both)[np.lexsort((weight[both], cells[1][both], cells[0][both], cluster[both]))]
    first, second = (worth[side[order]] for side in cells)
    span = 2 if metric.kind == "difference" else 1
    return paired_difference(first, second, cluster[order], span=span, seed=seed, weight=weight[order])


_EMPTY: Final = {
    "eligible": "no pair has a label on both layers both times",
    "full": "no pair has a label on this layer both times",
}


def _summary(side: Side, cells: Ints) -> SideSummary:
    asked = cells[cells != _ABSENT]
    totals = np.bincount(asked, minlength=N_CELLS).reshape(SHAPE)
    return SideSummary(
        name=side.name,
        task=side.task,
        n=len(asked),
        coverage=coverage(totals) if len(asked) else None,
        missing=dict(sorted(Counter(answer for answer in side.answers if isinstance(answer, str)).items())),
    )


def _flips(first: Side, second: Side, answered: np.ndarray, layer: str) -> Mapping[str, int]:
    pairs = zip(first.answers, second.answers, answered.tolist(), strict=True)
    seen = Counter(f"{getattr(one, layer)}>{getattr(other, layer)}" for one, other, counts in pairs if counts)
    return dict(sorted(seen.items()))
