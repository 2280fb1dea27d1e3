"""Agreement of two raters beyond chance."""

import numpy as np
from numpy.typing import NDArray

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
    """Cohen's kappa ``(p_o - p_e) / (1 - p_e)`` (BiAxisAudit section V-A).

    Parameters
    ----------
    confusion
        Shape [L, L]: counts of label pairs.

    Returns
    -------
    float or None
        In [-1, 1]. None where there is nothing to agree on: no rows, or both raters used one and the same label
        throughout, so that chance alone explains all agreement.

    Examples
    --------
    Observed agreement .7, chance .5: kappa = .2 / .5.

    >>> round(cohen_kappa(np.array([[35, 15], [15, 35]])), 9)
    0.4
    """
    total = float(confusion.sum())
    if total == 0:
        return None
    observed = float(np.trace(confusion)) / total
    chance = float(confusion.sum(axis=0) @ confusion.sum(axis=1)) / total**2
    if chance >= 1:
        return None
    return (observed - chance) / (1 - chance)
