"""Rank correlation of a handful of items, with exact permutation p values, and distributions of ranks."""

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations
from typing import Final, Literal

import numpy as np
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


def doubled_ranks(x: Floats) -> NDArray[np.int64]:
    """Twice the mid-ranks, so that ties stay integers.

    Examples
    --------
    >>> doubled_ranks(np.array([5.0, 7.0, 7.0])).tolist()
    [2, 5, 5]
    """
    below = (x[None, :] < x[:, None]).sum(axis=1)
    equal = (x[None, :] == x[:, None]).sum(axis=1)
    return np.asarray(2 * below + equal + 1, dtype=np.int64)


def spearman(x: Floats, y: Floats) -> RankCorrelation | None:
    """Spearman's rank correlation; p by all permutations up to nine items, by t above.

    Parameters
    ----------
    x, y
        Shape [n], n at least 3.

    Returns
    -------
    RankCorrelation or None
        None where one side is constant and has no ranking.

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
    if len(x) != len(y) or len(x) < 3:
        raise ValueError("ranks need two sides of at least three items")
    first, second = _centred(doubled_ranks(x)), _centred(doubled_ranks(y))
    scale = math.sqrt(float(first @ first) * float(second @ second))
    if scale == 0:
        return None
    observed = int(first @ second)
    rho = observed / scale
    if len(x) <= EXACT_ITEMS:
        products = first @ second[_orders(len(x))].T
        p = float(np.count_nonzero(np.abs(products) >= abs(observed))) / len(products)
        return RankCorrelation(rho=rho, p=p, p_method="exact", n=len(x))
    df = len(x) - 2
    gap = max(0.0, 1 - rho * rho)
    p = 0.0 if gap == 0 else 2 * float(special.stdtr(df, -abs(rho) * math.sqrt(df / gap)))
    return RankCorrelation(rho=rho, p=p, p_method="t", n=len(x))


def spearman_leave_one_out(x: Floats, y: Floats) -> tuple[float, float] | None:
    """Smallest and largest rho when each item is left out in turn.

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
        left = spearman(np.delete(x, index), np.delete(y, index))
        if left is None:
            return None
        rhos.append(left.rho)
    return min(rhos), max(rhos)


def rank_probabilities(replicates: Floats) -> Floats:
    """How often each item takes each rank, rank 1 being the largest; ties share by mid-rank rounded down.

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
    above = (replicates[:, None, :] > replicates[:, :, None]).sum(axis=2)
    equal = (replicates[:, None, :] == replicates[:, :, None]).sum(axis=2) - 1
    rank = above + equal // 2
    items = replicates.shape[1]
    return np.stack([np.bincount(rank[:, item], minlength=items) / len(replicates) for item in range(items)])


def _centred(doubled: NDArray[np.int64]) -> NDArray[np.int64]:
    """Doubled ranks less their mean, ``n + 1``: still integers, so that equal products compare equal."""
    return doubled - (len(doubled) + 1)


@lru_cache(maxsize=4)
def _orders(n: int) -> NDArray[np.int8]:
    return np.array(list(permutations(range(n))), dtype=np.int8)
