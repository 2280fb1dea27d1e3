"""Intervals that hold at all times at once: for numbers that people watch."""

import numpy as np

from auditor.stats.intervals import Floats, Interval

#: Candidates for the mean on [0, 1].
_GRID = np.linspace(0.0, 1.0, 201)


def asymptotic_sequence(n: int, mean: float, sd: float, *, alpha: float = 0.05, best_at: int = 60) -> Interval:
    """Bound a mean of independent units after n of them, whenever one looks (Waudby-Smith et al.; MONITORING 2).

    Parameters
    ----------
    n
        Units so far, at least 2; about 20 before the asymptotics hold.
    mean, sd
        Of the units so far.
    alpha
        Probability that the interval ever misses.
    best_at
        The number of units for which it is narrowest.

    Examples
    --------
    About 1.6 times as wide as the interval that may be looked at once.

    >>> found = asymptotic_sequence(60, 0.0, 1.0)
    >>> round(found.high / (1.96 / 60**0.5), 2)
    1.55
    """
    rho2 = (2 * np.log(1 / alpha) + np.log(1 + 2 * np.log(1 / alpha))) / best_at
    spread = n * rho2 + 1
    half = sd * np.sqrt(2 * spread / (n**2 * rho2) * np.log(np.sqrt(spread) / alpha))
    return Interval(low=float(mean - half), high=float(mean + half))


def betting_sequence(values: Floats, *, alpha: float = 0.05) -> Interval:
    """Bound the mean of values in [0, 1] by bets against every candidate (Waudby-Smith & Ramdas 2024).

    Holds for any number of values and any distribution with a constant conditional mean; nothing is asymptotic.

    Parameters
    ----------
    values
        Shape [n], in their order.
    alpha
        Probability that the interval ever misses.

    Returns
    -------
    Interval
        Within [0, 1]; all of it before the first value.

    Raises
    ------
    ValueError
        For a value outside [0, 1].

    Examples
    --------
    >>> found = betting_sequence(np.full(200, 0.5))
    >>> 0.4 < found.low < 0.5 < found.high < 0.6
    True
    """
    if len(values) and not (values.min() >= 0 and values.max() <= 1):
        raise ValueError("a value is outside [0, 1]")
    stakes = _stakes(values, alpha)[:, None]
    # Half the wealth bets that the mean is larger than the candidate, half that it is smaller.
    with np.errstate(divide="ignore"):
        up = np.minimum(stakes, 0.5 / np.maximum(_GRID, 1e-12))
        down = np.minimum(stakes, 0.5 / np.maximum(1 - _GRID, 1e-12))
    gain = values[:, None] - _GRID
    wealth = np.logaddexp(np.log1p(up * gain).cumsum(axis=0), np.log1p(-down * gain).cumsum(axis=0)) - np.log(2)
    kept = np.flatnonzero((wealth < np.log(1 / alpha)).all(axis=0))
    if not len(kept):  # the candidates lie too far apart: the mean is between two of them
        kept = np.array([int(wealth.max(axis=0).argmin())])
    step = _GRID[1]
    return Interval(low=max(0.0, float(_GRID[kept[0]] - step)), high=min(1.0, float(_GRID[kept[-1]] + step)))


def _stakes(values: Floats, alpha: float) -> Floats:
    """Stakes that each know the values before them alone."""
    n = np.arange(1, len(values) + 1)
    means = (0.5 + values.cumsum()) / (n + 1)
    variances = (0.25 + ((values - means) ** 2).cumsum()) / (n + 1)
    before = np.concatenate([[0.25], variances[:-1]])
    return np.asarray(np.sqrt(2 * np.log(2 / alpha) / (before * n * np.log1p(n))), dtype=np.float64)
