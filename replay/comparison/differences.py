"""Estimate the mean difference of paired answers, with an interval clustered by statement."""

from typing import Final

import numpy as np

from auditor.counting.joint import Floats, Ints
from auditor.documents.comparison import PairedDifferenceEntry
from auditor.domain.estimate import Insufficient, IntervalMethod
from auditor.metrics.estimate import (
    BOUNDS_ONLY,
    BOUNDS_RATE,
    ENOUGH_STATEMENTS,
    FEW_CLUSTERS,
    LOW,
    LOW_RATE,
    MIN_STATEMENTS,
)
from auditor.stats.intervals import Interval, difference_interval, rare_rate_bounds

CONFIDENCE: Final = 0.95


def paired_difference(
    first: Floats, second: Floats, cluster: Ints, *, span: int, seed: int, weight: Floats | None = None
) -> PairedDifferenceEntry | Insufficient:
    """Estimate the mean of ``second - first`` over pairs, clustered by statement.

    Both answers of a pair belong to one statement, so effects of the statement cancel. The interval describes the
    remaining variation between statements. It is computed as ``metrics.estimate`` computes the interval of DNI, which
    is a mean of the same kind: t(G - 1) on the logit scale. If fewer than 5 % of the pairs change (or fewer than 5 % do
    not), the interval combines separate bounds for gains and losses, which share the error. So without any change it is
    not [0, 0] but the range that this number of statements cannot exclude.

    Parameters
    ----------
    first, second
        Shape [P]: the measure of each pair's two answers, in its own unit, within ``[-span/2, span/2]`` or ``[0,
        span]``.
    cluster
        Shape [P]: index of the pair's statement, any integers from 0.
    span
        Largest possible difference: 1 for a rate, 2 for DNI.
    seed
        Seed of the bounds for rare changes.
    weight
        Shape [P], above 0: the number of exchanges that each pair represents, ``1 / inclusion``; by default 1. With
        weights a mean is a ratio of weighted sums (Hajek), linearised by statement.

    Returns
    -------
    PairedDifferenceEntry or Insufficient
        ``difference`` in [-span, span] with a 95 % interval. Insufficient with fewer than 15 statements.

    Raises
    ------
    ValueError
        The arrays have different lengths.

    Examples
    --------
    Of twenty statements a quarter is endorsed the second time only:

    >>> first, second = np.zeros(20), np.repeat([1.0, 0.0], [5, 15])
    >>> found = paired_difference(first, second, np.arange(20), span=1, seed=0)
    >>> found.difference, found.low < 0.25 < found.high
    (0.25, True)
    """
    if not len(first) == len(second) == len(cluster):
        raise ValueError("pairs need as many first answers as second answers and statements")
    statements, place = np.unique(cluster, return_inverse=True)
    if len(statements) < MIN_STATEMENTS:
        return Insufficient(reason=f"{len(statements)} statements with both answers, {MIN_STATEMENTS} needed")
    # Scale weights to sum to the number of pairs, so that weighted sums are comparable to counts.
    share = np.ones(len(first)) if weight is None else weight * (len(weight) / weight.sum())
    change = (second - first) / span
    size = len(statements)
    gains = np.bincount(place, weights=share * np.maximum(change, 0), minlength=size).astype(np.float64)
    losses = np.bincount(place, weights=share * np.maximum(-change, 0), minlength=size).astype(np.float64)
    pairs = np.bincount(place, weights=share, minlength=size).astype(np.float64)
    level = float((gains + losses).sum()) / len(first)
    squares = float((share * change**2).sum())
    interval, method = _interval(gains, losses, pairs, squares=squares, level=level, seed=seed)
    value = float((share * change).sum()) / len(first)
    return PairedDifferenceEntry(
        first=float((share * first).mean()),
        second=float((share * second).mean()),
        difference=value * span,
        low=min(interval.low, value) * span,
        high=max(interval.high, value) * span,
        method=method,
        n_pairs=len(first),
        n_statements=size,
        flags=_flags(size, level),
    )


def _interval(
    gains: Floats, losses: Floats, pairs: Floats, *, squares: float, level: float, seed: int
) -> tuple[Interval, IntervalMethod]:
    if min(level, 1 - level) >= LOW_RATE:
        return difference_interval(gains - losses, pairs, squares, CONFIDENCE), "logit_cluster"
    shared = (1 + CONFIDENCE) / 2
    up, down = (rare_rate_bounds(part, pairs, shared, seed=seed) for part in (gains, losses))
    return Interval(low=up.low - down.high, high=up.high - down.low), "cluster_bootstrap"


def _flags(statements: int, level: float) -> tuple[str, ...]:
    flags = [FEW_CLUSTERS] if statements < ENOUGH_STATEMENTS else []
    if level < LOW_RATE:
        flags.append(LOW)
    if level < BOUNDS_RATE:
        flags.append(BOUNDS_ONLY)
    return tuple(flags)
