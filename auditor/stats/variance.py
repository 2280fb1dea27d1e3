"""Shares of variance of a binary outcome, from successes and trials by cell.

The total is always the response-level one, ``N p (1 - p)``: the mean of a cell hides the spread within it, and a share
of the spread between cell means is another, much larger number.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.stats.intervals import Floats

#: An effect of a factorial: the indices of the factors in it.
Effect = tuple[int, ...]


def total_variation(successes: Floats, trials: Floats) -> float:
    """Response-level sum of squares ``N p (1 - p)``.

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
    """What one effect adds to a model of the cells' means. The squared length of its vector is the effect's share."""

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
        """Share of the variance, in [0, 1], of means of shape [C] that are not all 0 or all 1."""
        vector = self.vector(means)
        return float(vector @ vector)


def oneway_projection(levels: ArrayLike, weights: ArrayLike) -> Projection:
    """Make the effect of one factor.

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
    """Make the main effects and two-way interactions of a crossed design, Type II, over the cells in C order.

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
    """Share of a binary outcome's variance that lies between the levels of one factor (BiAxisAudit section V-B, F-B1).

    Departs from the paper nowhere: its .130 for the task is reproduced with its own weights, its .395 cannot be.

    Parameters
    ----------
    successes, trials
        Shape [G]: by level; trials are positive. Any unit of weight will do.

    Returns
    -------
    float or None
        In [0, 1]; None where the outcome does not vary at all.

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

    Type II: each term against the model of all main effects and two-way interactions that do not contain it. On a
    balanced grid this is the classical decomposition, which reproduces the paper's Table IV from its Figure 7.

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
        For an empty cell: its mean is unknown, and leaving it out silently changes what the effects mean.

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
    """Code one term as dummy columns over the cells in C order, first levels left out."""
    grid = np.indices(shape).reshape(len(shape), -1)
    block = np.ones((1, grid.shape[1]))
    for axis in term:
        levels = (grid[axis][None, :] == np.arange(1, shape[axis])[:, None]).astype(np.float64)
        block = (block[:, None, :] * levels[None, :, :]).reshape(-1, grid.shape[1])
    return block.T


def _added(root: Floats, columns: Floats | NDArray[np.bool_], rest: Sequence[Floats]) -> Floats:
    """Find an orthonormal basis of what columns add to a constant and the rest, all weighted by the cells' roots."""
    known, _ = np.linalg.qr(np.hstack([np.ones((len(root), 1)), *rest]) * root[:, None])
    weighted = columns * root[:, None]
    basis, sizes, _ = np.linalg.svd(weighted - known @ (known.T @ weighted), full_matrices=False)
    out: Floats = basis[:, sizes > 1e-9 * sizes[0]]
    return out
