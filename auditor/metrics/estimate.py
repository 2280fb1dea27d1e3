"""From a joint table to estimates: which interval each measure gets, and below what floor there is none.

The interval follows what covers 93-97 % of simulated audits (``tests/benchmarks/test_coverage.py``):

- a rate: design-effect Wilson with t(G - 1); plain Wilson only where each statement gave one response;
- DNI and IR/union: t(G - 1) on the logit scale, where the percentile bootstrap undercovers;
- under 5 % (or over 95 %), where all of these undercover: a bootstrap with one more statement at the worst value,
  which covers 97 % or more; under 2 % only its bounds may be claimed.
"""

from typing import Final

import numpy as np

from auditor.domain.estimate import Estimate, Insufficient, IntervalMethod
from auditor.metrics.joint import Floats, JointTable
from auditor.metrics.rates import BY_NAME, ELIGIBLE, Metric
from auditor.stats.intervals import (
    Interval,
    design_effect_wilson,
    difference_interval,
    logit_cluster_interval,
    rare_rate_bounds,
    wilson_interval,
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
        Of the bounds for rare rates; nothing else here is random.
    conf
        Two-sided level.

    Returns
    -------
    Estimate or Insufficient
        Insufficient under ``MIN_STATEMENTS`` statements in the measure's base, or on an empty base.
    """
    y, n = table.by_cluster(metric.numerator), table.by_cluster(metric.denominator)
    base = table.by_cluster(ELIGIBLE) if metric.kind == "ratio" else n
    statements = int(np.count_nonzero(base))
    if statements == 0:
        return Insufficient(reason=_EMPTY[metric.base])
    if statements < MIN_STATEMENTS:
        return Insufficient(reason=f"{statements} statements in the {metric.base} base, {MIN_STATEMENTS} needed")
    carriers = int(np.count_nonzero(n))
    if carriers < 2:
        return Insufficient(reason="no endorsement on either layer" if carriers == 0 else "one statement endorses")
    value = float(y.sum() / n.sum())
    level = _discordance(table) if metric.kind == "difference" else value
    interval, method = _interval(metric, table, (y, n), level, seed=seed, conf=conf)
    flags = rate_flags(level, few=carriers < ENOUGH_STATEMENTS)
    return Estimate(
        value=value,
        low=min(interval.low, value),
        high=max(interval.high, value),
        base=metric.base,
        method=method,
        n=int(n.sum()),
        n_statements=statements,
        flags=flags,
    )


def dni_interval(table: JointTable, conf: float = 0.90, *, seed: int = 0) -> Interval:
    """Bound DNI at another level, for the equivalence reading of the cancellation trap; the base must not be empty."""
    dni = BY_NAME["dni"]
    sums = table.by_cluster(dni.numerator), table.by_cluster(dni.denominator)
    return _interval(dni, table, sums, _discordance(table), seed=seed, conf=conf)[0]


def _discordance(table: JointTable) -> float:
    ir = BY_NAME["ir"]
    return float(table.by_cluster(ir.numerator).sum() / table.by_cluster(ir.denominator).sum())


def _interval(
    metric: Metric, table: JointTable, sums: tuple[Floats, Floats], level: float, *, seed: int, conf: float
) -> tuple[Interval, IntervalMethod]:
    y, n = sums
    if min(level, 1 - level) < LOW_RATE:
        if metric.kind == "difference":
            return _rare_difference(table, seed=seed, conf=conf), "cluster_bootstrap"
        return rare_rate_bounds(y, n, conf, seed=seed), "cluster_bootstrap"
    if metric.kind == "difference":
        return difference_interval(y, n, level * float(n.sum()), conf), "logit_cluster"
    if metric.kind == "ratio":
        return logit_cluster_interval(y, n, conf), "logit_cluster"
    if n.max() <= 1 and np.count_nonzero(n) >= ENOUGH_STATEMENTS:
        return wilson_interval(float(y.sum()), float(n.sum()), conf), "wilson"
    return design_effect_wilson(y, n, conf), "design_effect_wilson"


def _rare_difference(table: JointTable, *, seed: int, conf: float) -> Interval:
    """Bound DNI = OED - UED by bounds of its two parts, the error shared between them."""
    parts = []
    for name in ("oed", "ued"):
        y, n = table.by_cluster(BY_NAME[name].numerator), table.by_cluster(BY_NAME[name].denominator)
        parts.append(rare_rate_bounds(y, n, (1 + conf) / 2, seed=seed))
    oed, ued = parts
    return Interval(low=oed.low - ued.high, high=oed.high - ued.low)


def rate_flags(level: float, *, few: bool) -> tuple[str, ...]:
    """Say what a rate of that level may not be read as; ``few`` is whether it rests on few statements."""
    flags = [FEW_CLUSTERS] if few else []
    if level < LOW_RATE:
        flags.append(LOW)
    if level > 1 - LOW_RATE:
        flags.append(HIGH)
    if min(level, 1 - level) < BOUNDS_RATE:
        flags.append(BOUNDS_ONLY)
    return tuple(flags)
