"""Compute the evidence of a change at an unknown time: the Shiryaev-Roberts sum of e-values, in logarithms.

An e-value is a factor L whose mean is at most 1 as long as nothing has changed. The sum is M_t = L_t (M_(t-1) + 1).
Without a change the mean of M after T days is at most T, so the probability that M reaches T / alpha within T days is
at most alpha. This bounds the rate of false alarms for any number of looks. The mean of several such sums has the same
bound.

Two kinds of e-values: ``shift_log_factors`` compare clusters with a reference, ``rank_log_factors`` compare a day with
the days before it.
"""

from typing import Final

import numpy as np
from scipy.special import logsumexp

from auditor.stats.intervals import Floats

#: The logarithm of the evidence before the first step.
NOTHING: Final = -np.inf

#: Stakes, as shares of the bound of a value. Chosen by this project for shifts of 3 to 10 points of 200 clusters of a
#: few responses; more stakes cost more evidence than they find.
STAKES: Final = np.array([0.15, 0.3, 0.5, 0.8])
#: Largest allowance, as a share of the bound: the largest stake would have no room with a larger one.
MOST_ALLOWED: Final = 0.2
#: Exponents of the factors epsilon p^(epsilon - 1). Chosen by this project, for changes that few earlier days resemble.
EXPONENTS: Final = np.array([0.1, 0.2, 0.35, 0.5])
#: Smaller ranks count as this one, so that the factors stay finite.
_RAREST: Final = 1e-12


def sr_update(log_evidence: Floats, log_growth: Floats) -> Floats:
    """Return the logarithm of L (M + 1): one step of the sum (MONITORING 3.1; Shin et al. 2023).

    Parameters
    ----------
    log_evidence, log_growth
        Any shapes that broadcast: log M (``NOTHING`` before the first step), and log L of this step.

    Examples
    --------
    Three factors of 2: 2, then 2 (2 + 1) = 6, then 2 (6 + 1) = 14.

    >>> m = np.array(NOTHING)
    >>> for _ in range(3):
    ...     m = sr_update(m, np.log(2.0))
    >>> round(float(np.exp(m)), 9)
    14.0
    """
    return np.asarray(log_growth + np.logaddexp(log_evidence, 0.0), dtype=np.float64)


def log_mean_exp(log_evidence: Floats, axes: int) -> Floats:
    """Return the logarithm of the mean of exp(``log_evidence``) over the last ``axes`` axes.

    >>> round(float(np.exp(log_mean_exp(np.log([[1.0, 5.0]]), 2))), 9)
    3.0
    """
    over = tuple(range(-axes, 0))
    size = int(np.prod(log_evidence.shape[-axes:]))
    return np.asarray(logsumexp(log_evidence, axis=over) - np.log(size), dtype=np.float64)


def log_threshold(horizon: float, alpha: float, series: int = 1) -> float:
    """Return the logarithm of the alarm threshold K T / alpha (MONITORING 3.4, option 1).

    Parameters
    ----------
    horizon
        T, looks at each series; at least 1.
    alpha
        Probability, in (0, 1), of an alarm of any series within the horizon if none has changed.
    series
        K; they may depend on each other in any way.

    Examples
    --------
    >>> round(log_threshold(90, 0.04), 3)
    7.719
    """
    return float(np.log(series * horizon / alpha))


def shift_log_factors(shifts: Floats, allowance: Floats, bound: float = 1.0) -> Floats:
    """Return the log e-values of one pass over a panel against a mean shift within the allowance, up and down.

    For each direction and stake lambda, the factor is the product over clusters of 1 + lambda (+-D - b). Its mean is at
    most 1 if the clusters are independent, lambda is one number within a pass, and the mean of D is at most b in either
    direction. Clusters may differ, and values within a cluster may be dependent (AM-GM; MONITORING 3.1). The bound
    does not hold if lambda depends on the data of the pass, or if a pass is read before it is complete.

    Parameters
    ----------
    shifts
        Shape [..., S]: the value of each cluster less its reference, in [-bound, bound]; NaN where there is none:
        it does not count.
    allowance
        Shape [...]: b, at least 0, at most ``MOST_ALLOWED`` times the bound. How far the mean may lie from 0.
    bound
        Largest absolute shift.

    Returns
    -------
    ndarray
        Shape [..., 2, G]: by direction (up first) and stake.

    Raises
    ------
    ValueError
        For a shift beyond the bound, or an allowance that is negative or too large.

    Examples
    --------
    Two of four clusters have moved by one: with the stake .5 the factor upwards is 1.5^2.

    >>> round(float(np.exp(shift_log_factors(np.array([1.0, 1.0, 0.0, np.nan]), np.array(0.0)))[0, 2]), 9)
    2.25
    """
    if np.nanmax(np.abs(shifts), initial=0.0) > bound:
        raise ValueError(f"a shift is beyond {bound}")
    if np.any(allowance < 0) or np.any(allowance > MOST_ALLOWED * bound):
        raise ValueError(f"the allowance must be between 0 and {MOST_ALLOWED * bound}")
    out = np.empty((*shifts.shape[:-1], 2, len(STAKES)))
    for side, sign in enumerate((1.0, -1.0)):
        gain = sign * shifts - allowance[..., None]
        for place, stake in enumerate(STAKES / bound):
            out[..., side, place] = np.nansum(np.log1p(stake * gain), axis=-1)
    return out


def smoothed_rank(earlier: Floats, newest: Floats, uniform: Floats) -> Floats:
    """Return the rank of a value among those before it, from the top; ties are broken at random.

    Parameters
    ----------
    earlier
        Shape [T, ...].
    newest
        Shape [...].
    uniform
        Shape [...]: independent draws in [0, 1).

    Returns
    -------
    ndarray
        Shape [...], in [0, 1): uniform where the T + 1 values are exchangeable; small where the newest is large.

    Examples
    --------
    >>> float(smoothed_rank(np.array([0.1, 0.2, 0.3]), np.array(0.25), np.array(0.5)))
    0.375
    """
    above = (earlier > newest).sum(axis=0)
    level = (earlier == newest).sum(axis=0) + 1
    return np.asarray((above + uniform * level) / (len(earlier) + 1), dtype=np.float64)


def rank_log_factors(rank: Floats) -> Floats:
    """Return the log e-values of a rank, for small and for large ranks.

    The factors are epsilon p^(epsilon - 1). As long as days are exchangeable, the smoothed rank of the newest day is
    uniform and independent of the earlier ranks, whatever affects whole days (Vovk et al.; MONITORING 3.2). Days that
    change together with all else, because of a judge or the gateway, are exchangeable too; a lasting change is not.

    Parameters
    ----------
    rank
        Shape [...], in [0, 1].

    Returns
    -------
    ndarray
        Shape [..., 2, E]: by direction (small first) and exponent; the mean factor of a uniform rank is 1.

    Examples
    --------
    A rank of .01 and the exponent .5: .5 / sqrt(.01) = 5.

    >>> round(float(np.exp(rank_log_factors(np.array(0.01)))[0, 3]), 9)
    5.0
    """
    sides = np.stack([rank, 1 - rank], axis=-1)[..., None]
    factors = np.log(EXPONENTS) + (EXPONENTS - 1) * np.log(np.maximum(sides, _RAREST))
    return np.asarray(factors, dtype=np.float64)
