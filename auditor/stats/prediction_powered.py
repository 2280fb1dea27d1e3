"""Correct what a machine measured on all responses by people's labels of a sample: prediction-powered inference.

Angelopoulos, Bates, Fannjiang, Jordan & Zrnic, "Prediction-powered inference", Science 382 (2023), for the estimator;
Angelopoulos, Duchi & Zrnic, "PPI++: efficient prediction-powered inference" (arXiv:2311.01453) for its power;
Sarndal, Swensson & Wretman, "Model assisted survey sampling" (1992), chapter 6, for unequal inclusion probabilities.

The estimate is of the *people's* rate, whatever the machine does. A good machine only makes the interval narrower.
"""

from dataclasses import dataclass, replace
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
    human: Floats  #: 1 is counted, 0 is not; a share if several people labelled it
    machine: Floats  #: the machine's label of the same response, 0 or 1
    weight: Floats  #: one over the inclusion probability, up to a common factor; > 0


@dataclass(frozen=True, kw_only=True, slots=True)
class PredictionPowered:
    """A corrected rate, difference or ratio."""

    value: float  #: in [0, 1], a difference in [-1, 1]
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
    with Student's t by the number of labelled clusters. ``tests/bench/test_prediction_powered.py`` prints their
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
    mean = _mean_of(endorsed, n, labelled)
    used = _best_power(mean.alone, mean.shift) if power is None else power
    value = _clipped(mean.at(used))
    return _powered(value, mean.alone - used * mean.shift, labelled, used, conf, _unseen(labelled))


def prediction_powered_difference(
    d: Floats, n: Floats, labelled: LabelledSample, *, power: float | None = None, conf: float = 0.95
) -> PredictionPowered:
    """Estimate the mean of a variable in {-1, 0, 1} that people would find, such as DNI.

    It is ``prediction_powered_rate`` of ``(1 + d) / 2``, with another allowance for rare events: two more labels of
    mean weight, one in each direction. Without it, the interval covers .92 where 2 % of the responses are not 0.

    Parameters
    ----------
    d, n
        Shape [S]: the machine's signed sum, and all responses, by cluster, ``|d| <= n``.
    labelled
        The sample, with ``human`` and ``machine`` in [-1, 1].
    power, conf
        The same as in ``prediction_powered_rate``.

    Returns
    -------
    PredictionPowered
        Value and bounds in [-1, 1].

    Raises
    ------
    ValueError
        There are no responses, or no labels.

    Examples
    --------
    >>> sample = LabelledSample(cluster=np.arange(10), human=np.repeat([1.0, 0, -1], [2, 6, 2]),
    ...                   machine=np.repeat([1.0, 0, -1], [2, 4, 4]), weight=np.ones(10))
    >>> out = prediction_powered_difference(np.full(10, -2.0), np.full(10, 10.0), sample, power=1)
    >>> round(out.value, 9)
    0.0
    """
    halved = replace(labelled, human=(1 + labelled.human) / 2, machine=(1 + labelled.machine) / 2)
    mean = _mean_of((n + d) / 2, n, halved)
    used = _best_power(mean.alone, mean.shift) if power is None else power
    both_ways = 2 * float(labelled.weight @ labelled.weight / labelled.weight.sum() ** 2) ** 2
    unseen = max(_unseen(labelled), both_ways) / 4
    scaled = _powered(_clipped(mean.at(used)), mean.alone - used * mean.shift, halved, used, conf, unseen)
    return replace(scaled, value=2 * scaled.value - 1, low=2 * scaled.low - 1, high=2 * scaled.high - 1)


def prediction_powered_ratio(
    tops: Floats,
    bases: Floats,
    n: Floats,
    top: LabelledSample,
    base: LabelledSample,
    *,
    power: float | None = None,
    conf: float = 0.95,
) -> PredictionPowered | None:
    """Estimate the ratio of two rates that people would find, such as IR over union: a share of a random base.

    Both rates are corrected with the same power, and their ratio is linearised: the error of a cluster is
    ``(error of the top - ratio x error of the base) / base`` (delta method).

    Parameters
    ----------
    tops, bases, n
        Shape [S]: responses that the machine counts in the top, in the base, and all responses, by cluster,
        ``0 <= tops <= bases <= n``.
    top, base
        The sample's labels for both rates: the same responses in the same order.
    power, conf
        The same as in ``prediction_powered_rate``.

    Returns
    -------
    PredictionPowered or None
        None if people find no response in the base. ``n_clusters`` counts clusters with a label in the base.

    Raises
    ------
    ValueError
        There are no responses, or no labels.

    Examples
    --------
    People find 2 of 4 where the machine finds 3 of 4, everywhere as in the sample: people's ratio is left.

    >>> marks = dict(cluster=np.arange(8), weight=np.ones(8))
    >>> top = LabelledSample(human=np.repeat([1.0, 0], [2, 6]), machine=np.repeat([1.0, 0], [3, 5]), **marks)
    >>> base = LabelledSample(human=np.repeat([1.0, 0], [4, 4]), machine=np.repeat([1.0, 0], [4, 4]), **marks)
    >>> out = prediction_powered_ratio(top.machine * 2, base.machine * 2, np.full(8, 2.0), top, base)
    >>> round(out.value, 9), out.n_clusters
    (0.5, 4)
    """
    upper, lower = _mean_of(tops, n, top), _mean_of(bases, n, base)
    if lower.human <= 0:
        return None
    first = upper.human / lower.human
    alone, shift = (upper.alone - first * lower.alone), (upper.shift - first * lower.shift)
    used = _best_power(alone, shift) if power is None else power
    if lower.at(used) <= 0:
        used = 0.0
    size = lower.at(used)
    value = _clipped(upper.at(used) / size)
    error = (upper.alone - used * upper.shift - value * (lower.alone - used * lower.shift)) / size
    inside = replace(base, cluster=base.cluster[base.human > 0])
    return _powered(value, error, inside, used, conf, _unseen(base) / size**2)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Mean:
    """One mean by people and by the machine, with the linearised errors by cluster, shape [S]."""

    human: float  #: people's, over the sample
    seen: float  #: the machine's, over the sample
    everywhere: float  #: the machine's, over all
    alone: Floats  #: error of ``human``
    shift: Floats  #: error of ``seen - everywhere``

    def at(self, power: float) -> float:
        """Return the corrected mean."""
        return self.human + power * (self.everywhere - self.seen)


def _mean_of(endorsed: Floats, n: Floats, labelled: LabelledSample) -> _Mean:
    total, weight = float(n.sum()), float(labelled.weight.sum())
    if total <= 0 or weight <= 0:
        raise ValueError("no responses" if total <= 0 else "no labels")
    human = float(labelled.weight @ labelled.human) / weight
    seen = float(labelled.weight @ labelled.machine) / weight
    everywhere = float(endorsed.sum()) / total
    seen_error = _by_cluster(labelled, labelled.machine - seen, len(n)) / weight
    return _Mean(
        human=human,
        seen=seen,
        everywhere=everywhere,
        alone=_by_cluster(labelled, labelled.human - human, len(n)) / weight,
        shift=seen_error - (endorsed - everywhere * n) / total,
    )


def _by_cluster(labelled: LabelledSample, each: Floats, clusters: int) -> Floats:
    return np.bincount(labelled.cluster, weights=labelled.weight * each, minlength=clusters).astype(np.float64)


def _clipped(value: float) -> float:
    # Rounded, so that a sum of weights that differs from 1 in its last digit is 1.
    return min(1.0, max(0.0, round(value, 12)))


def _best_power(alone: Floats, shift: Floats) -> float:
    """Minimise the variance of ``alone - power * shift`` within [0, 1] (PPI++'s power tuning, with clusters)."""
    spread = float(shift @ shift)
    return min(1.0, max(0.0, float(alone @ shift) / spread)) if spread > 0 else 0.0


def _unseen(labelled: LabelledSample) -> float:
    """Return the variance that one more label of the largest weight adds to a rate, if it contradicts half the time."""
    return UNSEEN * float(labelled.weight.max() / labelled.weight.sum()) ** 2


def _powered(
    value: float, error: Floats, labelled: LabelledSample, power: float, conf: float, unseen: float
) -> PredictionPowered:
    """Add the bounds to a value in [0, 1]; ``unseen`` is the variance for what no label shows."""
    clusters = len(np.unique(labelled.cluster))
    if clusters <= FITTED:
        return PredictionPowered(value=value, low=0.0, high=1.0, power=power, n_clusters=clusters)
    bounds = _bounds(value, error, unseen, clusters, conf)
    low, high = min(bounds.low, value), max(bounds.high, value)
    return PredictionPowered(value=value, low=low, high=high, power=power, n_clusters=clusters)


def _bounds(value: float, error: Floats, unseen: float, clusters: int, conf: float) -> Interval:
    if value in {0.0, 1.0}:
        return design_effect_wilson(np.full(clusters, value), np.ones(clusters), conf)
    variance = clusters / (clusters - FITTED) * float(error @ error) + unseen
    return on_logit_scale(value, float(np.sqrt(variance)), t_quantile(conf, clusters - FITTED))
