"""Compute the agreement of raters beyond chance, and the number of independent raters that a panel equals.

Cohen's kappa compares two raters; Krippendorff's alpha ("Computing Krippendorff's Alpha-Reliability", 2011) compares
two or more, some of whom may be missing. Labels are nominal.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditor.stats.bootstrap import cluster_bootstrap
from auditor.stats.intervals import Floats


def confusion_matrix(first: NDArray[np.int64], second: NDArray[np.int64], n_labels: int) -> NDArray[np.int64]:
    """Count pairs of labels.

    Parameters
    ----------
    first, second
        Shape [n]: label indices in [0, n_labels).
    n_labels
        L.

    Returns
    -------
    ndarray
        Shape [L, L]: rows are the first rater's labels.

    Examples
    --------
    >>> confusion_matrix(np.array([0, 1]), np.array([0, 0]), 2).tolist()
    [[1, 0], [1, 0]]
    """
    return np.bincount(first * n_labels + second, minlength=n_labels**2).reshape(n_labels, n_labels)


def cohen_kappa(confusion: Floats | NDArray[np.int64]) -> float | None:
    """Compute Cohen's kappa ``(p_o - p_e) / (1 - p_e)`` (BiAxisAudit section V-A).

    Parameters
    ----------
    confusion
        Shape [L, L]: counts of label pairs.

    Returns
    -------
    float or None
        Kappa in [-1, 1]. None if there are no rows, or if both raters always used the same single label, so that chance
        explains all agreement.

    Examples
    --------
    Observed agreement .7, chance .5: kappa = .2 / .5.

    >>> round(cohen_kappa(np.array([[35, 15], [15, 35]])), 9)
    0.4
    """
    value = float(kappas(np.asarray(confusion, dtype=np.float64)))
    return None if np.isnan(value) else value


def kappas(confusions: Floats) -> Floats:
    """Compute Cohen's kappa of many confusion matrices at once.

    Parameters
    ----------
    confusions
        Shape [..., L, L]: counts of label pairs.

    Returns
    -------
    ndarray
        Shape [...], in [-1, 1]; NaN where ``cohen_kappa`` has no value.
    """
    total = confusions.sum(axis=(-2, -1))
    # Counts, not shares: chance agreement is 1 exactly if the product of the margins is the square of the total.
    chance = (confusions.sum(axis=-2) * confusions.sum(axis=-1)).sum(axis=-1)
    observed = np.trace(confusions, axis1=-2, axis2=-1) * total
    room = total**2 - chance
    values: Floats = np.full(total.shape, np.nan)
    np.divide(observed - chance, room, out=values, where=room > 0)
    return values


def effective_votes(judges: int, rho: float) -> float:
    """Return the number of independent judges that a panel equals: ``m / (1 + (m - 1) rho)`` (Kish's design effect).

    Parameters
    ----------
    judges
        m, at least 1.
    rho
        Correlation of two judges' votes; below 0 it counts as 0.

    Examples
    --------
    >>> effective_votes(3, 0.0), effective_votes(3, 1.0), effective_votes(3, 0.75)
    (3.0, 1.0, 1.2)
    """
    return judges / (1 + (judges - 1) * max(rho, 0.0))


@dataclass(frozen=True, kw_only=True, slots=True)
class Kappa:
    """Agreement beyond chance, in [-1, 1]."""

    value: float
    low: float
    high: float


def clustered_kappa(confusion: Floats, *, n_boot: int = 2000, seed: int, conf: float = 0.95) -> Kappa | None:
    """Estimate kappa from pairs of labels, by resampling whole clusters.

    Parameters
    ----------
    confusion
        Shape [S, L, L]: by cluster, the weight of the responses that one rater gave the row's label and the other the
        column's. At least two clusters.
    n_boot, seed, conf
        Replicates, seed of the draws, two-sided level.

    Returns
    -------
    Kappa or None
        None if both raters always used the same single label.

    Examples
    --------
    >>> out = clustered_kappa(np.tile([[2.0, 0.0], [0.0, 1.0]], (20, 1, 1)), n_boot=50, seed=0)
    >>> out.value, out.low, out.high
    (1.0, 1.0, 1.0)
    """
    size = confusion.shape[-1]
    flat = confusion.reshape(len(confusion), -1)
    totals = flat.sum(axis=0)[None]
    if cohen_kappa(totals.reshape(size, size)) is None:
        return None
    bootstrap = cluster_bootstrap(flat, lambda draws: _kappas(draws, size), n_boot=n_boot, seed=seed, conf=conf)
    value = float(_kappas(totals, size)[0])
    return Kappa(value=value, low=min(float(bootstrap.low), value), high=max(float(bootstrap.high), value))


def _kappas(totals: Floats, size: int) -> Floats:
    """Compute kappa of each row of totals; a draw with one label only has no disagreement."""
    return np.nan_to_num(kappas(totals.reshape(-1, size, size)), nan=1.0)


def krippendorff_alpha(
    counts: Floats, cluster: Floats, *, n_boot: int = 2000, seed: int, conf: float = 0.95
) -> Kappa | None:
    """Estimate alpha, with an interval that resamples whole clusters of units.

    Parameters
    ----------
    counts
        Shape [U, L]: how many raters gave each unit each label. Units with fewer than two labels do not count.
    cluster
        Shape [U]: the cluster of each unit, any numbers; at least two clusters.
    n_boot, seed, conf
        Replicates, seed of the draws, two-sided level.

    Returns
    -------
    Kappa or None
        Kappa in [-1, 1]; 1 is perfect agreement, 0 that of chance. None if all labels are the same.

    Examples
    --------
    >>> counts = np.tile([[2.0, 0.0], [0.0, 2.0], [1.0, 1.0]], (10, 1))
    >>> round(krippendorff_alpha(counts, np.repeat(np.arange(10), 3), n_boot=50, seed=0).value, 3)
    0.344
    """
    names, place = np.unique(cluster, return_inverse=True)
    sums = _alpha_sums(counts)
    by_cluster = np.zeros((len(names), sums.shape[1]))
    np.add.at(by_cluster, place, sums)
    value = float(_alphas(by_cluster.sum(axis=0)))
    if np.isnan(value):
        return None
    # A draw with one label only has no disagreement.
    bootstrap = cluster_bootstrap(
        by_cluster, lambda totals: np.nan_to_num(_alphas(totals), nan=1.0), n_boot=n_boot, seed=seed, conf=conf
    )
    return Kappa(value=value, low=min(float(bootstrap.low), value), high=max(float(bootstrap.high), value))


def _alpha_sums(counts: Floats) -> Floats:
    """Return by unit the labels of each kind and the pairable agreements, shape [U, L + 1]; of one label nothing."""
    raters = counts.sum(axis=1, keepdims=True)
    paired = np.where(raters > 1, counts, 0.0)
    agreeing = (paired * (paired - 1)).sum(axis=1, keepdims=True) / np.maximum(raters - 1, 1)
    return np.hstack([paired, agreeing])


def _alphas(totals: Floats) -> Floats:
    """Compute alpha of many totals of ``_alpha_sums``, shape [..., L + 1]; NaN where all labels are the same."""
    labels, agreeing = totals[..., :-1], totals[..., -1]
    n = labels.sum(axis=-1)
    expected = n**2 - (labels**2).sum(axis=-1)
    values: Floats = np.full(n.shape, np.nan)
    np.divide((n - agreeing) * (n - 1), expected, out=values, where=expected > 0)
    return 1 - values
