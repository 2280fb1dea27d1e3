"""Compute rank correlations of few items with exact permutation p values, and the stability of a ranking."""

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations
from typing import Final, Literal

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy import special

from auditor.stats.intervals import Floats

#: 9! = 362,880 orders are enumerated in a moment; 10! would take ten times as long and as much memory.
EXACT_ITEMS: Final = 9


@dataclass(frozen=True, kw_only=True, slots=True)
class RankCorrelation:
    """Spearman's rho with a two-sided p value."""

    rho: float
    p: float
    p_method: Literal["exact", "t"]
    n: int


def spearman_rhos(rows: Floats, y: Floats) -> Floats:
    """Compute Spearman's rank correlation of each row with ``y``, without p values.

    Parameters
    ----------
    rows, y
        Shapes [B, n] and [n].

    Returns
    -------
    ndarray
        Shape [B], in [-1, 1]; NaN where a side is constant and has no ranking.

    Examples
    --------
    >>> spearman_rhos(np.array([[1.0, 2, 3], [3, 2, 1], [2, 2, 2]]), np.array([5.0, 7, 9])).tolist()
    [1.0, -1.0, nan]
    """
    ranks, others = _centred_ranks(rows), _centred_ranks(y)
    scale = np.sqrt((ranks**2).sum(axis=1) * (others**2).sum())
    rhos: Floats = np.full(len(rows), np.nan)
    np.divide(ranks @ others, scale, out=rhos, where=scale > 0)
    return rhos


def spearman_rho(x: Floats, y: Floats) -> float | None:
    """Compute Spearman's rank correlation without a p value; None if one side is constant and has no ranking.

    Parameters
    ----------
    x, y
        Shape [n], n at least 3.

    Raises
    ------
    ValueError
        For unequal lengths or fewer than three items.
    """
    if len(x) != len(y) or len(x) < 3:
        raise ValueError("ranks need two sides of at least three items")
    rho = float(spearman_rhos(x[None], y)[0])
    return None if math.isnan(rho) else rho


def spearman(x: Floats, y: Floats) -> RankCorrelation | None:
    """Compute Spearman's rank correlation; p by all permutations up to nine items, by t above.

    Parameters
    ----------
    x, y
        Shape [n], n at least 3.

    Returns
    -------
    RankCorrelation or None
        None if one side is constant and has no ranking.

    Raises
    ------
    ValueError
        For unequal lengths or fewer than three items.

    Examples
    --------
    One adjacent swap among four: sum d^2 = 2, rho = 1 - 12/60 = .8; 8 of 24 orders are as far from 0.

    >>> result = spearman(np.array([1.0, 2, 3, 4]), np.array([1.0, 2, 4, 3]))
    >>> round(result.rho, 9), round(result.p, 9), result.p_method
    (0.8, 0.333333333, 'exact')
    """
    rho = spearman_rho(x, y)
    if rho is None:
        return None
    if len(x) <= EXACT_ITEMS:
        first, second = _centred_ranks(x), _centred_ranks(y)
        products = second.take(_orders(len(x))) @ first
        p = float(np.count_nonzero(np.abs(products) >= abs(first @ second))) / len(products)
        return RankCorrelation(rho=rho, p=p, p_method="exact", n=len(x))
    df = len(x) - 2
    gap = max(0.0, 1 - rho * rho)
    p = 0.0 if gap == 0 else 2 * float(special.stdtr(df, -abs(rho) * math.sqrt(df / gap)))
    return RankCorrelation(rho=rho, p=p, p_method="t", n=len(x))


def spearman_leave_one_out(x: Floats, y: Floats) -> tuple[float, float] | None:
    """Return the smallest and largest rho when each item is left out in turn.

    Returns
    -------
    (float, float) or None
        None where an item's absence leaves a constant side.

    Raises
    ------
    ValueError
        For fewer than four items.
    """
    if len(x) < 4:
        raise ValueError("leaving one out needs at least four items")
    rhos = []
    for index in range(len(x)):
        rho = spearman_rho(np.delete(x, index), np.delete(y, index))
        if rho is None:
            return None
        rhos.append(rho)
    return min(rhos), max(rhos)


def rank_probabilities(replicates: Floats) -> Floats:
    """Compute how often each item has each rank; rank 1 is the largest, and ties have their mid-rank rounded down.

    Parameters
    ----------
    replicates
        Shape [B, K].

    Returns
    -------
    ndarray
        Shape [K, K]: item by rank; rows sum to 1.

    Examples
    --------
    >>> rank_probabilities(np.array([[0.1, 0.9], [0.2, 0.8]])).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    draws, items = replicates.shape
    ranks = scipy.stats.rankdata(-replicates, axis=1).astype(np.int64) - 1
    counts = np.bincount((np.arange(items) * items + ranks).ravel(), minlength=items * items)
    return np.asarray(counts.reshape(items, items) / draws)


def _centred_ranks(values: Floats) -> Floats:
    """Return mid-ranks along the last axis less their mean: halves, so that equal products compare equal."""
    return np.asarray(scipy.stats.rankdata(values, axis=-1) - (values.shape[-1] + 1) / 2)


@lru_cache(maxsize=4)
def _orders(n: int) -> NDArray[np.int8]:
    return np.array(list(permutations(range(n))), dtype=np.int8)


#: Fewer items than this have no ranking to compare.
MIN_RANKED: Final = 3


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class RankDistribution:
    """The ranks of K items over C rankings; rank 1 is the largest."""

    shares: Floats  #: shape [K, K]: item by rank, the share of the rankings; rows sum to 1
    best: NDArray[np.int64]  #: shape [K]
    worst: NDArray[np.int64]
    concordance: float | None  #: Kendall's W in [0, 1]; None if every ranking has ties only


def rank_distribution(rates: Floats) -> RankDistribution:
    """Rank the items under every condition (BiAxisAudit section III-E, for ranks instead of rates).

    Parameters
    ----------
    rates
        Shape [C, K]: conditions by items, all known; C and K at least 2.

    Returns
    -------
    RankDistribution
        A concordance of 1 means the same ranking under all conditions, 0 no common ranking.

    Raises
    ------
    ValueError
        For fewer than two conditions or items, or a rate that is NaN.

    Examples
    --------
    Three of four conditions put the first item on top: rank sums 5 and 7, W = 12 (1 + 1) / (4^2 (2^3 - 2)) = 1/4.

    >>> table = rank_distribution(np.array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.1, 0.2]]))
    >>> table.shares.tolist(), table.best.tolist(), table.worst.tolist(), table.concordance
    ([[0.75, 0.25], [0.25, 0.75]], [1, 1], [2, 2], 0.25)
    """
    if min(rates.shape) < 2 or np.isnan(rates).any():
        raise ValueError("ranks over conditions need at least two conditions and two items, all rates known")
    shares = rank_probabilities(rates)
    taken = shares > 0
    items = rates.shape[1]
    return RankDistribution(
        shares=shares,
        best=taken.argmax(axis=1) + 1,
        worst=items - taken[:, ::-1].argmax(axis=1),
        concordance=_concordance(rates),
    )


def _concordance(rates: Floats) -> float | None:
    """Compute Kendall's W with ties: the spread of the mean ranks over the spread of all ranks."""
    ranks = _centred_ranks(rates)
    spread = float((ranks**2).sum())
    if spread == 0:
        return None
    return float((ranks.sum(axis=0) ** 2).sum()) / (len(rates) * spread)


@dataclass(frozen=True, kw_only=True, slots=True)
class Agreement:
    """The agreement of two measurements of K items."""

    rho: float | None  #: Spearman's, None where a side has no ranking
    rank_shift: float  #: the most ranks an item moves; halves come from ties
    change: float  #: the largest absolute change of a value
    item: int  #: whose change that is


def agreement(first: Floats, second: Floats) -> Agreement:
    """Compare two measurements of the same items, by value and by rank.

    Parameters
    ----------
    first, second
        Shape [K], K at least 3, all known.

    Raises
    ------
    ValueError
        For unequal lengths, fewer than three items or a NaN.

    Examples
    --------
    >>> agreement(np.array([0.25, 0.5, 0.75]), np.array([0.25, 1.0, 0.75]))
    Agreement(rho=0.5, rank_shift=1.0, change=0.5, item=1)
    """
    if np.isnan(first).any() or np.isnan(second).any():
        raise ValueError("a value is unknown")
    rho = spearman_rho(first, second)
    change = np.abs(second - first)
    shift = np.abs(_centred_ranks(second) - _centred_ranks(first)).max()
    item = int(change.argmax())
    return Agreement(
        rho=rho,
        rank_shift=float(shift),
        change=float(change[item]),
        item=item,
    )
