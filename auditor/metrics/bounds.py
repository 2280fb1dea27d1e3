"""Coverage of a table, and how far its failed layers could move each measure.

Structural absences (a free-response task has no selection) are what the design is, and are never imputed. A failed
layer could have been anything: each measure is computed with the failures at their worst and at their best.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np

from auditor.metrics.joint import SHAPE, Floats, Ints
from auditor.metrics.rates import ELAB_CODED, ELIGIBLE, SEL_CODED


@dataclass(frozen=True, kw_only=True, slots=True)
class Coverage:
    """Shares of all responses; they sum to 1."""

    eligible: float  #: both layers have a label
    structural: float  #: a layer is absent by design, and nothing failed
    failed: float  #: a layer failed, or the response never came


_SEL_FAILED: Final = np.zeros(SHAPE)
_SEL_FAILED[5, :] = 1
_ELAB_FAILED: Final = np.zeros(SHAPE)
_ELAB_FAILED[:, 6:] = 1
_FAILED: Final = np.maximum(_SEL_FAILED, _ELAB_FAILED)
_SEL_STRUCTURAL: Final = np.zeros(SHAPE)
_SEL_STRUCTURAL[4, :] = 1
_ELAB_STRUCTURAL: Final = np.zeros(SHAPE)
_ELAB_STRUCTURAL[:, 5] = 1
_BOTH_EXIST: Final = (1 - _SEL_STRUCTURAL) * (1 - _ELAB_STRUCTURAL)


def coverage(totals: Ints) -> Coverage:
    """Split all responses into eligible, structurally absent and failed.

    Raises
    ------
    ValueError
        For an empty table.
    """
    n = int(totals.sum())
    if n == 0:
        raise ValueError("no responses")
    eligible, failed = float((ELIGIBLE * totals).sum()) / n, float((_FAILED * totals).sum()) / n
    structural = float(((1 - ELIGIBLE) * (1 - _FAILED) * totals).sum()) / n
    return Coverage(eligible=eligible, structural=structural, failed=failed)


def layer_sizes(totals: Ints) -> tuple[int, int]:
    """Count the responses with a selection label, and those with an elaboration label."""
    return int((SEL_CODED * totals).sum()), int((ELAB_CODED * totals).sum())


def failure_bounds(totals: Ints) -> dict[str, tuple[float, float]]:
    """Bounds of each measure when only failed layers are imputed, as no endorsement or as endorsement.

    Parameters
    ----------
    totals
        Shape ``joint.SHAPE``: responses by cell.

    Returns
    -------
    dict
        Measure to (low, high); a measure without any response it could apply to is left out. On the eligible base the
        denominator is every response that has both layers by design; on the full base every response of the layer.

    Examples
    --------
    Six endorse of 180, and 20 elaborations are missing where the selection rejects: 6 to 26 of 200.

    >>> totals = np.zeros(SHAPE, dtype=np.int64)
    >>> totals[0, 0], totals[2, 3], totals[2, 6] = 6, 174, 20
    >>> failure_bounds(totals)["ber_union_full"]
    (0.03, 0.13)
    """
    both = _by_stance(_BOTH_EXIST * totals)
    sums: dict[str, tuple[Floats, _Reading]] = {name: (both, reading) for name, reading in _ELIGIBLE_READINGS.items()}
    sums["ber_sel_full"] = (_by_stance((1 - _SEL_STRUCTURAL) * totals), lambda a, _: a)
    sums["ber_elab_full"] = (_by_stance((1 - _ELAB_STRUCTURAL) * totals), lambda _, b: b)
    sums["ber_union_full"] = (_by_stance(totals.astype(np.float64)), max)
    out = {name: _extremes(stances, reading) for name, (stances, reading) in sums.items() if stances.sum() > 0}
    ratio = _ratio_extremes(both)
    return out if ratio is None else out | {"ir_over_union": ratio}


_Reading = Callable[[int, int], int]
#: What each measure makes of one response's (A, B).
_ELIGIBLE_READINGS: Final[Mapping[str, _Reading]] = {
    "ber_sel": lambda a, _: a,
    "ber_elab": lambda _, b: b,
    "ber_cor": lambda a, b: a * b,
    "ber_union": max,
    "oed": lambda a, b: a * (1 - b),
    "ued": lambda a, b: (1 - a) * b,
    "ir": lambda a, b: a ^ b,
    "dni": lambda a, b: a - b,
}
#: What an indicator may be: 0, 1, or unknown.
_POSSIBLE: Final = ((0,), (1,), (0, 1))


def _by_stance(totals: Floats) -> Floats:
    """Fold the table to A x B, each 0, 1 or unknown; shape [3, 3]. Structural absences count as 0."""
    rows = np.stack([totals[[1, 2, 3, 4]].sum(axis=0), totals[0], totals[5]])
    return np.stack([rows[:, [2, 3, 4, 5]].sum(axis=1), rows[:, :2].sum(axis=1), rows[:, 6:].sum(axis=1)], axis=1)


def _extremes(stances: Floats, reading: _Reading) -> tuple[float, float]:
    n, low, high = float(stances.sum()), 0.0, 0.0
    for row, column in product(range(3), range(3)):
        values = [reading(a, b) for a in _POSSIBLE[row] for b in _POSSIBLE[column]]
        low += min(values) * float(stances[row, column])
        high += max(values) * float(stances[row, column])
    return low / n, high / n


def _ratio_extremes(stances: Floats) -> tuple[float, float] | None:
    """Bounds of IR/union: smallest when the unknown turn out coherent, largest when they turn out divergent."""
    both, one = float(stances[1, 1]), float(stances[1, 0] + stances[0, 1])
    coherent = float(stances[1, 2] + stances[2, 1] + stances[2, 2])
    divergent = coherent + float(stances[0, 2] + stances[2, 0])
    if both + one + divergent == 0:
        return None
    low = one / (one + both + coherent) if one + both + coherent > 0 else 1.0
    return low, (one + divergent) / (one + divergent + both)
