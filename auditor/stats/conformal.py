"""Bets on the rank of a day among all days before it: evidence of a change that needs no reference and fears no shocks.

As long as days are exchangeable, the smoothed rank of the newest is uniform and independent of the earlier ranks,
whatever moves whole days (Vovk et al.; MONITORING 3.2). Days that change together with everything else, through a judge
or the gateway, are exchangeable all the same; a lasting change is not.
"""

from typing import Final

import numpy as np

from auditor.stats.intervals import Floats

#: Exponents of the bets epsilon p^(epsilon - 1). Chosen by this project, for changes that few earlier days resemble.
EXPONENTS: Final = np.array([0.1, 0.2, 0.35, 0.5])
#: No rank counts as rarer: the bets stay finite.
_RAREST: Final = 1e-12


def smoothed_rank(earlier: Floats, newest: Floats, uniform: Floats) -> Floats:
    """Rank a value among those before it, from the top; ties are broken at random.

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


def log_growth(rank: Floats) -> Floats:
    """Bet that ranks are small, and that they are large, with every exponent.

    Parameters
    ----------
    rank
        Shape [...], in [0, 1].

    Returns
    -------
    ndarray
        Shape [..., 2, E]: log growth; of a uniform rank the mean growth is 1.

    Examples
    --------
    A rank of .01 and the exponent .5: .5 / sqrt(.01) = 5.

    >>> round(float(np.exp(log_growth(np.array(0.01)))[0, 3]), 9)
    5.0
    """
    sides = np.stack([rank, 1 - rank], axis=-1)[..., None]
    bets = np.log(EXPONENTS) + (EXPONENTS - 1) * np.log(np.maximum(sides, _RAREST))
    return np.asarray(bets, dtype=np.float64)
