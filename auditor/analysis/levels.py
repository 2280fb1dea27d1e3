"""Rates by level of each prompt factor, the others at the baseline (BiAxisAudit Tables IX, X, XII; Figures 1, 9)."""

from collections.abc import Sequence

from auditor.analysis.averages import average, joined
from auditor.analysis.document import CONDITION_METRICS, Json, coverage_json, estimate_json
from auditor.analysis.grid import Grid
from auditor.analysis.tallies import Tallies
from auditor.metrics.bounds import coverage
from auditor.metrics.estimate import estimate
from auditor.metrics.rates import BY_NAME
from auditor.metrics.shares import FACTORS, Levels, level_order, own_slice


def in_order(conditions: Sequence[Levels], factor: int) -> list[int]:
    """Find a factor's own slice, in the instrument's order; levels of one's own come last, by name."""
    return sorted(
        own_slice(conditions, factor), key=lambda index: level_order(FACTORS[factor], conditions[index][factor])
    )


def levels(tallies: Tallies, profiles: Sequence[int], *, panel_differs: bool, seed: int, n_boot: int) -> list[Json]:
    """Write the entries of ``levels`` for some profiles of one rubric.

    Each level has the mean of the deployments that were asked, and all their responses pooled. The baseline stands in
    every factor's slice.
    """
    grid = Grid.of(tallies, profiles)
    known: dict[int, dict[str, Json]] = {}
    out: list[Json] = []
    for factor, name in enumerate(FACTORS):
        for index in in_order(grid.conditions, factor):
            if index not in known:
                known[index] = _level(grid, index, panel_differs=panel_differs, seed=seed, n_boot=n_boot)
            rubric = tallies.profiles[profiles[0]].rubric
            out.append({"rubric": rubric, "factor": name, "level": grid.conditions[index][factor], **known[index]})
    return out


def _level(grid: Grid, condition: int, *, panel_differs: bool, seed: int, n_boot: int) -> dict[str, Json]:
    tables = grid.tables([condition])
    pooled = joined(list(tables.values()))
    metrics = [BY_NAME[name] for name in CONDITION_METRICS]
    return {
        "n_deployments": len(tables),
        "n": pooled.n,
        "coverage": coverage_json(coverage(pooled.totals)),
        "metrics": {
            metric.name: estimate_json(average(metric, tables, panel_differs=panel_differs, seed=seed, n_boot=n_boot))
            for metric in metrics
        },
        "pooled": {metric.name: estimate_json(estimate(metric, pooled, seed=seed)) for metric in metrics},
    }
