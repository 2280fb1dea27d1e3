"""Compute Krippendorff's alpha for nominal labels: agreement of two or more raters, some of whom may be missing.

Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011).
"""

import numpy as np

from auditor.stats.agreement import Kappa
from auditor.stats.bootstrap import cluster_bootstrap
from auditor.stats.intervals import Floats


def alpha_sums(counts: Floats) -> Floats:
    """Return the sums that alpha is made of, by unit.

    Parameters
    ----------
    counts
        Shape [U, L]: how many raters gave each unit each label. Units with fewer than two labels do not count.

    Returns
    -------
    ndarray
        Shape [U, L + 1]: the labels of each kind, and the pairable agreements.
    """
    raters = counts.sum(axis=1, keepdims=True)
    paired = np.where(raters > 1, counts, 0.0)
    agreeing = (paired * (paired - 1)).sum(axis=1, keepdims=True) / np.maximum(raters - 1, 1)
    return np.hstack([paired, agreeing])


def alphas(totals: Floats) -> Floats:
    """Compute alpha of many totals of ``alpha_sums``, shape [..., L + 1]; NaN where one label alone was given."""
    labels, agreeing = totals[..., :-1], totals[..., -1]
    n = labels.sum(axis=-1)
    expected = n**2 - (labels**2).sum(axis=-1)
    values: Floats = np.full(n.shape, np.nan)
    np.divide((n - agreeing) * (n - 1), expected, out=values, where=expected > 0)
    return 1 - values


def krippendorff_alpha(
    counts: Floats, cluster: Floats, *, n_boot: int = 2000, seed: int, conf: float = 0.95
) -> Kappa | None:
    """Estimate alpha, with an interval that resamples whole clusters of units.

    Parameters
    ----------
    counts
        Shape [U, L]: how many raters gave each unit each label.
    cluster
        Shape [U]: the cluster of each unit, any numbers; at least two clusters.
    n_boot, seed, conf
        Replicates, seed of the draws, two-sided level.

    Returns
    -------
    Kappa or None
        In [-1, 1]; 1 is perfect agreement, 0 that of chance. None if all labels are the same.

    Examples
    --------
    >>> counts = np.tile([[2.0, 0.0], [0.0, 2.0], [1.0, 1.0]], (10, 1))
    >>> found = krippendorff_alpha(counts, np.repeat(np.arange(10), 3), n_boot=50, seed=0)
    >>> round(found.value, 3)
    0.344
    """
    names, place = np.unique(cluster, return_inverse=True)
    sums = alpha_sums(counts)
    by_cluster = np.zeros((len(names), sums.shape[1]))
    np.add.at(by_cluster, place, sums)
    value = float(alphas(by_cluster.sum(axis=0)))
    if np.isnan(value):
        return None
    # A draw with one label only has no disagreement.
    found = cluster_bootstrap(
        by_cluster, lambda totals: np.nan_to_num(alphas(totals), nan=1.0), n_boot=n_boot, seed=seed, conf=conf
    )
    return Kappa(value=value, low=min(float(found.low), value), high=max(float(found.high), value))
