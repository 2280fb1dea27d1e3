"""Two answers to one parent, side by side: what changes when the same thing is asked in another way.

Pure: answers come in already coded (``replay.conclusion`` sees to that), and what leaves is written out by
``document``. A pair is the same stored exchange answered twice, so only pairs with both answers in a measure's base
count for it; how many that are, and why the others do not, travels with every number.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from auditor.domain.estimate import Insufficient
from auditor.metrics.rates import BY_NAME, ELIGIBLE, FULL, Metric
from auditor.stats.effects import cohen_h
from replay.comparison.difference import Difference, paired_difference
from replay.comparison.flips import Discordance, Flips, flips, mcnemar
from replay.comparison.sides import ABSENT, Sides

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
NO_CLAIM: Final = "rubric proposition without claim stereotype"
_EMPTY: Final = {
    "eligible": "no pair has a label on both layers both times",
    "full": "no pair has a label on this layer both times",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """One measure of both answers of each pair."""

    difference: Difference
    h: float | None  #: Cohen's h, second less first; None for DNI, which is no share
    discordance: Discordance | None  #: None for DNI, which is no event


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """Everything that is said of one pair of sides."""

    first: str  #: names of the sides
    second: str
    n_pairs: int  #: parents that answered both ways
    n_statements: int  #: of those
    metrics: Mapping[str, Change | Insufficient]
    coverage: Difference | Insufficient  #: share that is coded on both layers, of parents asked both ways
    selection: Flips
    elaboration: Flips


def compare(sides: Sides, pair: tuple[int, int], *, claimed: bool, seed: int) -> Comparison:
    """Compare two sides parent by parent; means are weighted, while counts, flips and tests are of parents.

    Parameters
    ----------
    sides
        All of a group.
    pair
        Places of the first and the second side; a difference is second less first.
    claimed
        Whether endorsing means endorsing a stereotype; otherwise only IR and DNI mean anything.
    seed
        Of the bounds for rare changes.
    """
    cells = sides.cells[:, pair]
    asked = (cells != ABSENT).all(axis=1)
    answered = asked & (sides.worth(FULL)[:, pair] > 0).all(axis=1)
    return Comparison(
        first=sides.names[pair[0]],
        second=sides.names[pair[1]],
        n_pairs=int(answered.sum()),
        n_statements=len(np.unique(sides.cluster[answered])),
        metrics={name: _change(sides, pair, BY_NAME[name], claimed=claimed, seed=seed) for name in COMPARED},
        coverage=_difference(sides, pair, ELIGIBLE, asked, span=1, seed=seed),
        selection=flips(sides, pair, answered, "selection", seed=seed),
        elaboration=flips(sides, pair, answered, "elaboration", seed=seed),
    )


def in_base(sides: Sides, pair: tuple[int, int], metric: Metric) -> np.ndarray:
    """Tell which parents have both answers in a measure's base; an absent answer is in none."""
    return np.asarray((sides.worth(metric.denominator)[:, pair] > 0).all(axis=1))


def _change(sides: Sides, pair: tuple[int, int], metric: Metric, *, claimed: bool, seed: int) -> Change | Insufficient:
    if metric.endorsement and not claimed:
        return Insufficient(reason=NO_CLAIM)
    both = in_base(sides, pair, metric)
    if not both.any():
        return Insufficient(reason=_EMPTY[metric.base])
    signed = metric.kind == "difference"
    found = _difference(sides, pair, metric.numerator, both, span=2 if signed else 1, seed=seed)
    if isinstance(found, Insufficient):
        return found
    if signed:
        return Change(difference=found, h=None, discordance=None)
    first, second = (np.clip(each, 0.0, 1.0) for each in (found.first, found.second))
    worth = sides.worth(metric.numerator)[both]
    tested = mcnemar(worth[:, pair[0]], worth[:, pair[1]])
    return Change(difference=found, h=cohen_h(float(second), float(first)), discordance=tested)


def _difference(
    sides: Sides, pair: tuple[int, int], values: np.ndarray, rows: np.ndarray, *, span: int, seed: int
) -> Difference | Insufficient:
    # In one order whatever the parents' order was: sums of floats depend on it in the last digit.
    chosen = np.flatnonzero(rows)
    first, second = sides.cells[chosen][:, pair].T
    order = chosen[np.lexsort((sides.weight[chosen], second, first, sides.cluster[chosen]))]
    one, other = sides.worth(values)[order][:, pair].T
    return paired_difference(one, other, sides.cluster[order], span=span, seed=seed, weight=sides.weight[order])
