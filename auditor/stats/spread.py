"""Compute the range of several noisy rates: the largest less the smallest.

The largest less the smallest of noisy rates is biased upward: it is positive even if all truths are equal. The
interval accounts for this. Its lower bound holds for all pairs at once (max-T over paired bootstrap differences); its
upper bound needs one pair only, because the true largest and smallest are fixed.
"""

from dataclasses import dataclass

import numpy as np
from scipy import special

from auditor.stats.intervals import Floats
from auditor.stats.max_t import as_t, largest_deviations, level_of
from auditor.stats.sampled_templates import TemplateVariance


@dataclass(frozen=True, kw_only=True, slots=True)
class Spread:
    """Range of rates with an interval for the range of the true ones."""

    smallest: int  #: index of the smallest rate
    largest: int  #: index of the largest rate
    range: float  #: the observed range, biased upward
    corrected: float  #: the observed range less its bootstrap bias, never below 0
    low: float
    high: float


def range_interval(
    rates: Floats,
    replicates: Floats,
    n_clusters: int,
    conf: float = 0.95,
    *,
    templates: TemplateVariance | None = None,
    seed: int = 0,
) -> Spread:
    """Compute the range over conditions with a selection-aware interval (BiAxisAudit section III-E has the range only).

    Parameters
    ----------
    rates
        Shape [C], C at least 2.
    replicates
        Shape [B, C]: paired bootstrap replicates of the rates, over statements.
    n_clusters
        G, for the t quantile.
    conf
        Two-sided level.
    templates, seed
        Variance that the choice of templates adds, and the seed of its draws. Without it templates are fixed.

    Returns
    -------
    Spread
        ``low`` is 0 in at least ``conf`` of all samples from equal truths.

    Raises
    ------
    ValueError
        For fewer than two rates.

    Examples
    --------
    Without noise the interval is the range itself.

    >>> spread = range_interval(np.array([0.1, 0.5]), np.tile([0.1, 0.5], (10, 1)), 50)
    >>> spread.range, spread.low, spread.high
    (0.4, 0.4, 0.4)
    """
    if len(rates) < 2:
        raise ValueError("a range needs at least two rates")
    first, second = np.triu_indices(len(rates), k=1)
    gap = rates[first] - rates[second]
    noise = (replicates[:, first] - replicates[:, second]) - gap
    # The bootstrap's spread is too small by sqrt((G - 1) / G).
    short = np.sqrt(n_clusters / (n_clusters - 1))
    noise *= short
    variance = noise.var(axis=0, ddof=1)
    df = np.full(len(gap), n_clusters - 1.0)
    typical = np.full(len(gap), variance.mean())
    if templates is not None:
        df = templates.pair_df(variance, first, second, n_clusters)
        typical += templates.expected[first] + templates.expected[second]
        variance = variance + templates.pair_variance(first, second)
        drawn = templates.noise(len(replicates), seed)
        noise += drawn[:, first] - drawn[:, second]
        replicates = replicates + drawn
    se = np.sqrt(variance)
    # Among many pairs the widest gap is often one whose error came out too small: errors are drawn half way together.
    steady = np.sqrt((variance + typical) / 2)
    q = as_t(level_of(largest_deviations(noise, se), conf), df + 1)
    largest, smallest = int(np.argmax(rates)), int(np.argmin(rates))
    observed = float(rates[largest] - rates[smallest])
    bias = float((replicates.max(axis=1) - replicates.min(axis=1)).mean()) - observed
    return Spread(
        smallest=smallest,
        largest=largest,
        range=observed,
        corrected=max(0.0, observed - bias),
        low=max(0.0, float((np.abs(gap) - q * steady).max())),
        high=float((np.abs(gap) + special.stdtrit(df, 0.5 + conf / 2) * se).max()),
    )
