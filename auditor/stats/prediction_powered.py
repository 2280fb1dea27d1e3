"""Correct a rate that a machine measured on all responses by people's labels of a sample: prediction-powered inference.

Angelopoulos, Bates, Fannjiang, Jordan & Zrnic, "Prediction-powered inference", Science 382 (2023), for the estimator;
Angelopoulos, Duchi & Zrnic, "PPI++: efficient prediction-powered inference" (arXiv:2311.01453) for its power;
Sarndal, Swensson & Wretman, "Model assisted survey sampling" (1992), chapter 6, for unequal inclusion probabilities.

The estimate is of the *people's* rate, whatever the machine does. A good machine only makes the interval narrower.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from auditor.stats.intervals import Floats, Interval, design_effect_wilson, on_logit_scale, t_quantile

#: Degrees of freedom that are used: one by the power, which is fitted to the labels, and one by the mean.
FITTED: Final = 2
#: One more label of the largest weight, which contradicts the machine half of the time. Otherwise rare errors that no
#: label shows would make the interval too short.
UNSEEN: Final = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelledSample:
    """People's labels of a sample of the responses; all arrays have the shape [n]."""

    cluster: NDArray[np.int64]  #: in [0, S)
    human: Floats  #: 1 endorses, 0 does not; a share if several people labelled it
    machine: Floats  #: the machine's label of the same response, 0 or 1
    weight: Floats  #: one over the inclusion probability, up to a common factor; > 0


@dataclass(frozen=True, kw_only=True, slots=True)
class PredictionPowered:
    """A corrected rate."""

    value: float  #: in [0, 1]
    low: float
    high: float
    power: float  #: in [0, 1]: the weight of the machine's labels; 0 uses the human labels alone
    n_clusters: int  #: clusters with a label


def prediction_powered_rate(
    endorsed: Floats, n: Floats, labelled: LabelledSample, *, power: float | None = None, conf: float = 0.95
) -> PredictionPowered:
    """Estimate the rate that people would find if they labelled every response.

    ``value = mean_w(Y) + power * (mean(f) - mean_w(f))``: people's rate on the sample, plus the difference between the
    machine's rate over all responses and over the sample. The error is linearised over clusters, with both parts of a
    cluster together, so labels may be few or many, and spread unevenly. The bounds are symmetric on the logit scale,
    with Student's t by the number of labelled clusters. ``tests/benchmarks/test_prediction_powered.py`` prints their
    coverage.

    Parameters
    ----------
    endorsed, n
        Shape [S]: responses that the machine reads as endorsing, and all responses, by cluster, ``0 <= f <= n``.
    labelled
        The sample; each of its responses is also counted in ``n``.
    power
        The weight of the machine's labels. ``None`` minimises the error, so that a useless machine has no weight; 0
        uses the human labels alone.
    conf
        Two-sided level.

    Returns
    -------
    PredictionPowered
        With at most ``FITTED`` labelled clusters the bounds are 0 and 1, because the spread is unknown.

    Raises
    ------
    ValueError
        There are no responses, or no labels.

    Examples
    --------
    The machine says 40 %, and 30 % on the sample, where people say 20 %: followed fully, 30 % is left.

    >>> sample = LabelledSample(cluster=np.arange(10), human=np.repeat([1.0, 0], [2, 8]),
    ...                   machine=np.repeat([1.0, 0], [3, 7]), weight=np.ones(10))
    >>> out = prediction_powered_rate(np.full(10, 4.0), np.full(10, 10.0), sample, power=1)
    >>> round(out.value, 9), out.n_clusters
    (0.3, 10)
    """
    total, weight = float(n.sum()), float(labelled.weight.sum())
    if total <= 0 or weight <= 0:
        raise ValueError("no responses" if total <= 0 else "no labels")
    human = float(labelled.weight @ labelled.human) / weight
    seen = float(labelled.weight @ labelled.machine) / weight
    everywhere = float(endorsed.sum()) / total
    alone = _by_cluster(labelled, labelled.human - human, len(n)) / weight
    shift = _by_cluster(labelled, labelled.machine - seen, len(n)) / weight - (endorsed - everywhere * n) / total
    used = _best_power(alone, shift) if power is None else power
    # Rounded, so that a sum of weights that differs from 1 in its last digit is 1.
    value = min(1.0, max(0.0, round(human + used * (everywhere - seen), 12)))
    clusters = len(np.unique(labelled.cluster))
    if clusters <= FITTED:
        return PredictionPowered(value=value, low=0.0, high=1.0, power=used, n_clusters=clusters)
    heaviest = float(labelled.weight.max()) / weight
    bounds = _bounds(value, alone - used * shift, heaviest, clusters, conf)
    low, high = min(bounds.low, value), max(bounds.high, value)
    return PredictionPowered(value=value, low=low, high=high, power=used, n_clusters=clusters)


def _by_cluster(labelled: LabelledSample, each: Floats, clusters: int) -> Floats:
    return np.bincount(labelled.cluster, weights=labelled.weight * each, minlength=clusters).astype(np.float64)


def _best_power(alone: Floats, shift: Floats) -> float:
    """Minimise the variance of ``alone - power * shift`` within [0, 1] (PPI++'s power tuning, with clusters)."""
    spread = float(shift @ shift)
    return min(1.0, max(0.0, float(alone @ shift) / spread)) if spread > 0 else 0.0


def _bounds(value: float, error: Floats, heaviest: float, clusters: int, conf: float) -> Interval:
    if value in {0.0, 1.0}:
        return design_effect_wilson(np.full(clusters, value), np.ones(clusters), conf)
    variance = clusters / (clusters - FITTED) * float(error @ error) + UNSEEN * heaviest**2
    return on_logit_scale(value, float(np.sqrt(variance)), t_quantile(conf, clusters - FITTED))
