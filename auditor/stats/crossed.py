"""Estimate the variance of a ratio whose responses are clustered in few, unequal or crossed clusters.

One clustering has the bias-reduced variance CR2 (Bell and McCaffrey 2002) and Satterthwaite degrees of freedom under
clusters with a common correlation (Imbens and Kolesar 2016). Crossed clusterings add and subtract the variances of
their intersections (Cameron, Gelbach and Miller 2011).
"""

from collections.abc import Sequence
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from auditor.stats.intervals import ClusterRate, Floats

Ints = NDArray[np.int64]
#: Up to this many clusters the products of all pairs are summed; of more, those of different clusters are negligible.
_MOST_EXACT: Final = 1000


def crossed_rate(y: Floats, n: Floats, clusterings: Sequence[Ints], simple: float | None = None) -> ClusterRate:
    """Compute the ratio ``sum(y) / sum(n)`` with its standard error and degrees of freedom over crossed clusters.

    Parameters
    ----------
    y, n
        Shape [N]: events and trials of any parts of the data that lie in one cluster of each clustering.
    clusterings
        Cluster of each part in each clustering, from 0 on; shape [N] each.
    simple
        Variance of a single response; ``p (1 - p)`` where it is not given.

    Returns
    -------
    ClusterRate
        ``n_clusters`` and ``df`` are the smallest of the clusterings. The variance is never below that of one
        clustering alone. With fewer than two clusters in a clustering the standard error is infinite.

    Raises
    ------
    ValueError
        For an empty base.

    Examples
    --------
    Equal clusters have the variance of ``cluster_rate``, and one degree of freedom less than clusters.

    >>> rate = crossed_rate(np.array([2.0, 0.0, 1.0]), np.full(3, 2.0), [np.arange(3)])
    >>> round(rate.value, 9), round(rate.se, 6), round(rate.df, 6)
    (0.5, 0.288675, 2.0)
    """
    used = n > 0
    y, n, clusterings = y[used], n[used], [clusters[used] for clusters in clusterings]
    total = float(n.sum())
    if total <= 0:
        raise ValueError("no trials")
    p = float(y.sum()) / total
    single = p * (1 - p) if simple is None else simple
    residuals = y - p * n
    fewest = min(len(np.unique(clusters)) for clusters in clusterings)
    if fewest < 2:
        return ClusterRate(value=p, se=float("inf"), n=total, n_clusters=fewest, deff=None, df=1.0)
    components = [_one_clustering(residuals, n, clusters, single) for clusters in clusterings]
    variance = sum(each for each, _ in components)
    for size in range(2, len(clusterings) + 1):
        for chosen in combinations(clusterings, size):
            _, both = np.unique(np.stack(chosen), axis=1, return_inverse=True)
            variance += (-1) ** (size + 1) * _one_clustering(residuals, n, both, single)[0]
    variance = max(variance, *(each for each, _ in components), 0.0)
    return ClusterRate(
        value=p,
        se=float(np.sqrt(variance)),
        n=total,
        n_clusters=fewest,
        deff=variance * total / single if single > 0 else None,
        df=min(df for _, df in components),
    )


def _one_clustering(residuals: Floats, n: Floats, labels: Ints, single: float) -> tuple[float, float]:
    """Return CR2 and its degrees of freedom for one clustering."""
    _, cluster = np.unique(labels, return_inverse=True)
    e, size = np.bincount(cluster, weights=residuals), np.bincount(cluster, weights=n)
    total, clusters = float(size.sum()), len(size)
    share = size / total
    if share.max() >= 1:
        return float("inf"), 1.0
    variance = float((e**2 / (1 - share)).sum()) / total**2
    pairs = float((size * (size - 1)).sum())
    # The common correlation at which the clusters' sums have this variance.
    rho = 0.0 if single <= 0 or pairs <= 0 else (variance * total**2 / single - total) / pairs
    spread = size * (1 + np.maximum(size - 1, 0) * min(max(rho, 0.0), 1.0))
    # The estimate is a quadratic form; its matrix under this model has the trace and the squares that give the df.
    scale = 1 / (1 - share)
    diagonal = spread * (1 - 2 * share) + share**2 * spread.sum()
    trace = float((scale * diagonal).sum())
    if clusters <= _MOST_EXACT:
        cross = np.diag(spread) - np.outer(spread, share) - np.outer(share, spread)
        cross += np.outer(share, share) * spread.sum()
        squares = float((np.outer(scale, scale) * cross**2).sum())
    else:
        squares = float(((scale * diagonal) ** 2).sum())
    return variance, max(1.0, trace**2 / squares)
