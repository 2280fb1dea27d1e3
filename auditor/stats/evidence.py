"""Evidence that something has changed at an unknown time: Shiryaev-Roberts sums of bets, in logarithms.

A bet multiplies its stake by a factor whose mean is at most 1 as long as nothing has changed. Every day a new bettor
starts with 1, all bet alike, and the evidence is what they own together. Without a change its mean after T days is at
most T, so that it ever reaches T / alpha within T days has probability alpha at most: the promised false-alarm rate,
however often one looks. Averages of such sums over bets keep the promise.
"""

from typing import Final

import numpy as np
from scipy.special import logsumexp

from auditor.stats.intervals import Floats

#: The logarithm of no evidence yet.
NOTHING: Final = -np.inf


def carry_on(log_evidence: Floats, log_growth: Floats) -> Floats:
    """Let a new bettor join, and all of them bet once: M becomes L (M + 1) (MONITORING 3.1; Shin et al. 2023).

    Parameters
    ----------
    log_evidence, log_growth
        Any shapes that broadcast: log M, ``NOTHING`` before the first bet, and log L of this bet.

    Examples
    --------
    Three bets that each double: 2, then 2 (2 + 1) = 6, then 2 (6 + 1) = 14.

    >>> m = np.array(NOTHING)
    >>> for _ in range(3):
    ...     m = carry_on(m, np.log(2.0))
    >>> round(float(np.exp(m)), 9)
    14.0
    """
    return np.asarray(log_growth + np.logaddexp(log_evidence, 0.0), dtype=np.float64)


def together(log_evidence: Floats, axes: int) -> Floats:
    """Average the evidence of several kinds of bets over the last ``axes`` axes; logarithms in, a logarithm out.

    >>> round(float(np.exp(together(np.log([[1.0, 5.0]]), 2))), 9)
    3.0
    """
    over = tuple(range(-axes, 0))
    size = int(np.prod(log_evidence.shape[-axes:]))
    return np.asarray(logsumexp(log_evidence, axis=over) - np.log(size), dtype=np.float64)


def log_threshold(horizon: float, alpha: float, series: int = 1) -> float:
    """Log of what the evidence must reach: K T / alpha (MONITORING 3.4, option 1).

    Parameters
    ----------
    horizon
        T, looks at each series; at least 1.
    alpha
        Probability, in (0, 1), that any of the series ever alarms within the horizon though none has changed.
    series
        K, however they depend on each other.

    Examples
    --------
    >>> round(log_threshold(90, 0.04), 3)
    7.719
    """
    return float(np.log(series * horizon / alpha))
