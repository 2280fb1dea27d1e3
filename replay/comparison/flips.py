"""What turned over between two answers to one parent: labels, endorsement, and whether there was a label at all."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from scipy import stats

from auditor.domain.estimate import Estimate, Insufficient
from auditor.metrics.joint import SHAPE, Floats
from auditor.metrics.rates import ELAB_CODED, ELAB_ENDORSES, SEL_CODED, SEL_ENDORSES
from replay.comparison.difference import Difference, paired_difference
from replay.comparison.scores import share_estimate
from replay.comparison.sides import Sides

Layer = Literal["selection", "elaboration"]
#: For each layer: the cells with a label, those that endorse, and the label's number by cell.
_LAYERS: Final[Mapping[Layer, tuple[Floats, Floats, Floats]]] = {
    "selection": (SEL_CODED, SEL_ENDORSES, np.indices(SHAPE)[0].astype(np.float64)),
    "elaboration": (ELAB_CODED, ELAB_ENDORSES, np.indices(SHAPE)[1].astype(np.float64)),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Discordance:
    """Pairs whose two answers differ in what a measure counts, and McNemar's exact p value of as uneven a split."""

    gained: int  #: counted the second time only
    lost: int  #: counted the first time only
    p: float


def mcnemar(first: Floats, second: Floats) -> Discordance:
    """Test by the discordant pairs alone whether a share changed (McNemar 1947), exactly.

    It takes pairs for independent. Where a statement has several, the clustered interval is what to read.

    Parameters
    ----------
    first, second
        Shape [P]: 0 or 1.

    Examples
    --------
    Five gained and none lost: 2 * (1/2)^5.

    >>> mcnemar(np.zeros(9), np.repeat([1.0, 0.0], [5, 4]))
    Discordance(gained=5, lost=0, p=0.0625)
    """
    gained, lost = int((second > first).sum()), int((second < first).sum())
    p = float(stats.binomtest(gained, gained + lost).pvalue) if gained + lost else 1.0
    return Discordance(gained=gained, lost=lost, p=p)


@dataclass(frozen=True, kw_only=True, slots=True)
class Flips:
    """One layer's labels of both answers; shares and effects are over pairs with a label both times."""

    changed: Estimate | Insufficient  #: share of pairs whose label is another one
    effect: Difference | Insufficient  #: endorses the second time less the first, in [-1, 1]
    labels: Mapping[str, int]  #: "E>D": pairs that went from E to D, of all that were answered; Abstain is a label here


def flips(sides: Sides, pair: tuple[int, int], answered: np.ndarray, layer: Layer, *, seed: int) -> Flips:
    """Count what one layer's labels turned into.

    Parameters
    ----------
    sides
        All of a group.
    pair
        Places of the first and the second side.
    answered
        Mask of the parents with both answers.
    layer
        Which labels.
    seed
        Of the bounds for what is rare.
    """
    coded, endorses, number = _LAYERS[layer]
    label, stance = sides.worth(number)[:, pair], sides.worth(endorses)[:, pair]
    both = answered & (sides.worth(coded)[:, pair] > 0).all(axis=1)
    changed = both & (label[:, 0] != label[:, 1])
    y, n = (sides.by_statement(each.astype(np.float64)) for each in (changed, both))
    # Weights sum to all parents; here they are to sum to these pairs.
    unit = int(both.sum()) / float(n.sum()) if both.any() else 1.0
    return Flips(
        changed=share_estimate(y * unit, n * unit, int(both.sum()), base="full", seed=seed),
        effect=paired_difference(
            stance[both, 0], stance[both, 1], sides.cluster[both], span=1, seed=seed, weight=sides.weight[both]
        ),
        labels=_labels(sides, pair, answered, "sel" if layer == "selection" else "elab"),
    )


def _labels(sides: Sides, pair: tuple[int, int], answered: np.ndarray, name: str) -> Mapping[str, int]:
    first, second = (sides.sides[place].answers for place in pair)
    rows = np.flatnonzero(answered).tolist()
    seen = Counter(f"{getattr(first[row], name)}>{getattr(second[row], name)}" for row in rows)
    return dict(sorted(seen.items()))
