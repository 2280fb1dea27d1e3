"""Compute confidence intervals for a proportion of clustered responses.

Use of each interval:

- ``wilson_interval``: only if each cluster contributes one response.
- ``design_effect_wilson``: one proportion whose responses are clustered; the default.
- ``logit_cluster_interval``: a ratio of two clustered counts that is itself a share, or a mean on [-1, 1] mapped to it.
- ``rare_rate_bounds``: a share near 0 or 1, where no symmetric interval holds its level.

``bootstrap`` is for statistics without a closed form.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]

#: Draws behind ``rare_rate_bounds``: the Monte Carlo error of a 2.5 % point is then about 3 % of the interval's width.
RARE_DRAWS: Final = 4000
#: Up to this many clusters each has its own weight, drawn once for all measures.
FEW: Final = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class Interval:
    """Two bounds, ``low <= high``."""

    low: float
    high: float

    def contains(self, value: float) -> bool:
        """Whether ``value`` lies within the bounds."""
        return self.low <= value <= self.high


@dataclass(frozen=True, kw_only=True, slots=True)
class ClusterRate:
    """A ratio of two clustered counts with its linearised standard error."""

    value: float  #: sum(y) / sum(n)
    se: float  #: clustered standard error
    n: float  #: sum(n)
    n_clusters: int  #: clusters with n > 0
    deff: float | None  #: variance relative to p(1-p)/n; None if p is 0 or 1, or not a share
    df: float  #: degrees of freedom of the standard error


def t_quantile(conf: float, df: float) -> float:
    """Return the two-sided Student quantile q: ``P(|t| <= q) = conf``.

    >>> round(t_quantile(0.95, 10), 3)
    2.228
    """
    return float(special.stdtrit(df, 0.5 + conf / 2))


def z_quantile(conf: float) -> float:
    """Return the two-sided normal quantile.

    >>> round(z_quantile(0.95), 3)
    1.96
    """
    return float(special.ndtri(0.5 + conf / 2))


def _score(p: float, n: float, q: float) -> Interval:
    """Return Wilson's bounds for a share ``p`` of ``n`` (effective) responses at quantile ``q``."""
    centre = (p + q * q / (2 * n)) / (1 + q * q / n)
    half = q / (1 + q * q / n) * np.sqrt(p * (1 - p) / n + q * q / (4 * n * n))
    return Interval(low=max(0.0, float(centre - half)), high=min(1.0, float(centre + half)))


def wilson_interval(k: float, n: float, conf: float = 0.95) -> Interval:
    """Compute Wilson's score interval for ``k`` of ``n`` independent responses (BiAxisAudit section III).

    Use it only for independent responses: for an aggregate over statements it covers 14-76 % instead of 95 %.

    Parameters
    ----------
    k, n
        Successes and trials, ``0 <= k <= n``, ``n > 0``.
    conf
        Two-sided level.

    Returns
    -------
    Interval
        Interval in [0, 1].

    Raises
    ------
    ValueError
        For ``n <= 0`` or ``k`` outside [0, n].

    Examples
    --------
    With 1.96 squared = 3.84 the bounds of 0 of 10 are 0 and 3.84 / 13.84.

    >>> interval = wilson_interval(0, 10)
    >>> round(interval.low, 3), round(interval.high, 3)
    (0.0, 0.278)
    """
    if n <= 0 or not 0 <= k <= n:
        raise ValueError(f"not a share: {k} of {n}")
    return _score(k / n, n, z_quantile(conf))


def cluster_rate(y: Floats, n: Floats) -> ClusterRate:
    """Compute the ratio ``sum(y) / sum(n)`` and its standard error over clusters, by Taylor linearisation.

    ``u_s = (y_s - p n_s) / sum(n)`` and ``V = G / (G - 1) sum(u_s^2)``, G clusters with ``n_s > 0``.

    Parameters
    ----------
    y, n
        Shape [S]: events and trials by cluster. ``y`` may be signed (a difference of two events).

    Returns
    -------
    ClusterRate
        Rate with its error. With fewer than two clusters the standard error is infinite, because the spread is unknown.

    Raises
    ------
    ValueError
        For an empty base.

    Examples
    --------
    Two clusters of two responses, one always and one never: p = 1/2, u = (1/4, -1/4), V = 2 * 1/8 = 1/4.

    >>> rate = cluster_rate(np.array([2.0, 0.0]), np.array([2.0, 2.0]))
    >>> rate.value, rate.se, rate.deff
    (0.5, 0.5, 4.0)
    """
    total = float(n.sum())
    if total <= 0:
        raise ValueError("no trials")
    p = float(y.sum()) / total
    clusters = int(np.count_nonzero(n))
    if clusters < 2:
        return ClusterRate(value=p, se=float("inf"), n=total, n_clusters=clusters, deff=None, df=1.0)
    u = (y - p * n) / total
    variance = clusters / (clusters - 1) * float(u @ u)
    simple = p * (1 - p) / total
    deff = variance / simple if simple > 0 else None
    return ClusterRate(value=p, se=float(np.sqrt(variance)), n=total, n_clusters=clusters, deff=deff, df=clusters - 1.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class SampleWeights:
    """What unequal inclusion probabilities leave of a clustered sample of G clusters."""

    answers: float  #: Kish's effective number of responses, ``(sum w)^2 / sum w^2``
    clusters: float  #: effective number of clusters, at most G
    df: float  #: degrees of freedom of the clustered variance, at most G - 1
    scale: float  #: factor of the weights with which they sum to ``answers``
    heaviest: float  #: size of an average cluster of which every response has the largest weight, scaled


def sample_weights(count: Floats, cluster: NDArray[np.int64], weight: Floats) -> SampleWeights:
    """Measure how much unequal weights weaken a clustered sample (Kish 1965; degrees of freedom by Satterthwaite).

    ``K(x) = (sum x)^2 / sum x^2`` is the number of equal parts that vary as much as the parts x. Clusters whose weights
    sum to W_g are worth ``G K(W) / K(n)``, at most G: only the unevenness that the weights add counts. The variance has
    ``(G - 1) K(S) / K(n)`` degrees of freedom, at most G - 1, with the sums S_g of squared weights.

    Parameters
    ----------
    count, cluster, weight
        Shape [E]: responses, their cluster, and the weight of each of them, one over its inclusion probability; > 0.

    Returns
    -------
    SampleWeights
        Effective sizes; with equal weights the numbers of responses and clusters, and G - 1.

    Raises
    ------
    ValueError
        There are no responses.

    Examples
    --------
    Ten responses that stand for one each, and ten that stand for ten each, all of different users:

    >>> sample = sample_weights(np.ones(20), np.arange(20), np.repeat([1.0, 10.0], 10))
    >>> round(sample.answers, 1), round(sample.clusters, 1), round(sample.df, 1)
    (12.0, 12.0, 9.7)
    """
    if not len(count):
        raise ValueError("no responses")
    _, place = np.unique(cluster, return_inverse=True)
    n, sums, squares = (np.bincount(place, weights=count * weight**power).astype(np.float64) for power in (0, 1, 2))
    answers = float(sums.sum() ** 2 / squares.sum())
    scale = answers / float(sums.sum())
    uneven = _equal_parts(n)
    return SampleWeights(
        answers=answers,
        clusters=len(n) * min(1.0, _equal_parts(sums) / uneven),
        df=(len(n) - 1) * min(1.0, _equal_parts(squares) / uneven),
        scale=scale,
        heaviest=float(weight.max()) * scale * float(n.mean()),
    )


def _equal_parts(parts: Floats) -> float:
    return float(parts.sum() ** 2 / (parts @ parts))


def design_effect_wilson(y: Floats, n: Floats, conf: float = 0.95) -> Interval:
    """Compute Wilson's interval with the effective sample size of a clustered sample and the t quantile of G - 1.

    ``n_eff = min(n, p (1 - p) / V)``; if p is 0 or 1, the clusters are counted (``n_eff = G``).
    Covers 93-97 % at G = 100, ICC .3 and rates of .05 to .5 (``tests/bench/test_coverage.py``).

    Parameters
    ----------
    y, n
        Shape [S]: events and trials by cluster, ``0 <= y <= n``.
    conf
        Two-sided level.

    Returns
    -------
    Interval
        Interval in [0, 1]; the whole range if fewer than two clusters have trials.

    Raises
    ------
    ValueError
        For an empty base.

    Examples
    --------
    Nothing in 20 clusters of 50: the bounds of 0 of 20 at t(19) = 2.093, that is 4.381 / 24.381.

    >>> interval = design_effect_wilson(np.zeros(20), np.full(20, 50.0))
    >>> interval.low, round(interval.high, 4)
    (0.0, 0.1797)
    """
    return wilson_of(cluster_rate(y, n), conf)


def wilson_of(rate: ClusterRate, conf: float = 0.95) -> Interval:
    """Compute ``design_effect_wilson`` of a rate whose standard error and degrees of freedom are known."""
    if rate.n_clusters < 2:
        return Interval(low=0.0, high=1.0)
    p, variance = rate.value, rate.se**2
    n_eff = rate.n_clusters if p in {0.0, 1.0} else rate.n
    if p not in {0.0, 1.0} and variance > 0:
        n_eff = min(rate.n, p * (1 - p) / variance)
    return _score(p, n_eff, t_quantile(conf, rate.df))


def logit_cluster_interval(y: Floats, n: Floats, conf: float = 0.95) -> Interval:
    """Compute an interval for a clustered ratio that is a share: t(G - 1) on the logit scale, sandwich standard error.

    For shares of a random base (``n`` varies with the outcome) it covers better than the percentile bootstrap, which
    falls to .87-.92 if few clusters make up the base; see the coverage benchmark. The standard error is never smaller
    than that of independent responses.

    Parameters
    ----------
    y, n
        Shape [S]: events and trials by cluster, ``0 <= y <= n``.
    conf
        Two-sided level.

    Returns
    -------
    Interval
        Interval in [0, 1]; ``design_effect_wilson`` where the share is 0 or 1 and has no logit.

    Raises
    ------
    ValueError
        For an empty base.

    Examples
    --------
    >>> y, n = np.array([1.0, 0.0, 1.0, 0.0]), np.ones(4)
    >>> interval = logit_cluster_interval(y, n)
    >>> round(interval.low + interval.high, 9)
    1.0
    """
    return logit_of(cluster_rate(y, n), conf)


def logit_of(rate: ClusterRate, conf: float = 0.95) -> Interval:
    """Compute ``logit_cluster_interval`` of a rate whose standard error and degrees of freedom are known."""
    p = rate.value
    if rate.n_clusters < 2 or p <= 0 or p >= 1:
        return wilson_of(rate, conf)
    se = max(rate.se, float(np.sqrt(p * (1 - p) / rate.n)))
    return on_logit_scale(p, se, t_quantile(conf, rate.df))


def difference_interval(d: Floats, n: Floats, nonzero: float, conf: float = 0.95) -> Interval:
    """Compute an interval for the mean of a variable in {-1, 0, 1}: t(G - 1) on the logit scale of ``(1 + d) / 2``.

    It covers .94-.96, the percentile bootstrap .92-.97 (coverage benchmark). The standard error is never smaller than
    that of independent responses.

    Parameters
    ----------
    d, n
        Shape [S]: signed events and trials by cluster, ``|d| <= n``.
    nonzero
        Number of responses that are not 0.
    conf
        Two-sided level.

    Returns
    -------
    Interval
        Interval in [-1, 1]; the whole range where fewer than two clusters have trials or all of them sit at one end.

    Raises
    ------
    ValueError
        For an empty base.

    Examples
    --------
    >>> interval = difference_interval(np.array([1.0, -1.0, 1.0, -1.0]), np.ones(4), 4)
    >>> round(interval.low + interval.high, 9)
    0.0
    """
    return difference_of(cluster_rate(d, n), nonzero, conf)


def difference_of(rate: ClusterRate, nonzero: float, conf: float = 0.95) -> Interval:
    """Compute ``difference_interval`` of a mean whose standard error and degrees of freedom are known."""
    if rate.n_clusters < 2 or abs(rate.value) >= 1:
        return Interval(low=-1.0, high=1.0)
    simple = max(0.0, nonzero / rate.n - rate.value**2) / rate.n
    se = max(rate.se, float(np.sqrt(simple)))
    share = on_logit_scale((1 + rate.value) / 2, se / 2, t_quantile(conf, rate.df))
    return Interval(low=2 * share.low - 1, high=2 * share.high - 1)


def on_logit_scale(p: float, se: float, q: float) -> Interval:
    """Return symmetric bounds of the logit, mapped back to the share ``p``, 0 < p < 1."""
    half = q * se / (p * (1 - p))
    centre = float(special.logit(p))
    return Interval(low=float(special.expit(centre - half)), high=float(special.expit(centre + half)))


def rare_rate_bounds(
    y: Floats, n: Floats, conf: float = 0.95, *, seed: int, n_draws: int = RARE_DRAWS, worst: float | None = None
) -> Interval:
    """Compute bounds for a share near 0 or 1 by reweighting the clusters, with one more cluster at the worst value.

    The upper bound is the ``(1 + conf) / 2`` point of ``sum(w y) / sum(w n)`` under exponential weights ``w``, after a
    cluster of mean size that always endorses is added. The lower bound adds one that never endorses. With one response
    per cluster it is exactly Clopper-Pearson; for bounded means it is Gaffke's bound. Symmetric intervals undercover
    here: at p = .015, ICC .3 and uneven clusters they cover .84-.88.

    Parameters
    ----------
    y, n
        Shape [S]: events and trials by cluster, ``0 <= y <= n``.
    conf
        Two-sided level.
    seed
        Seed of the weights.
    n_draws
        Number of weightings.
    worst
        Size of the added cluster, of weighted sums; by default the clusters' mean.

    Returns
    -------
    Interval
        Interval in [0, 1].

    Raises
    ------
    ValueError
        For an empty base.

    Examples
    --------
    Nothing in 100 single responses: Clopper-Pearson's 1 - .025 ** (1 / 100) = .036.

    >>> bounds = rare_rate_bounds(np.zeros(100), np.ones(100), seed=0)
    >>> bounds.low, round(bounds.high, 2)
    (0.0, 0.04)
    """
    used = n > 0
    if not used.any():
        raise ValueError("no trials")
    size = float(n[used].mean()) if worst is None else worst
    if len(n) <= FEW:
        weights = _exponentials(len(n), n_draws, seed)
    else:
        # Equal clusters share a weight: the sum of k exponentials is one gamma draw.
        pairs, repeats = np.unique(np.stack([y, n]), axis=1, return_counts=True)
        y, n = pairs
        rng = np.random.default_rng([seed, len(n)])
        weights = rng.standard_gamma(np.append(repeats, 1.0), (n_draws, len(n) + 1))
        weights[:, -1] = _strata(n_draws)
    events, trials = weights[:, :-1] @ y, weights @ np.append(n, size)
    tail = (1 - conf) / 2
    low, high = np.quantile(events / trials, tail), np.quantile((events + weights[:, -1] * size) / trials, 1 - tail)
    return Interval(low=float(low), high=float(high))


@lru_cache(maxsize=4)
def _exponentials(clusters: int, n_draws: int, seed: int) -> Floats:
    weights = np.random.default_rng([seed, clusters]).standard_exponential((n_draws, clusters + 1))
    weights[:, -1] = _strata(n_draws)
    weights.flags.writeable = False
    return weights


def _strata(n_draws: int) -> Floats:
    """Spread the added cluster's weights evenly; it dominates the tail, so this removes most Monte Carlo noise."""
    return -np.log1p(-(np.arange(n_draws) + 0.5) / n_draws)
