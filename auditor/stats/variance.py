"""Shares of variance of a binary outcome, from successes and trials by cell.

The total is always the response-level one, ``N p (1 - p)``: the mean of a cell hides the spread within it, and a share
of the spread between cell means is another, much larger number.
"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

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

    >>> eta_squared_oneway([1, 3], [4, 4])
    0.25
    """
    y, n = np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    if len(n) < 2:
        raise ValueError("one level explains nothing")
    if (n <= 0).any():
        raise ValueError("empty cell")
    total = total_variation(y, n)
    if total <= 0:
        return None
    grand = y.sum() / n.sum()
    return float((n * (y / n - grand) ** 2).sum()) / total


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
    if (n <= 0).any():
        raise ValueError("empty cell")
    total = total_variation(y, n)
    if total <= 0:
        return None
    factors = [axis for axis, levels in enumerate(n.shape) if levels > 1]
    terms: list[Effect] = [(axis,) for axis in factors]
    terms += list(combinations(factors, 2))
    columns = {term: _columns(n.shape, term) for term in terms}
    root = np.sqrt(n.ravel())
    target = y.ravel() / n.ravel() * root
    shares = {}
    for term in terms:
        rest = [columns[other] for other in terms if not set(term) <= set(other)]
        without, including = _residual(root, target, rest), _residual(root, target, [*rest, columns[term]])
        shares[term] = max(0.0, without - including) / total
    return shares


def _columns(shape: Sequence[int], term: Effect) -> Floats:
    """Code one term as dummy columns over the cells in C order, first levels left out."""
    grid = np.indices(shape).reshape(len(shape), -1)
    block = np.ones((1, grid.shape[1]))
    for axis in term:
        levels = (grid[axis][None, :] == np.arange(1, shape[axis])[:, None]).astype(np.float64)
        block = (block[:, None, :] * levels[None, :, :]).reshape(-1, grid.shape[1])
    return block.T


def _residual(root: Floats, target: Floats, blocks: Sequence[Floats]) -> float:
    """Weighted residual sum of squares of the cell means on a constant and the given columns."""
    design = np.hstack([np.ones((len(root), 1)), *blocks]) * root[:, None]
    solution, *_ = np.linalg.lstsq(design, target, rcond=None)
    residual = target - design @ solution
    return float(residual @ residual)
