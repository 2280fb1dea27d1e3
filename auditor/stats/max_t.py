"""Compute simultaneous intervals from one bootstrap: the largest studentised deviation sets the width of all.

Estimates that share clusters are correlated. The paired replicates contain the correlation; a bound that ignores it
(Bonferroni) is wider. Quantiles are those of t with the number of clusters of each estimate.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from auditor.stats.intervals import Floats, z_quantile

#: Draws of correlated normals: their .95 quantile has a standard error of .005.
_DRAWS: Final = 20_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Simultaneous:
    """Intervals of K estimates that all hold at once, and p values against 0 adjusted for all K; shape [K]."""

    value: Floats
    low: Floats
    high: Floats
    p: Floats


def simultaneous_intervals(
    values: Floats, replicates: Floats, n_clusters: ArrayLike, *, conf: float = 0.95, least_se: ArrayLike = 0.0
) -> Simultaneous:
    """Compute single-step max-T intervals over paired bootstrap replicates (Westfall and Young 1993).

    Parameters
    ----------
    values
        Shape [K].
    replicates
        Shape [B, K], of the same draws in each row; B at least ``1 / (1 - conf)``.
    n_clusters
        G, at least 2: one for all, or shape [K].
    conf
        Probability that all K intervals hold.
    least_se
        Lower limit of the standard errors, one for all or shape [K]. For shares it is 1 / G, the weight of one cluster;
        without a limit an estimate that did not vary would seem exact.

    Returns
    -------
    Simultaneous
        ``p <= 1 - conf`` exactly where the interval excludes 0.

    Raises
    ------
    ValueError
        For too few replicates.

    Examples
    --------
    >>> out = simultaneous_intervals(np.array([0.1, 0.0]), np.tile([0.1, 0.0], (20, 1)), 50)
    >>> out.low.tolist(), out.high.tolist(), out.p.round(3).tolist()
    ([0.1, 0.0], [0.1, 0.0], [0.048, 1.0])
    """
    if len(replicates) * (1 - conf) < 1 - 1e-9:
        raise ValueError(f"{len(replicates)} replicates are too few for the level {1 - conf:.2g}")
    clusters = np.broadcast_to(np.asarray(n_clusters, dtype=np.float64), values.shape)
    short = np.sqrt(clusters / (clusters - 1))  # the bootstrap's spread is short by sqrt((G - 1) / G)
    noise = (replicates - values) * short
    se = np.maximum(noise.std(axis=0, ddof=1), least_se)
    largest = largest_deviations(noise, se)
    # Never narrower than a single interval, which can happen if least_se is larger than the observed errors.
    half = as_t(max(level_of(largest, conf), z_quantile(conf)), clusters) * se
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = np.nan_to_num(np.abs(values) / se, nan=0.0, posinf=np.inf)
    alone = special.stdtr(clusters - 1, -distance)
    beyond = largest[:, None] >= -special.ndtri(alone)
    return Simultaneous(
        value=values,
        low=values - half,
        high=values + half,
        p=np.maximum((1 + beyond.sum(axis=0)) / (1 + len(largest)), 2 * alone),
    )


def largest_deviations(noise: Floats, se: Floats) -> Floats:
    """Return the largest studentised deviation of each replicate.

    Parameters
    ----------
    noise
        Shape [B, K]: replicates less the estimate.
    se
        Shape [K]; estimates with 0 do not vary and are skipped.

    Returns
    -------
    ndarray
        Shape [B]; 0 where nothing varies.
    """
    varying = se > 0
    if not varying.any():
        return np.zeros(len(noise))
    return np.asarray((np.abs(noise[:, varying]) / se[varying]).max(axis=1))


def normal_maxima(correlation: Floats, *, seed: int) -> Floats:
    """Draw the largest absolute value of K normals with a correlation, shape [K, K]; the draws have shape [20000].

    Examples
    --------
    Two normals that are always equal have the quantile of one.

    >>> round(float(level_of(normal_maxima(np.ones((2, 2)), seed=0), 0.95)), 1)
    2.0
    """
    values, vectors = np.linalg.eigh(correlation)
    # The symmetric root is the only one that does not depend on the signs of the eigenvectors.
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    normals = np.random.default_rng(seed).standard_normal((_DRAWS, len(correlation)))
    return np.asarray(np.abs(normals @ root).max(axis=1))


def adjusted_p(p: Floats, correlation: Floats, *, seed: int) -> Floats:
    """Adjust two-sided p values of K correlated tests for all of them (single-step max-T); never below ``p``.

    Examples
    --------
    >>> adjusted_p(np.array([0.04, 0.04]), np.ones((2, 2)), seed=0).round(2).tolist()
    [0.04, 0.04]
    """
    if len(p) == 1:
        return p
    largest = np.sort(normal_maxima(correlation, seed=seed))
    beyond = len(largest) - np.searchsorted(largest, -special.ndtri(p / 2))
    return np.asarray(np.maximum((1 + beyond) / (1 + len(largest)), p))


def level_of(largest: Floats, conf: float) -> float:
    """Return the value below which a new replicate lies with probability ``conf``: order statistic ``conf (B + 1)``."""
    rank = min(len(largest), math.ceil(conf * (len(largest) + 1) - 1e-9))
    return float(np.sort(largest)[rank - 1])


def as_t(z: ArrayLike, n_clusters: ArrayLike) -> Floats:
    """Map normal quantiles to those of t with G - 1 degrees of freedom; the lower tail does not round to 1.

    Examples
    --------
    >>> round(float(as_t(1.959964, 11)), 3)
    2.228
    """
    tail = special.ndtr(-np.asarray(z, dtype=np.float64))
    return np.asarray(-special.stdtrit(np.asarray(n_clusters, dtype=np.float64) - 1, tail))
