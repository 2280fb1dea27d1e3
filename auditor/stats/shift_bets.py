"""Bets that a mean of many bounded values has moved away from its reference, by more than is allowed for.

One pass over a panel is one bet: the product over clusters of 1 + lambda (+-D - b). For independent clusters, one
lambda within a pass, and a mean of D of at most b either way, its mean is at most 1, however the clusters differ and
whatever depends on what within a cluster (AM-GM; MONITORING 3.1). Choosing lambda by the pass's own data, or looking
before the pass is whole, would void that.
"""

from typing import Final

import numpy as np

from auditor.stats.intervals import Floats

#: Stakes, as shares of what the bound of a value leaves. Chosen by this project: for shifts of 3 to 10 points of 200
#: clusters of a few responses; more stakes cost more evidence than they find.
STAKES: Final = np.array([0.15, 0.3, 0.5, 0.8])
#: An allowance of more than so much of the bound leaves the largest stake no room.
MOST_ALLOWED: Final = 0.2


def log_growth(shifts: Floats, allowance: Floats, bound: float = 1.0) -> Floats:
    """Bet once on every side with every stake.

    Parameters
    ----------
    shifts
        Shape [..., S]: the value of each cluster less its reference, in [-bound, bound]; NaN where there is none: no
        bet is placed on it.
    allowance
        Shape [...]: b, at least 0, at most ``MOST_ALLOWED`` times the bound. How far the mean may lie from 0.
    bound
        What the shifts are bounded by.

    Returns
    -------
    ndarray
        Shape [..., 2, G]: log growth, upwards first.

    Raises
    ------
    ValueError
        For a shift beyond the bound, or an allowance that is negative or too large.

    Examples
    --------
    Two of four clusters have moved by one: with the stake .5 the bet upwards grows by 1.5^2.

    >>> round(float(np.exp(log_growth(np.array([1.0, 1.0, 0.0, np.nan]), np.array(0.0)))[0, 2]), 9)
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
