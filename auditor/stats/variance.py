"""Compute shares of variance of a binary outcome from successes and trials by cell.

The total is always the response-level one, ``N p (1 - p)``. The mean of a cell hides the spread within it, so a share
of the spread between cell means is a different, much larger number. A share is the squared length of a vector of
effects that was measured with noise: without an effect it is noise only; a plain bootstrap adds more noise, and its
percentiles never contain 0, so ``squared_length_interval`` bounds the length without the part of the noise.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.stats.bootstrap import expanded_tail
from auditor.stats.intervals import Floats, Interval

#: An effect of a factorial: the indices of the factors in it.
Effect = tuple[int, ...]


def total_variation(successes: Floats, trials: Floats) -> float:
    """Return the response-level sum of squares ``N p (1 - p)``.

    Examples
    --------
    >>> total_variation(np.array([1.0, 3.0]), np.array([4.0, 4.0]))
    2.0
    """
    n = float(trials.sum())
    p = float(successes.sum()) / n
    return n * p * (1 - p)


@dataclass(frozen=True, kw_only=True, slots=True)
class Projection:
    """The projection of the cells' means on one effect. The squared length of its vector is the effect's share."""

    weights: Floats  #: shape [C]: the cells' trials, or any other positive weights
    basis: Floats  #: shape [C, r]: orthonormal columns over the cells' means times the roots of their weights

    def vector(self, means: Floats) -> Floats:
        """Project the cells' means, in units of the root of the total variation.

        Parameters
        ----------
        means
            Shape [..., C], in [0, 1].

        Returns
        -------
        ndarray
            Shape [..., r]; not finite where the outcome does not vary at all.
        """
        grand = means @ self.weights / self.weights.sum()
        total = self.weights.sum() * grand * (1 - grand)
        with np.errstate(invalid="ignore", divide="ignore"):
            out: Floats = (means * np.sqrt(self.weights)) @ self.basis / np.sqrt(np.expand_dims(total, -1))
        return out

    def share(self, means: Floats) -> float:
        """Return the share of the variance, in [0, 1], of means of shape [C] that are not all 0 or all 1."""
        vector = self.vector(means)
        return float(vector @ vector)


def oneway_projection(levels: ArrayLike, weights: ArrayLike) -> Projection:
    """Compute the projection of one factor.

    Parameters
    ----------
    levels
        Shape [C]: which level each cell belongs to.
    weights
        Shape [C]: positive weights of the cells.

    Raises
    ------
    ValueError
        For an empty cell or fewer than two levels.
    """
    n, level = np.asarray(weights, dtype=np.float64), np.asarray(levels)
    names = np.unique(level)
    if len(names) < 2:
        raise ValueError("one level explains nothing")
    if (n <= 0).any():
        raise ValueError("empty cell")
    return Projection(weights=n, basis=_added(np.sqrt(n), level[:, None] == names, []))


def factorial_projections(trials: ArrayLike) -> dict[Effect, Projection]:
    """Compute the main effects and two-way interactions of a crossed design, Type II, over the cells in C order.

    Parameters
    ----------
    trials
        Shape [L1, ..., Lk]: by cell.

    Raises
    ------
    ValueError
        For an empty cell.
    """
    n = np.asarray(trials, dtype=np.float64)
    if (n <= 0).any():
        raise ValueError("empty cell")
    factors = [axis for axis, levels in enumerate(n.shape) if levels > 1]
    terms: list[Effect] = [(axis,) for axis in factors]
    terms += list(combinations(factors, 2))
    columns = {term: _columns(n.shape, term) for term in terms}
    root = np.sqrt(n.ravel())
    rests = {term: [columns[other] for other in terms if not set(term) <= set(other)] for term in terms}
    return {term: Projection(weights=n.ravel(), basis=_added(root, columns[term], rests[term])) for term in terms}


def eta_squared_oneway(successes: ArrayLike, trials: ArrayLike) -> float | None:
    """Compute the share of a binary outcome's variance between levels of one factor (BiAxisAudit section V-B, F-B1).

    It follows the paper: the paper's .130 for the task is reproduced with its weights; its .395 cannot be reproduced.

    Parameters
    ----------
    successes, trials
        Shape [G]: by level; trials are positive. The unit of the weights does not matter.

    Returns
    -------
    float or None
        Share in [0, 1]; None where the outcome does not vary at all.

    Raises
    ------
    ValueError
        For an empty level or fewer than two levels.

    Examples
    --------
    Means 1/4 and 3/4 of four each: between 8 * (1/4)^2 = .5, total 8 * 1/4 = 2.

    >>> round(eta_squared_oneway([1, 3], [4, 4]), 9)
    0.25
    """
    y, n = np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    projection = oneway_projection(np.arange(len(n)), n)
    return projection.share(y / n) if total_variation(y, n) > 0 else None


def eta_squared_factorial(successes: ArrayLike, trials: ArrayLike) -> dict[Effect, float] | None:
    """Split a crossed design into main effects and two-way interactions, as shares of the response-level total.

    Type II compares each term with the model of all main effects and two-way interactions that do not contain it. On a
    balanced grid it is the classical decomposition, which reproduces the paper's Table IV from its Figure 7.

    Parameters
    ----------
    successes, trials
        Shape [L1, ..., Lk]: by cell, every cell with trials; axes with one level have no effect.

    Returns
    -------
    dict or None
        Effect (factor indices, ascending) to a share in [0, 1]; None where the outcome does not vary at all.

    Raises
    ------
    ValueError
        For an empty cell: its mean is unknown, and leaving it out would change the meaning of the effects.

    Examples
    --------
    A pure crossover: 0 and 1 in one row, 1 and 0 in the other.

    >>> effects = eta_squared_factorial([[0, 4], [4, 0]], [[4, 4], [4, 4]])
    >>> {effect: round(share, 9) + 0 for effect, share in effects.items()}
    {(0,): 0.0, (1,): 0.0, (0, 1): 1.0}
    """
    y, n = np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    projections = factorial_projections(n)
    if total_variation(y, n) <= 0:
        return None
    return {effect: projection.share((y / n).ravel()) for effect, projection in projections.items()}


def _columns(shape: Sequence[int], term: Effect) -> Floats:
    """Code one term as dummy columns over the cells in C order, without the first levels."""
    grid = np.indices(shape).reshape(len(shape), -1)
    block = np.ones((1, grid.shape[1]))
    for axis in term:
        levels = (grid[axis][None, :] == np.arange(1, shape[axis])[:, None]).astype(np.float64)
        block = (block[:, None, :] * levels[None, :, :]).reshape(-1, grid.shape[1])
    return block.T


def _added(root: Floats, columns: Floats | NDArray[np.bool_], rest: Sequence[Floats]) -> Floats:
    """Return an orthonormal basis of what columns add to a constant and the others, weighted by the cells' roots."""
    known, _ = np.linalg.qr(np.hstack([np.ones((len(root), 1)), *rest]) * root[:, None])
    weighted = columns * root[:, None]
    basis, sizes, _ = np.linalg.svd(weighted - known @ (known.T @ weighted), full_matrices=False)
    out: Floats = basis[:, sizes > 1e-9 * sizes[0]]
    return out


def squared_length_interval(vector: Floats, replicates: Floats, n_clusters: float, conf: float = 0.95) -> Interval:
    """Bound the squared length of the true vector.

    Each replicate has one noise vector. For it, the true length is the length in the measured direction that has the
    measured length after the noise is added; it may be 0 if the noise alone is as long. The bounds are percentiles of
    these lengths, with the tails of ``bootstrap.expanded_tail``. Noise is skewed, so it is both added and subtracted,
    and the wider bounds are used.

    Parameters
    ----------
    vector
        Shape [r].
    replicates
        Shape [B, r]: paired bootstrap replicates of the vector.
    n_clusters
        G, at least 2; with other noise than that of clusters, its degrees of freedom and 1.
    conf
        Two-sided level.

    Returns
    -------
    Interval
        Interval not below 0; it contains the measured squared length. The lower bound is 0 in about ``(1 + conf) / 2``
        of samples whose true vector is 0.

    Examples
    --------
    Without noise the length is known.

    >>> squared_length_interval(np.array([0.3, 0.4]), np.tile([0.3, 0.4], (20, 1)), 100)
    Interval(low=0.25, high=0.25)
    """
    noise = (replicates - vector) * np.sqrt(n_clusters / (n_clusters - 1))
    length = float(np.linalg.norm(vector))
    # A vector of length 0 has no direction: the main direction of the noise replaces it.
    direction = vector / length if length > 0 else np.linalg.svd(noise, full_matrices=False)[2][0]
    tail = expanded_tail(n_clusters, conf)
    excess, along = (noise**2).sum(axis=1) - length**2, noise @ direction
    bounds = [_length_bounds(sign * along, excess, tail) for sign in (1, -1)]
    low, high = min(low for low, _ in bounds), max(high for _, high in bounds)
    return Interval(low=min(low, length) ** 2, high=max(high, length) ** 2)


def _length_bounds(along: Floats, excess: Floats, tail: float) -> tuple[float, float]:
    """Solve ``|f u + e| = |v|``, which is ``f^2 + 2 f along + excess = 0``, for the larger f, or the nearest."""
    lengths = np.maximum(np.sqrt(np.maximum(along**2 - excess, 0)) - along, 0)
    low = float(np.quantile(np.where(excess < 0, lengths, 0.0), tail))
    return low, float(np.quantile(lengths, 1 - tail))
