"""Compare two deployments, or two of anything, on the questions that both were asked.

A question is a statement under one condition. Both sides answer it, so a statement's own level and the mix of
conditions cancel: this is the only comparison that says whether one side is worse. Pooled rates differ between equal
deployments as soon as one of them was asked the hard conditions more often.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import special

from auditor.counting.joint import Floats, Ints
from auditor.domain.estimate import Insufficient
from auditor.metrics.estimate import MIN_STATEMENTS
from auditor.metrics.standardised import MIN_STRATUM, GridCounts
from auditor.stats.intervals import t_quantile
from auditor.stats.max_t import adjusted_p

#: Why there is no difference.
TOO_FEW: Final = Insufficient(reason=f"no condition has {MIN_STRATUM} statements of both")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class PairedDifference:
    """The second side's rate less the first's over the same questions, with its 95 % interval over statements."""

    value: float  #: each condition has the same weight, and within it each statement
    low: float
    high: float
    p: float  #: two-sided, of no difference; at most .05 exactly where the interval excludes 0
    n: int  #: responses to the questions that count, of both sides
    n_statements: int
    conditions: NDArray[np.bool_]  #: shape [C]: whether a condition counts
    errors: Floats  #: what each statement, or its cluster, adds to the error of ``value``
    se: float


def paired_difference(
    first: GridCounts, second: GridCounts, clusters: Ints | None = None
) -> PairedDifference | Insufficient:
    """Estimate the mean difference of two sides over the questions that both answered.

    ``d_sc`` is the difference of the two rates on statement s under condition c, ``m_c`` how many statements c has of
    both. The value is the mean over c of the mean over s, so neither repeated answers nor the mix of conditions
    count. The variance sums each statement's part over its conditions, with the factor ``m_c / (m_c - 1)`` of each
    condition; the degrees of freedom are the effective number of statements less 1. As for other contrasts of rates
    (Agresti and Caffo 2000), the interval is computed as if each condition had one statement more, half of it with the
    largest difference in either direction: else two sides that agree everywhere would be known to agree exactly.

    Parameters
    ----------
    first, second
        Counts over the same S statements and C conditions.
    clusters
        Shape [S]: the cluster of each statement, where statements are not the units.

    Returns
    -------
    PairedDifference or Insufficient
        ``value`` in [-1, 1] for shares. Insufficient if no condition has five statements of both, or all of them have
        fewer than 15 clusters.

    Examples
    --------
    Equal rates of .1 and .5; the second side was asked the harder condition twice as often.

    >>> answers = np.tile([[1.0, 5.0]], (20, 1))
    >>> easy = GridCounts(events=answers, trials=np.full((20, 2), 10.0))
    >>> hard = GridCounts(events=answers * [1, 2], trials=np.tile([[10.0, 20.0]], (20, 1)))
    >>> difference = paired_difference(easy, hard)
    >>> difference.value, difference.p, round(difference.high, 2)
    (0.0, 1.0, 0.07)
    """
    both = (first.trials > 0) & (second.trials > 0)
    kept = both.sum(axis=0) >= MIN_STRATUM
    if not kept.any():
        return TOO_FEW
    both = both & kept
    used = both.any(axis=1)
    labels = np.arange(len(both)) if clusters is None else clusters
    size = len(np.unique(labels[used]))
    if size < MIN_STATEMENTS:
        return Insufficient(reason=f"{size} statements of both, {MIN_STATEMENTS} needed")
    with np.errstate(invalid="ignore", divide="ignore"):
        apart = np.where(both, second.events / second.trials - first.events / first.trials, 0.0)[:, kept]
    pairs = both[:, kept].astype(np.float64)
    by_cluster = np.zeros((int(labels.max()) + 1, int(kept.sum())))
    np.add.at(by_cluster, labels, pairs)
    n_pairs, n_clusters = pairs.sum(axis=0), (by_cluster > 0).sum(axis=0)
    means = apart.sum(axis=0) / n_pairs
    weight = 1 / len(means)
    shrink = n_clusters / (n_clusters + 1)
    spare = np.sqrt(n_clusters / np.maximum(n_clusters - 1, 1))
    errors = ((apart - means * pairs) / n_pairs * spare * shrink).sum(axis=1) * weight
    summed = np.bincount(labels, weights=errors).astype(np.float64)
    centre = float((means * shrink).sum() * weight)
    added = ((weight / (n_clusters + 1)) ** 2 * (1 + (means * shrink) ** 2)).sum()
    se = float(np.sqrt(summed @ summed + added))
    parts = ((by_cluster / n_pairs) ** 2).sum(axis=1)
    df = max(1.0, float(parts.sum() ** 2 / (parts @ parts)) - 1)
    half, value = t_quantile(0.95, df) * se, float(means.mean())
    return PairedDifference(
        value=value,
        low=max(-1.0, min(centre - half, value)),
        high=min(1.0, max(centre + half, value)),
        p=float(2 * special.stdtr(df, -abs(centre) / se)),
        n=round(float((first.trials + second.trials)[both].sum())),
        n_statements=int(used.sum()),
        conditions=kept,
        errors=summed,
        se=se,
    )


def adjusted(differences: Sequence[PairedDifference], *, seed: int) -> list[float]:
    """Adjust the p of several differences over the same statements for all of them (max-T).

    Parameters
    ----------
    differences
        One or more, of the same statements and clusters.
    seed
        Seed of the draws.
    """
    errors = np.stack([each.errors for each in differences], axis=1)
    scaled = errors / np.array([each.se for each in differences])
    correlation = scaled.T @ scaled
    np.fill_diagonal(correlation, 1.0)
    p = adjusted_p(np.array([each.p for each in differences]), correlation, seed=seed)
    return [float(each) for each in p]
