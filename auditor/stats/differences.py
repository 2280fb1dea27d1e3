"""Differences of means with their standard errors: two samples, or pairs."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from auditor.stats.intervals import Floats, Interval, t_quantile

#: A spread below this share of the largest value is rounding and no spread.
_ROUNDING: Final = 1e-12


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """A difference of means."""

    value: float
    se: float  #: 0 where the values do not vary
    df: float  #: degrees of freedom of the standard error; Welch's need not be whole


def welch(one: Floats, other: Floats) -> Difference:
    """Take the difference of two samples' means, with Welch's standard error and Satterthwaite's degrees of freedom.

    Parameters
    ----------
    one, other
        Shape [n] and [m], two values or more each.

    Returns
    -------
    Difference
        ``mean(one) - mean(other)``; df between ``min(n, m) - 1`` and ``n + m - 2``.

    Raises
    ------
    ValueError
        For a sample of fewer than two values.

    Examples
    --------
    Variances 2 and 2 over 2 values each: se^2 = 1 + 1, df = 2^2 / (1 + 1).

    >>> welch(np.array([4.0, 6.0]), np.array([1.0, 3.0]))
    Difference(value=3.0, se=1.4142135623730951, df=2.0)
    """
    if min(len(one), len(other)) < 2:
        raise ValueError("a difference of means needs two values on each side")
    parts = np.array([_variance(each) / len(each) for each in (one, other)])
    spare = np.array([len(one) - 1, len(other) - 1])
    # Without any spread every sharing-out of the degrees of freedom is as good.
    df = parts.sum() ** 2 / (parts**2 / spare).sum() if parts.any() else spare.sum()
    return Difference(value=float(one.mean() - other.mean()), se=float(np.sqrt(parts.sum())), df=float(df))


def paired(differences: Floats) -> Difference:
    """Take the mean of paired differences.

    Parameters
    ----------
    differences
        Shape [n], two values or more.

    Returns
    -------
    Difference
        df = n - 1.

    Raises
    ------
    ValueError
        For fewer than two values.

    Examples
    --------
    >>> paired(np.array([1.0, 3.0]))
    Difference(value=2.0, se=1.0, df=1.0)
    """
    n = len(differences)
    if n < 2:
        raise ValueError("a mean difference needs two pairs")
    return Difference(value=float(differences.mean()), se=float(np.sqrt(_variance(differences) / n)), df=float(n - 1))


def t_interval(difference: Difference, conf: float = 0.95) -> Interval:
    """Student's interval of a difference, or of a mean.

    >>> t_interval(Difference(value=2.0, se=0.0, df=1.0))
    Interval(low=2.0, high=2.0)
    """
    half = t_quantile(conf, difference.df) * difference.se
    return Interval(low=difference.value - half, high=difference.value + half)


def _variance(values: Floats) -> float:
    deviation = float(values.std(ddof=1))
    return deviation**2 if deviation > _ROUNDING * float(np.abs(values).max()) else 0.0
