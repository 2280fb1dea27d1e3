"""Compute the coverage of a table, and the bounds of each measure over its failed layers.

A layer that is absent by design is never imputed. A failed layer could have any label, so each measure is computed
with the failures at their highest and at their lowest values.
"""

from collections.abc import Callable
from itertools import product
from typing import Final

import numpy as np

from auditor.counting.joint import SHAPE, Floats, Ints
from auditor.documents.estimates import CoverageEntry
from auditor.metrics.rates import ELAB_CODED, ELIGIBLE, METRICS, SEL_CODED, Fourfold

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


def coverage(totals: Ints | Floats) -> CoverageEntry:
    """Split all responses into eligible, structurally absent and failed.

    Raises
    ------
    ValueError
        For an empty table.
    """
    n = float(totals.sum())
    if n == 0:
        raise ValueError("no responses")
    eligible, failed = float((ELIGIBLE * totals).sum()) / n, float((_FAILED * totals).sum()) / n
    structural = float(((1 - ELIGIBLE) * (1 - _FAILED) * totals).sum()) / n
    return CoverageEntry(eligible=eligible, structural=structural, failed=failed)


def layer_sizes(totals: Ints) -> tuple[int, int]:
    """Count the responses with a selection label, and those with an elaboration label."""
    return int((SEL_CODED * totals).sum()), int((ELAB_CODED * totals).sum())


def failure_bounds(totals: Ints | Floats) -> dict[str, tuple[float, float]]:
    """Compute bounds of each measure with only failed layers imputed, as no endorsement or as endorsement.

    Parameters
    ----------
    totals
        Shape ``joint.SHAPE``: responses by cell, or their weights.

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
    sums: dict[str, tuple[Floats, _Reading]] = {
        metric.name: (both, _reading(metric.fourfold[0]))
        for metric in METRICS.values()
        if metric.fourfold is not None and metric.kind != "ratio"
    }
    sums["ber_sel_full"] = (_by_stance((1 - _SEL_STRUCTURAL) * totals), lambda a, _: a)
    sums["ber_elab_full"] = (_by_stance((1 - _ELAB_STRUCTURAL) * totals), lambda _, b: b)
    sums["ber_union_full"] = (_by_stance(totals.astype(np.float64)), max)
    out = {name: _extremes(stances, reading) for name, (stances, reading) in sums.items() if stances.sum() > 0}
    ratio = _ratio_extremes(both)
    return out if ratio is None else out | {"ir_over_union": ratio}


_Reading = Callable[[int, int], int]
#: The values of an indicator: 0, 1, or unknown.
_POSSIBLE: Final = ((0,), (1,), (0, 1))


def _reading(weights: Fourfold) -> _Reading:
    """Return the contribution of one response's (A, B) to a measure."""
    both, sel_only, elab_only, neither = weights
    return lambda a, b: ((neither, elab_only), (sel_only, both))[a][b]


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
    """Compute the bounds of IR/union: smallest if unknown layers agree, largest if they diverge."""
    both, single = float(stances[1, 1]), float(stances[1, 0] + stances[0, 1])
    coherent = float(stances[1, 2] + stances[2, 1] + stances[2, 2])
    divergent = coherent + float(stances[0, 2] + stances[2, 0])
    if both + single + divergent == 0:
        return None
    low = single / (single + both + coherent) if single + both + coherent > 0 else 1.0
    return low, (single + divergent) / (single + divergent + both)
