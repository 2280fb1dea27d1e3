"""Compute means and their differences, of paired shares too: standard errors, effect sizes, and tests.

An effect size does not say how precise it is; ``comparisons`` gives intervals.
"""

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import scipy
from scipy import special

from auditor.stats.intervals import Floats, Interval, t_quantile

#: A spread below this share of the largest value is a rounding error.
_ROUNDING: Final = 1e-12


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """A difference of means."""

    value: float
    se: float  #: 0 where the values do not vary
    df: float  #: degrees of freedom of the standard error; Welch's need not be whole


def mean_present(values: Floats, axis: int) -> Floats:
    """Compute the mean along an axis without NaN; NaN if all values are NaN.

    >>> mean_present(np.array([[1.0, 3.0], [np.nan, 5.0], [np.nan, np.nan]]), 1).tolist()
    [2.0, 5.0, nan]
    """
    there = ~np.isnan(values)
    counts = there.sum(axis=axis)
    sums = np.where(there, values, 0.0).sum(axis=axis)
    means: Floats = np.full(sums.shape, np.nan)
    np.divide(sums, counts, out=means, where=counts > 0)
    return means


def welch(first: Floats, second: Floats) -> Difference:
    """Compute the difference of two samples' means, Welch's standard error and Satterthwaite's degrees of freedom.

    Parameters
    ----------
    first, second
        Shape [n] and [m], two values or more each.

    Returns
    -------
    Difference
        ``mean(first) - mean(second)``; df between ``min(n, m) - 1`` and ``n + m - 2``.

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
    if min(len(first), len(second)) < 2:
        raise ValueError("a difference of means needs two values on each side")
    parts = np.array([_variance(each) / len(each) for each in (first, second)])
    spare = np.array([len(first) - 1, len(second) - 1])
    # Without any spread the degrees of freedom do not matter.
    df = parts.sum() ** 2 / (parts**2 / spare).sum() if parts.any() else spare.sum()
    return Difference(value=float(first.mean() - second.mean()), se=float(np.sqrt(parts.sum())), df=float(df))


def paired(differences: Floats) -> Difference:
    """Compute the mean of paired differences.

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
    """Compute Student's interval of a difference, or of a mean.

    >>> t_interval(Difference(value=2.0, se=0.0, df=1.0))
    Interval(low=2.0, high=2.0)
    """
    half = t_quantile(conf, difference.df) * difference.se
    return Interval(low=difference.value - half, high=difference.value + half)


def _variance(values: Floats) -> float:
    deviation = float(values.std(ddof=1))
    return deviation**2 if deviation > _ROUNDING * float(np.abs(values).max()) else 0.0


def cohen_d(sums: Floats, squares: Floats, n: Floats) -> float | None:
    """Compute the difference of two means in pooled standard deviations (BiAxisAudit appendix F-D1).

    The paper prints d = 1.34 for .279 against .057 and does not say which standard deviation it uses. With that over
    responses d is .62; with that over the means of its four models d is 2.20.

    Parameters
    ----------
    sums, squares, n
        Shape [2]: the sum of each group's values, of their squares, and how many there are, at least 1. Answers that
        are 0 or 1 have ``squares == sums``.

    Returns
    -------
    float or None
        First less second; None where neither group varies.

    Raises
    ------
    ValueError
        For an empty group, or fewer than three values in all.

    Examples
    --------
    Means 3 and 1, each group with variance 1.

    >>> cohen_d(np.array([9.0, 3.0]), np.array([29.0, 5.0]), np.array([3.0, 3.0]))
    2.0
    """
    if n.min() < 1 or n.sum() < 3:
        raise ValueError("two groups and three values are needed")
    within = float((squares - sums**2 / n).sum()) / float(n.sum() - 2)
    if within <= 0:
        return None
    means = sums / n
    return float((means[0] - means[1]) / np.sqrt(within))


def cohen_h(first: float, second: float) -> float:
    """Compute the distance of two shares on the arcsine scale, where .02 against .05 is as far as .46 against .55.

    Parameters
    ----------
    first, second
        Shares in [0, 1].

    Returns
    -------
    float
        First less second, in [-pi, pi]; .2, .5 and .8 are called small, medium and large.

    Raises
    ------
    ValueError
        For a number outside [0, 1].

    Examples
    --------
    >>> round(cohen_h(0.75, 0.25), 6), round(cohen_h(0.0, 1.0), 6)
    (1.047198, -3.141593)
    """
    if not (0 <= first <= 1 and 0 <= second <= 1):
        raise ValueError("a share lies between 0 and 1")
    return float(2 * (np.arcsin(np.sqrt(first)) - np.arcsin(np.sqrt(second))))


def sign_test(one_way: int, other_way: int, *, alternative: Literal["greater", "two-sided"] = "greater") -> float:
    """Compute the exact p of the null that pairs change one way as likely as the other.

    The test assumes independent pairs.

    Parameters
    ----------
    one_way, other_way
        Pairs that changed one way, and pairs that changed the other; pairs that did not change do not count.
    alternative
        ``greater``: the first way is likelier.

    Returns
    -------
    float
        1 where no pair changed.

    Examples
    --------
    >>> sign_test(7, 0), sign_test(0, 5, alternative="two-sided"), sign_test(0, 0)
    (0.0078125, 0.0625, 1.0)

    References
    ----------
    McNemar (1947), Note on the sampling error of the difference between correlated proportions (the exact form).
    """
    changed = one_way + other_way
    return float(scipy.stats.binomtest(one_way, changed, alternative=alternative).pvalue) if changed else 1.0


Verdict = Literal["equivalent", "different", "inconclusive"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Equivalence:
    """The results of two one-sided tests of a difference against a margin, and of the minimum-effect test."""

    t_lower: float  #: t of the null that the difference is at or below ``-margin``
    t_upper: float  #: t of the null that it is at or above ``margin``
    p_lower: float
    p_upper: float
    p_different: float  #: p of the null that the difference lies within the margin, two-sided
    verdict: Verdict


def tost(difference: float, se: float, df: float, margin: float, alpha: float = 0.05) -> Equivalence:
    """Test a difference for equivalence and for a minimum effect (Relative Bias section 3.5, Schuirmann 1987).

    The verdict departs from the paper: a difference that is not shown equivalent is not thereby shown different. The
    paper's Eq. 5 states the null of the minimum-effect test, its tables print the two one-sided tests; this has both.

    Parameters
    ----------
    difference, se
        Estimate and its standard error, ``se`` positive.
    df
        Degrees of freedom, positive; Welch's need not be whole.
    margin
        The largest difference that does not matter, positive, in units of the difference.
    alpha
        Level of each test.

    Returns
    -------
    Equivalence
        ``equivalent`` where both one-sided tests reject, ``different`` where the minimum-effect test does.

    Raises
    ------
    ValueError
        For a standard error, margin or degrees of freedom that are not positive.

    Examples
    --------
    A difference of 0 with a margin of three standard errors.

    >>> result = tost(0.0, 0.1, 100, 0.3)
    >>> round(result.t_lower, 9), round(result.t_upper, 9), result.verdict
    (3.0, -3.0, 'equivalent')
    """
    if not all(value > 0 for value in (se, df, margin)):
        raise ValueError("a test needs a positive standard error, margin and degrees of freedom")
    t_lower, t_upper = (difference + margin) / se, (difference - margin) / se
    p_lower, p_upper = float(special.stdtr(df, -t_lower)), float(special.stdtr(df, t_upper))
    # Either direction may exceed the margin, so the smaller tail counts twice.
    p_different = min(1.0, 2 * float(special.stdtr(df, (margin - abs(difference)) / se)))
    verdict: Verdict = "inconclusive"
    if max(p_lower, p_upper) < alpha:
        verdict = "equivalent"
    elif p_different < alpha:
        verdict = "different"
    return Equivalence(
        t_lower=t_lower,
        t_upper=t_upper,
        p_lower=p_lower,
        p_upper=p_upper,
        p_different=p_different,
        verdict=verdict,
    )
