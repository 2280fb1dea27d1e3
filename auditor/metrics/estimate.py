"""Estimate a measure from a joint table: choose its interval, and give no value below the minimum of statements.

The interval is the one that covers 93-97 % of simulated audits (``tests/bench/test_coverage.py``):

- a rate: design-effect Wilson with t(G - 1); plain Wilson only where each statement gave one response;
- DNI and IR/union: t(G - 1) on the logit scale, where the percentile bootstrap undercovers;
- clusters that were named instead of statements: the same forms with the variance and the degrees of freedom of
  ``auditor.stats.crossed`` (``tests/bench/test_named_clusters.py``);
- under 5 % (or over 95 %), where all of these undercover: a bootstrap with one more statement at the worst value,
  which covers 97 % or more; under 2 % only its bounds may be claimed.

Client traffic is captured with different probabilities. Then each response has the weight one over its probability: a
rate is a ratio of weighted sums (Hajek), with the variance linearised over clusters (Sarndal, Swensson & Wretman 1992,
section 5.7). ``tests/bench/test_traffic_weights.py`` has the coverage.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from auditor.counting.joint import Floats, JointTable
from auditor.domain.estimate import Estimate, Insufficient, IntervalMethod
from auditor.metrics.rates import METRICS, Metric
from auditor.stats.crossed import crossed_rate
from auditor.stats.intervals import (
    ClusterRate,
    Interval,
    SampleWeights,
    cluster_rate,
    difference_of,
    logit_of,
    rare_rate_bounds,
    sample_weights,
    wilson_interval,
    wilson_of,
)

#: Fewer statements than this: no estimate.
MIN_STATEMENTS: Final = 15
#: Fewer statements than this: a t interval, the flag ``few_clusters``, and no finding.
ENOUGH_STATEMENTS: Final = 100
#: Below it (or within it of 1) symmetric intervals undercover: flag ``low_rate`` (``high_rate``), and wider bounds.
LOW_RATE: Final = 0.05
#: Below it (or within it of 1) only bounds are claimed: flag ``bounds_only``.
BOUNDS_RATE: Final = 0.02

FEW_CLUSTERS: Final = "few_clusters"
LOW: Final = "low_rate"
HIGH: Final = "high_rate"
BOUNDS_ONLY: Final = "bounds_only"

_EMPTY: Final = {
    "eligible": "no response has a label on both layers",
    "full": "no response has a label on this layer",
}


def estimate(metric: Metric, table: JointTable, *, seed: int = 0, conf: float = 0.95) -> Estimate | Insufficient:
    """Estimate one measure over a table's statements.

    Parameters
    ----------
    metric
        An entry of ``rates.METRICS``.
    table
        Counts by statement.
    seed
        Seed of the bounds for rare rates; all else is deterministic.
    conf
        Two-sided level.

    Returns
    -------
    Estimate or Insufficient
        Insufficient under ``MIN_STATEMENTS`` statements, or effective responses, in the measure's base, or on an empty
        base.
    """
    sums = _sums(metric, table)
    base = _sums(METRICS["ir"], table) if metric.kind == "ratio" else sums
    statements = int(np.count_nonzero(base.n))
    if statements == 0:
        return Insufficient(reason=_EMPTY[metric.base])
    if statements < MIN_STATEMENTS:
        return Insufficient(reason=f"{statements} statements in the {metric.base} base, {MIN_STATEMENTS} needed")
    if base.effective is not None and base.effective < MIN_STATEMENTS:
        return Insufficient(reason=_too_uneven(metric, base.effective))
    carriers = int(np.count_nonzero(sums.n))
    if carriers < 2:
        return Insufficient(reason="no endorsement on either layer" if carriers == 0 else "one statement endorses")
    value = float(sums.y.sum() / sums.n.sum())
    level = _discordance(table) if metric.kind == "difference" else value
    interval, method = _bounds(metric, table, sums, level, seed=seed, conf=conf)
    worth = carriers if sums.effective is None else min(carriers, sums.effective)
    flags = rate_flags(level, few=worth < ENOUGH_STATEMENTS)
    return Estimate(
        value=value,
        low=min(interval.low, value),
        high=max(interval.high, value),
        base=metric.base,
        method=method,
        n=sums.answers,
        n_statements=statements,
        flags=flags,
        n_effective=None if sums.weights is None else sums.weights.answers,
        effective_statements=base.effective,
    )


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Sums:
    """A measure's events and trials by cluster, shape [S]; with weights they sum to the effective responses."""

    y: Floats
    n: Floats
    answers: int  #: responses in the base
    weights: SampleWeights | None = None  #: None where all responses of the base have the same weight

    @property
    def scale(self) -> float:
        return 1.0 if self.weights is None else self.weights.scale

    @property
    def worst(self) -> float | None:
        return None if self.weights is None else self.weights.heaviest

    @property
    def effective(self) -> float | None:
        """The effective number of responses, or that of statements if it is smaller."""
        return None if self.weights is None else min(self.weights.answers, self.weights.clusters)


def _sums(metric: Metric, table: JointTable) -> _Sums:
    base = table if table.weight is None else table.within(metric.denominator)
    y, n = base.by_cluster(metric.numerator), base.by_cluster(metric.denominator)
    if base.weight is None:
        return _Sums(y=y, n=n, answers=int(n.sum()))
    weights = sample_weights(base.count.astype(np.float64), base.cluster, base.weight)
    return _Sums(y=y * weights.scale, n=n * weights.scale, answers=base.n, weights=weights)


def _too_uneven(metric: Metric, effective: float) -> str:
    return (
        f"{effective:.1f} effective answers in the {metric.base} base, {MIN_STATEMENTS} needed: "
        "few answers with a low inclusion probability stand for most of the traffic"
    )


def dni_interval(table: JointTable, conf: float = 0.90, *, seed: int = 0) -> Interval:
    """Bound DNI at another level, for the equivalence test of the cancellation trap; the base must not be empty."""
    dni = METRICS["dni"]
    return _bounds(dni, table, _sums(dni, table), _discordance(table), seed=seed, conf=conf)[0]


def _discordance(table: JointTable) -> float:
    sums = _sums(METRICS["ir"], table)
    return float(sums.y.sum() / sums.n.sum())


def _bounds(
    metric: Metric, table: JointTable, sums: _Sums, level: float, *, seed: int, conf: float
) -> tuple[Interval, IntervalMethod]:
    if table.clusterings and min(level, 1 - level) >= LOW_RATE:
        return _over_clusterings(metric, table, sums.scale, level, conf)
    return _interval(metric, table, sums, level, seed=seed, conf=conf)


def _interval(
    metric: Metric, table: JointTable, sums: _Sums, level: float, *, seed: int, conf: float
) -> tuple[Interval, IntervalMethod]:
    y, n = sums.y, sums.n
    if min(level, 1 - level) < LOW_RATE:
        if metric.kind == "difference":
            return _rare_difference(table, seed=seed, conf=conf), "cluster_bootstrap"
        return rare_rate_bounds(y, n, conf, seed=seed, worst=sums.worst), "cluster_bootstrap"
    if sums.weights is None and metric.kind == "rate" and n.max() <= 1 and np.count_nonzero(n) >= ENOUGH_STATEMENTS:
        return wilson_interval(float(y.sum()), float(n.sum()), conf), "wilson"
    rate = cluster_rate(y, n)
    if sums.weights is not None:
        rate = replace(rate, df=sums.weights.df)
    return _of_rate(metric, rate, level, conf)


def _of_rate(metric: Metric, rate: ClusterRate, level: float, conf: float) -> tuple[Interval, IntervalMethod]:
    if metric.kind == "difference":
        return difference_of(rate, level * rate.n, conf), "logit_cluster"
    if metric.kind == "ratio":
        return logit_of(rate, conf), "logit_cluster"
    return wilson_of(rate, conf), "design_effect_wilson"


def _over_clusterings(
    metric: Metric, table: JointTable, scale: float, level: float, conf: float
) -> tuple[Interval, IntervalMethod]:
    """Bound a measure over clusters that were named, which may be few, unequal or crossed."""
    y, n = scale * table.by_entry(metric.numerator), scale * table.by_entry(metric.denominator)
    if metric.kind == "difference":
        value = float(y.sum() / n.sum())
        return _of_rate(metric, crossed_rate(y, n, table.clusterings, max(0.0, level - value**2)), level, conf)
    return _of_rate(metric, crossed_rate(y, n, table.clusterings), level, conf)


def _rare_difference(table: JointTable, *, seed: int, conf: float) -> Interval:
    """Bound DNI = OED - UED by bounds of its two parts, with half of the error probability each."""
    parts = []
    for name in ("oed", "ued"):
        sums = _sums(METRICS[name], table)
        parts.append(rare_rate_bounds(sums.y, sums.n, (1 + conf) / 2, seed=seed, worst=sums.worst))
    oed, ued = parts
    return Interval(low=oed.low - ued.high, high=oed.high - ued.low)


def rate_flags(level: float, *, few: bool) -> tuple[str, ...]:
    """Return the warnings of a rate of this level; ``few`` is whether it has few statements."""
    flags = [FEW_CLUSTERS] if few else []
    if level < LOW_RATE:
        flags.append(LOW)
    if level > 1 - LOW_RATE:
        flags.append(HIGH)
    if min(level, 1 - level) < BOUNDS_RATE:
        flags.append(BOUNDS_ONLY)
    return tuple(flags)
