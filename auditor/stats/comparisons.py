"""Compare several groups with each other by max-T over clusters, and by Tukey's test as in the paper."""

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from auditor.stats.bootstrap import rate_replicates
from auditor.stats.intervals import Floats
from auditor.stats.max_t import simultaneous_intervals

#: Which groups are compared: first and second, each of shape [P].
Pairs = tuple[NDArray[np.intp], NDArray[np.intp]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparisons:
    """Differences first less second, their intervals (all hold at once) and adjusted p values; each of shape [P]."""

    first: NDArray[np.intp]
    second: NDArray[np.intp]
    difference: Floats
    low: Floats
    high: Floats
    p: Floats


def all_pairs(n_groups: int) -> Pairs:
    """Compare every group with every later one.

    >>> [each.tolist() for each in all_pairs(3)]
    [[0, 0, 1], [1, 2, 2]]
    """
    first, second = np.triu_indices(n_groups, k=1)
    return first, second


def against(baseline: int, n_groups: int) -> Pairs:
    """Compare every other group with the baseline.

    >>> [each.tolist() for each in against(1, 3)]
    [[0, 2], [1, 1]]
    """
    first = np.delete(np.arange(n_groups), baseline)
    return first, np.full(n_groups - 1, baseline)


def compare_rates(
    successes: Floats, trials: Floats, pairs: Pairs, *, n_boot: int, seed: int, conf: float = 0.95
) -> Comparisons:
    """Compare rates over the same clusters by the paired cluster bootstrap and max-T.

    It replaces the paper's Tukey tests (BiAxisAudit appendix F-A), which treat the answers to one statement as
    independent.

    Parameters
    ----------
    successes, trials
        Shape [S, C]: by cluster and condition; each condition has trials in two clusters or more.
    pairs
        ``all_pairs(C)`` or ``against(baseline, C)``.
    n_boot, seed
        Replicates, at least ``1 / (1 - conf)``, and seed of the draws.
    conf
        Probability that all intervals hold.

    Returns
    -------
    Comparisons
        Differences in [-1, 1]; p is no less than 1 / (n_boot + 1).

    Raises
    ------
    ValueError
        For a condition with trials in fewer than two clusters, or too few replicates.

    Examples
    --------
    >>> y = np.array([[4.0, 0.0], [3.0, 1.0]] * 20)
    >>> out = compare_rates(y, np.full_like(y, 4.0), all_pairs(2), n_boot=100, seed=0)
    >>> float(out.difference[0]), bool(out.low[0] > 0.5)
    (0.75, True)
    """
    clusters = np.count_nonzero(trials, axis=0)
    if clusters.min() < 2:
        raise ValueError("a condition has trials in fewer than two clusters")
    rates, replicates = rate_replicates(successes, trials, n_boot=n_boot, seed=seed)
    first, second = pairs
    fewest = np.minimum(clusters[first], clusters[second])
    out = simultaneous_intervals(
        rates[first] - rates[second],
        replicates[:, first] - replicates[:, second],
        fewest,
        conf=conf,
        least_se=1 / fewest,
    )
    low, high = np.maximum(out.low, -1.0), np.minimum(out.high, 1.0)
    return Comparisons(first=first, second=second, difference=out.value, low=low, high=high, p=out.p)


def tukey_hsd(sums: Floats, squares: Floats, n: Floats, *, conf: float = 0.95) -> Comparisons:
    """Compute Tukey's honest significant differences of all pairs of means, groups of any size (Tukey-Kramer).

    It is for the table that reproduces the paper (BiAxisAudit appendix F-A). It treats every answer as independent:
    intervals are too wide if a statement is answered alike under all conditions, and far too narrow if each condition
    changes other statements. The paper's Bonferroni step over several tables is ``conf = 1 - .05 / tables``.

    Parameters
    ----------
    sums, squares, n
        Shape [G]: the sum of each group's values, of their squares, and how many there are. Answers that are 0 or 1
        have ``squares == sums``.
    conf
        Probability that all intervals hold.

    Returns
    -------
    Comparisons
        All pairs, first less second.

    Raises
    ------
    ValueError
        For fewer than two groups, an empty one, or no more values than groups.

    Examples
    --------
    >>> out = tukey_hsd(np.array([30.0, 60.0]), np.array([30.0, 60.0]), np.array([100.0, 100.0]))
    >>> float(out.difference[0]), bool(out.p[0] < 0.001)
    (-0.3, True)
    """
    pairs = first, second = all_pairs(len(n))
    difference, se = _distances(sums, squares, n, pairs)
    half = scipy.stats.studentized_range.ppf(conf, len(n), _spare(n)) * se
    p = tukey_p(sums, squares, n, pairs)
    return Comparisons(
        first=first, second=second, difference=difference, low=difference - half, high=difference + half, p=p
    )


def tukey_p(sums: Floats, squares: Floats, n: Floats, pairs: Pairs) -> Floats:
    """Compute the p values of ``tukey_hsd`` of some pairs alone: a quantile for intervals takes a second.

    Parameters
    ----------
    sums, squares, n
        Statistics of the groups, as ``tukey_hsd`` takes them.
    pairs
        ``all_pairs(G)`` or ``against(baseline, G)``. Whatever they are, p is adjusted for all pairs of the groups.

    Returns
    -------
    Floats
        Shape [P].

    Raises
    ------
    ValueError
        For fewer than two groups, an empty one, or no more values than groups.

    Examples
    --------
    >>> sums, n = np.array([30.0, 60.0, 31.0]), np.full(3, 100.0)
    >>> (tukey_p(sums, sums, n, against(0, 3)) < 0.05).tolist()
    [True, False]
    """
    difference, se = _distances(sums, squares, n, pairs)
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = np.nan_to_num(np.abs(difference) / se, nan=0.0, posinf=np.inf)
    p: Floats = scipy.stats.studentized_range.sf(distance, len(n), _spare(n))
    return p


def _distances(sums: Floats, squares: Floats, n: Floats, pairs: Pairs) -> tuple[Floats, Floats]:
    """Return the difference of each pair of means and its standard error, of what the groups vary within."""
    if len(n) < 2 or n.min() < 1 or n.sum() <= len(n):
        raise ValueError("two groups, and more values than groups, are needed")
    within = max(0.0, float((squares - sums**2 / n).sum())) / _spare(n)
    first, second = pairs
    difference = sums[first] / n[first] - sums[second] / n[second]
    return difference, np.sqrt(within / 2 * (1 / n[first] + 1 / n[second]))


def _spare(n: Floats) -> float:
    """Return the degrees of freedom."""
    return float(n.sum() - len(n))
