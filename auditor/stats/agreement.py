"""Compute the agreement of raters beyond chance, and the number of independent raters that a panel equals."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from auditor.stats.bootstrap import cluster_bootstrap
from auditor.stats.intervals import Floats, Interval


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
        In [-1, 1]. None if there are no rows, or if both raters always used the same single label, so that chance
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


def exact_interval(k: int, n: int, conf: float = 0.95) -> Interval:
    """Compute Clopper and Pearson's interval for ``k`` of ``n`` independent items; it never covers less than ``conf``.

    Parameters
    ----------
    k, n
        Successes and trials, ``0 <= k <= n``, ``n > 0``.
    conf
        Two-sided level.

    Examples
    --------
    Of 0 of 10 the upper bound is 1 - .025^(1/10).

    >>> interval = exact_interval(0, 10)
    >>> interval.low, round(interval.high, 4)
    (0.0, 0.3085)
    """
    tail = (1 - conf) / 2
    return Interval(
        low=float(special.betaincinv(k, n - k + 1, tail)) if k else 0.0,
        high=float(special.betaincinv(k + 1, n - k, 1 - tail)) if k < n else 1.0,
    )


def sign_test(lost: int, gained: int) -> float:
    """Compute the exact one-sided p of the null that losses are no likelier than gains (McNemar, paired items).

    Parameters
    ----------
    lost, gained
        Items that were right and are now wrong, and items that were wrong and are now right.

    Examples
    --------
    >>> sign_test(7, 0), sign_test(0, 0)
    (0.0078125, 1.0)
    """
    n = lost + gained
    return float(special.bdtrc(lost - 1, n, 0.5)) if lost else 1.0


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
