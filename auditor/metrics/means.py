"""Average a measure over deployments, each with the same weight.

The paper treats this and the pooled value as one. The pooled value is ``estimate`` of the summed table.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from auditor.counting.joint import Floats, JointTable
from auditor.domain.estimate import Estimate, Insufficient
from auditor.metrics.estimate import ENOUGH_STATEMENTS, LOW_RATE, estimate, rate_flags
from auditor.metrics.rates import METRICS, Metric
from auditor.stats.bootstrap import expanded_percentile, rate_replicates
from auditor.stats.intervals import Interval, rare_rate_bounds


def unweighted_mean(
    metric: Metric, tables: Mapping[str, JointTable], *, n_boot: int = 2000, seed: int = 0, conf: float = 0.95
) -> Estimate | Insufficient:
    """Average a measure over deployments, each of the same weight (BiAxisAudit Appendix B: "averages").

    The interval is for these deployments over other statements. It is a paired bootstrap of statements, or the bounds
    for rare rates if the mean is rare.

    Parameters
    ----------
    metric
        An entry of ``rates.METRICS``.
    tables
        Joint tables by deployment, over the same clusters.
    n_boot, seed, conf
        Replicates, seed of the draws, two-sided level.

    Returns
    -------
    Estimate or Insufficient
        Insufficient if any deployment's measure is: a mean over the others would be another quantity.

    Raises
    ------
    ValueError
        For no deployment, or tables over different clusters.

    Examples
    --------
    Rates of .2 of 100 and of .6 of 300 responses: their mean is .4, the pooled rate .5.

    >>> def of(e, d):
    ...     cells = np.repeat(np.array([0, 19]), [e, d])
    ...     return JointTable.from_cells(np.arange(e + d) % 100, cells, 100)
    >>> tables = {"a": of(20, 80), "b": of(180, 120)}
    >>> round(unweighted_mean(METRICS["ber_sel"], tables).value, 9)
    0.4
    >>> estimate(METRICS["ber_sel"], tables["a"] + tables["b"]).value
    0.5
    """
    if len({table.n_clusters for table in tables.values()}) != 1:
        raise ValueError("a mean needs deployments over the same clusters")
    parts = []
    for name, table in tables.items():
        part = estimate(metric, table, seed=seed, conf=conf)
        if isinstance(part, Insufficient):
            return Insufficient(reason=f"{name}: {part.reason}")
        parts.append(part)
    value = float(np.mean([part.value for part in parts]))
    level = _level(METRICS["ir"], tables) if metric.kind == "difference" else value
    rare = min(level, 1 - level) < LOW_RATE
    interval = _rare_bounds(metric, tables, seed, conf) if rare else _percentiles(metric, tables, n_boot, seed, conf)
    statements = min(part.n_statements for part in parts)
    worth = min(part.worth for part in parts)
    return replace(
        parts[0],
        value=value,
        low=min(interval.low, value),
        high=max(interval.high, value),
        method="cluster_bootstrap",
        n=sum(part.n for part in parts),
        n_statements=statements,
        n_effective=None,
        effective_statements=worth if any(part.effective_statements is not None for part in parts) else None,
        flags=rate_flags(level, few=worth < ENOUGH_STATEMENTS),
    )


def _sums(metric: Metric, tables: Mapping[str, JointTable]) -> tuple[Floats, Floats]:
    """Return events and trials by statement and deployment, shape [S, K], without statements that have no trial."""
    y = np.stack([table.by_cluster(metric.numerator) for table in tables.values()], axis=1)
    n = np.stack([table.by_cluster(metric.denominator) for table in tables.values()], axis=1)
    used = n.any(axis=1)
    return y[used], n[used]


def _level(metric: Metric, tables: Mapping[str, JointTable]) -> float:
    y, n = _sums(metric, tables)
    return float(np.mean(y.sum(axis=0) / n.sum(axis=0)))


def _percentiles(metric: Metric, tables: Mapping[str, JointTable], n_boot: int, seed: int, conf: float) -> Interval:
    y, n = _sums(metric, tables)
    _, replicates = rate_replicates(y, n, n_boot=n_boot, seed=seed)
    low, high = expanded_percentile(replicates.mean(axis=1), len(y), conf)
    return Interval(low=float(low), high=float(high))


def _rare_bounds(metric: Metric, tables: Mapping[str, JointTable], seed: int, conf: float) -> Interval:
    """Bound a rare mean; a difference by its two parts, the error shared between them."""
    if metric.kind == "difference":
        parts = [_rare_bounds(METRICS[name], tables, seed, (1 + conf) / 2) for name in ("oed", "ued")]
        return Interval(low=parts[0].low - parts[1].high, high=parts[0].high - parts[1].low)
    y, n = _sums(metric, tables)
    weighted = any(table.weight is not None for table in tables.values())
    # In units of a deployment's base, the ratio of the sums over deployments is the mean of their rates.
    base = n.sum(axis=0)
    size = (n / base).sum(axis=1)
    worst = float(size.max()) if weighted else None
    return rare_rate_bounds((y / base).sum(axis=1), size, conf, seed=seed, worst=worst)
