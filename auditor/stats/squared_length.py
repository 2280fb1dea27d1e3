"""The squared length of a vector that was measured with noise: on average it is too large by the noise's own.

A share of variance is such a length, and where there is no effect it is nothing but noise. Taken as it is, the
bootstrap adds noise to noise; its percentiles exclude 0 for certain.
"""

import numpy as np
from scipy import special

from auditor.stats.intervals import Floats, Interval, t_quantile


def squared_length_interval(vector: Floats, replicates: Floats, n_clusters: int, conf: float = 0.95) -> Interval:
    """Bound the squared length of the true vector.

    Each replicate tells one noise. The true length is the one that, in the measured direction and with that noise
    added, has the measured length; where the noise alone is as long, it may be 0. The bounds are percentiles of these
    lengths, their tails moved out for few clusters as in ``bootstrap.expanded_percentile``. Noise is skewed, so it is
    added and taken off, and the wider bounds hold.

    Parameters
    ----------
    vector
        Shape [r].
    replicates
        Shape [B, r]: paired bootstrap replicates of the vector.
    n_clusters
        G, at least 2.
    conf
        Two-sided level.

    Returns
    -------
    Interval
        Not below 0; it contains the measured squared length. The lower bound is 0 in about ``(1 + conf) / 2`` of
        samples whose true vector is 0.

    Examples
    --------
    Without noise the length is known.

    >>> squared_length_interval(np.array([0.3, 0.4]), np.tile([0.3, 0.4], (20, 1)), 100)
    Interval(low=0.25, high=0.25)
    """
    noise = (replicates - vector) * np.sqrt(n_clusters / (n_clusters - 1))
    length = float(np.linalg.norm(vector))
    # A vector of no length has no direction: the noise's own main one stands in.
    direction = vector / length if length > 0 else np.linalg.svd(noise, full_matrices=False)[2][0]
    tail = float(special.ndtr(-np.sqrt(n_clusters / (n_clusters - 1)) * t_quantile(conf, n_clusters - 1)))
    excess, along = (noise**2).sum(axis=1) - length**2, noise @ direction
    bounds = [_length_bounds(sign * along, excess, tail) for sign in (1, -1)]
    low, high = min(low for low, _ in bounds), max(high for _, high in bounds)
    return Interval(low=min(low, length) ** 2, high=max(high, length) ** 2)


def _length_bounds(along: Floats, excess: Floats, tail: float) -> tuple[float, float]:
    """Solve ``|f u + e| = |v|``, which is ``f^2 + 2 f along + excess = 0``, for the larger f, or the nearest."""
    lengths = np.maximum(np.sqrt(np.maximum(along**2 - excess, 0)) - along, 0)
    low = float(np.quantile(np.where(excess < 0, lengths, 0.0), tail))
    return low, float(np.quantile(lengths, 1 - tail))
