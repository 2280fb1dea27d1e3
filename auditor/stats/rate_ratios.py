"""Ratios of each group's rate to the highest rate, with simultaneous intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from auditor.stats.intervals import Interval, cluster_rate, wilson_interval, wilson_of

Floats = NDArray[np.float64]
#: Clusters that a group needs before its rate has an interval.
_FEWEST: Final = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupCounts:
    """Favourable decisions ``y`` and decisions ``n`` of a group, by cluster; shape (clusters,)."""

    y: Floats
    n: Floats

    @property
    def rate(self) -> float:
        """The share of favourable decisions, 0 to 1."""
        return float(self.y.sum() / self.n.sum())

    def interval(self, conf: float) -> Interval | None:
        """Return the interval of the rate: Wilson, with the design effect of the clusters; None for one cluster."""
        if self.n.max() <= 1:
            return wilson_interval(float(self.y.sum()), float(self.n.sum()), conf)
        if len(self.n) < _FEWEST:
            return None
        return wilson_of(cluster_rate(self.y, self.n), conf)


@dataclass(frozen=True, kw_only=True, slots=True)
class RateRatio:
    """A group's rate divided by the highest rate of all groups, 0 to 1, with its interval."""

    value: float
    interval: Interval


def ratios_to_highest(groups: Sequence[GroupCounts], conf: float = 0.95) -> list[RateRatio | None]:
    """Return the ratio of each group's rate to the highest rate, with intervals that hold together.

    The highest rate is itself an estimate, and which group has it is chosen from the data. The ratio is the smallest of
    1 and the ratios to all other groups. Each of the K(K-1)/2 pairs gets an interval at level 1 - (1 - conf)/pairs
    (Bonferroni); the bounds of a group are the smallest lower and the smallest upper bound over its pairs. With
    probability ``conf`` at least, all true ratios lie within their intervals at once.

    Parameters
    ----------
    groups
        Two or more, each with a decision.
    conf
        Confidence of all intervals together, 0 to 1.

    Returns
    -------
    list
        One entry for each group. None: no group has a favourable decision, or a group has a single cluster.

    References
    ----------
    Donner and Zou (2012), Closed-form confidence intervals for functions of the normal mean and standard deviation,
    Statistical Methods in Medical Research 21(4): the interval of a ratio from those of its parts (MOVER-R).
    """
    highest = max(group.rate for group in groups)
    if highest == 0:
        return [None] * len(groups)
    pairs = list(combinations(range(len(groups)), 2))
    level = 1 - (1 - conf) / len(pairs)
    parts = [group.interval(level) for group in groups]
    bounds: list[list[Interval] | None] = [[] for _ in groups]
    for place, other in pairs:
        for a, b in ((place, other), (other, place)):
            first, second, intervals = parts[a], parts[b], bounds[a]
            if first is None or second is None:
                bounds[a] = None
            elif intervals is not None:
                intervals.append(ratio_interval(groups[a].rate, first, groups[b].rate, second))
    return [
        None
        if intervals is None
        else RateRatio(
            value=group.rate / highest,
            interval=Interval(
                low=min(1.0, *(each.low for each in intervals)), high=min(1.0, *(each.high for each in intervals))
            ),
        )
        for group, intervals in zip(groups, bounds, strict=True)
    ]


def ratio_interval(p: float, first: Interval, q: float, second: Interval) -> Interval:
    """Return the interval of p/q from the intervals of two independent rates (MOVER-R); infinity if q may be 0.

    Examples
    --------
    >>> interval = ratio_interval(0.5, Interval(low=0.4, high=0.6), 0.5, Interval(low=0.4, high=0.6))
    >>> round(interval.low, 3), round(interval.high, 3)
    (0.75, 1.333)
    """
    low = _bound(p, first.low, q, second.high, -1.0)
    high = _bound(p, first.high, q, second.low, 1.0)
    return Interval(low=max(low, 0.0), high=high)


def _bound(p: float, end: float, q: float, other: float, sign: float) -> float:
    """Return the bound where p/q is ``end`` of the first and ``other`` of the second interval away."""
    divisor = other * (2 * q - other)
    root = (p * q) ** 2 - end * (2 * p - end) * divisor
    if divisor <= 0:
        # The second interval reaches to 0 or beyond twice its rate: the ratio of the ends is wider than any of these.
        return end / other if other > 0 else float("inf")
    return (p * q + sign * sqrt(max(root, 0.0))) / divisor
