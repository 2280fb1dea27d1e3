"""Run the cluster bootstrap on counts: resampling clusters is a reweighting of their sufficient statistics.

``weights @ counts`` gives exactly the result of resampling the rows, much faster: counts are integers, and sums of
integers are exact in floating point. Seed and number of clusters determine the draws, so all statistics of the same
clusters are resampled together (paired).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import special

from auditor.stats.intervals import Floats, t_quantile

#: Above this many clusters the normal limit replaces the multinomial draw; the difference is negligible.
EXACT_CLUSTERS: Final = 5000
#: Draws in memory at once (about 0.3 GB with their weights); more draws are made in parts, with the same result.
HELD_DRAWS: Final = 12_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Bootstrap:
    """Replicates of a statistic and their interval."""

    replicates: Floats  #: shape [B, ...]
    low: Floats
    high: Floats


def cluster_draws(n_clusters: int, n_boot: int, seed: int) -> NDArray[np.int64]:
    """Draw the clusters of each replicate, with replacement.

    Returns
    -------
    ndarray
        Shape [B, S], values in [0, S). The same for the same (seed, n_clusters).
    """
    return _draw(np.random.default_rng([seed, n_clusters]), n_boot, n_clusters)


def _draw(rng: np.random.Generator, n_boot: int, n_clusters: int) -> NDArray[np.int64]:
    return rng.integers(0, n_clusters, size=(n_boot, n_clusters), dtype=np.int64)


def draw_weights(draws: NDArray[np.int64], n_clusters: int) -> Floats:
    """Count how often each replicate drew each cluster.

    Returns
    -------
    ndarray
        Shape [B, S]; rows sum to the number of draws.

    Examples
    --------
    >>> draw_weights(np.array([[0, 0, 2]]), 3).tolist()
    [[2.0, 0.0, 1.0]]
    """
    n_boot = len(draws)
    offset = np.arange(n_boot, dtype=np.int64)[:, None] * n_clusters
    flat = np.bincount((draws + offset).ravel(), minlength=n_boot * n_clusters)
    return flat.reshape(n_boot, n_clusters).astype(np.float64)


def bootstrap_totals(counts: Floats, n_boot: int, seed: int) -> Floats:
    """Compute the totals of each column over resampled clusters.

    Parameters
    ----------
    counts
        Shape [S, K]: sufficient statistics by cluster.
    n_boot
        Replicates B.
    seed
        Seed of the draws.

    Returns
    -------
    ndarray
        Shape [B, K]. Above ``EXACT_CLUSTERS`` clusters, draws of the totals' normal limit.
    """
    clusters, columns = counts.shape
    if clusters > EXACT_CLUSTERS:
        rng = np.random.default_rng([seed, clusters])
        centred = counts - counts.mean(axis=0)
        values, vectors = np.linalg.eigh(centred.T @ centred)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        noise: Floats = counts.sum(axis=0) + rng.standard_normal((n_boot, columns)) @ root.T
        return noise
    if clusters * n_boot <= HELD_DRAWS:
        totals: Floats = _shared_weights(clusters, n_boot, seed) @ counts
        return totals
    rng = np.random.default_rng([seed, clusters])
    step = max(1, HELD_DRAWS // clusters)
    sizes = [min(step, n_boot - start) for start in range(0, n_boot, step)]
    return np.concatenate([draw_weights(_draw(rng, size, clusters), clusters) @ counts for size in sizes])


@lru_cache(maxsize=4)
def _shared_weights(n_clusters: int, n_boot: int, seed: int) -> Floats:
    weights = draw_weights(cluster_draws(n_clusters, n_boot, seed), n_clusters)
    weights.flags.writeable = False
    return weights


def rate_replicates(successes: Floats, trials: Floats, *, n_boot: int, seed: int) -> tuple[Floats, Floats]:
    """Compute the rates of several conditions over the same clusters, and their paired replicates.

    Parameters
    ----------
    successes, trials
        Shape [S, C]: by cluster and condition; each condition has trials.
    n_boot, seed
        Replicates B, and seed of the draws.

    Returns
    -------
    (ndarray, ndarray)
        Shapes [C] and [B, C]. A condition without a trial in a replicate keeps its observed rate.
    """
    conditions = successes.shape[1]
    rates = successes.sum(axis=0) / trials.sum(axis=0)
    totals = bootstrap_totals(np.hstack([successes, trials]), n_boot, seed)
    with np.errstate(invalid="ignore", divide="ignore"):
        replicates = totals[:, :conditions] / totals[:, conditions:]
    return rates, np.where(np.isfinite(replicates), replicates, rates)


def expanded_tail(n_clusters: float, conf: float = 0.95) -> float:
    """Return the tail of a percentile interval, expanded for few clusters (Hesterberg 2015, section 5.3).

    The bootstrap's spread is too small by ``sqrt((G - 1) / G)``, and it uses no t quantile; the tail becomes
    ``Phi(-sqrt(G / (G - 1)) t(G - 1))``.

    >>> round(expanded_tail(10), 4), round(expanded_tail(1000), 4)
    (0.0086, 0.0248)
    """
    return float(special.ndtr(-np.sqrt(n_clusters / (n_clusters - 1)) * t_quantile(conf, n_clusters - 1)))


def expanded_percentile(replicates: Floats, n_clusters: int, conf: float = 0.95) -> tuple[Floats, Floats]:
    """Compute the percentile interval with the tails of ``expanded_tail``.

    Parameters
    ----------
    replicates
        Shape [B, ...].
    n_clusters
        G, at least 2.
    conf
        Two-sided level.

    Returns
    -------
    (ndarray, ndarray)
        Lower and upper bounds, shape [...].
    """
    tail = expanded_tail(n_clusters, conf)
    low, high = np.quantile(replicates, [tail, 1 - tail], axis=0)
    return low, high


def cluster_bootstrap(
    counts: Floats, statistic: Callable[[Floats], Floats], *, n_boot: int = 2000, seed: int, conf: float = 0.95
) -> Bootstrap:
    """Bootstrap any statistic of column totals over clusters.

    Parameters
    ----------
    counts
        Shape [S, K]: sufficient statistics by cluster, S at least 2.
    statistic
        Totals [B, K] to values [B, ...].
    n_boot, seed, conf
        Replicates, seed of the draws, two-sided level.

    Returns
    -------
    Bootstrap
        Replicates and their expanded percentile interval.

    Examples
    --------
    Clusters that all agree leave nothing to vary.

    >>> out = cluster_bootstrap(np.tile([1.0, 4.0], (20, 1)), lambda t: t[:, 0] / t[:, 1], n_boot=50, seed=0)
    >>> float(out.low), float(out.high)
    (0.25, 0.25)
    """
    replicates = statistic(bootstrap_totals(counts, n_boot, seed))
    low, high = expanded_percentile(replicates, len(counts), conf)
    return Bootstrap(replicates=replicates, low=np.asarray(low), high=np.asarray(high))
