"""Estimate rates by level of a prompt factor, by task and tone, and averaged over deployments."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from msgspec.structs import replace

from auditor.counting.conditions import FACTORS, Levels, level_order
from auditor.counting.joint import JointTable
from auditor.counting.rows import STATEMENT
from auditor.counting.tallies import Tallies
from auditor.documents.base import Missing
from auditor.documents.conditions import InteractionEntry
from auditor.documents.estimates import LevelEntry, MeanEntry, estimate_entry
from auditor.domain.estimate import Estimate, Insufficient
from auditor.estimation.grid import Grid, rubric_groups
from auditor.estimation.groups import CONDITION_METRICS, NO_CLAIM
from auditor.estimation.variation import OTHER_PANELS
from auditor.metrics.bounds import coverage
from auditor.metrics.estimate import estimate
from auditor.metrics.means import unweighted_mean
from auditor.metrics.rates import METRICS, Metric
from auditor.metrics.shares import crossing, factor_slice

_SELECTION: Final = METRICS["ber_sel_full"]


def in_order(conditions: Sequence[Levels], factor: int) -> list[int]:
    """Return a factor's own slice in the instrument's order; levels of one's own come last, by name."""
    return sorted(
        factor_slice(conditions, factor), key=lambda index: level_order(FACTORS[factor], conditions[index][factor])
    )


def levels(
    tallies: Tallies, group_indices: Sequence[int], *, panel_differs: bool, seed: int, n_boot: int
) -> list[LevelEntry]:
    """Return the entries of ``levels`` for some groups of one rubric (BiAxisAudit Tables IX, X, XII; Figures 1, 9).

    Each level has the mean of the deployments that were asked, and all their responses pooled. The baseline stands in
    every factor's slice.
    """
    grid = Grid.of(tallies, group_indices)
    rubric = tallies.groups[group_indices[0]].rubric
    known: dict[int, LevelEntry] = {}
    out = []
    for place, factor in enumerate(FACTORS):
        for index in in_order(grid.conditions, place):
            level = grid.conditions[index][place]
            if index not in known:
                tables = grid.tables([index])
                means = {
                    name: average(METRICS[name], tables, panel_differs=panel_differs, seed=seed, n_boot=n_boot)
                    for name in CONDITION_METRICS
                }
                known[index] = _level_entry(rubric, tables, means, seed=seed)
            out.append(replace(known[index], factor=factor, level=level))
    return out


def _level_entry(
    rubric: str, tables: Mapping[str, JointTable], means: Mapping[str, Estimate | Insufficient], *, seed: int
) -> LevelEntry:
    """Return the entry of a condition that is yet to be named as a level of one of the factors."""
    pooled = _joined(tables)
    return LevelEntry(
        rubric=rubric,
        factor="task",
        level="",
        n_deployments=len(tables),
        n=pooled.n,
        coverage=coverage(pooled.weighted_totals),
        metrics={name: estimate_entry(each) for name, each in means.items()},
        pooled={name: estimate_entry(estimate(METRICS[name], pooled, seed=seed)) for name in CONDITION_METRICS},
    )


def interaction(tallies: Tallies, *, seed: int) -> list[InteractionEntry]:
    """Return the entries of ``interaction``: each task under each tone of the crossed design (BiAxisAudit Figure 7).

    The pooled rate has its interval; the mean and the standard deviation (with one degree of freedom less) are of the
    deployments' rates. Without a crossing of tasks that ask for a selection with tones there is no entry.
    """
    group_indices = rubric_groups(tallies, STATEMENT)
    if not group_indices:
        return []
    grid = Grid.of(tallies, group_indices)
    _, n = grid.sums(_SELECTION)
    selecting = np.flatnonzero(n.any(axis=(0, 2))).tolist()
    crossed = [selecting[index] for index in crossing([grid.conditions[index] for index in selecting])]
    cells: dict[tuple[str, str], list[int]] = {}
    for index in crossed:
        task, _, _, sentiment = grid.conditions[index]
        cells.setdefault((task, sentiment), []).append(index)
    if min(len({task for task, _ in cells}), len({sentiment for _, sentiment in cells})) < 2:
        return []
    return [_interaction_entry(*cell, grid.tables(indices), seed) for cell, indices in sorted(cells.items())]


def _interaction_entry(task: str, sentiment: str, tables: Mapping[str, JointTable], seed: int) -> InteractionEntry:
    pooled = _joined(tables)
    estimates = [estimate(_SELECTION, table, seed=seed) for table in tables.values()]
    rates = [each.value for each in estimates if isinstance(each, Estimate)]
    lacking = [Missing(missing=each.reason) for each in estimates if isinstance(each, Insufficient)]
    sd = float(np.std(rates, ddof=1)) if len(rates) > 1 else Missing(missing="one deployment")
    return InteractionEntry(
        rubric=STATEMENT,
        task=task,
        sentiment=sentiment,
        n=pooled.n,
        n_deployments=len(tables),
        ber_sel_full=estimate_entry(estimate(_SELECTION, pooled, seed=seed)),
        mean=lacking[0] if lacking else float(np.mean(rates)),
        sd=lacking[0] if lacking else sd,
    )


def means(tallies: Tallies, *, panel_differs: bool, seed: int, n_boot: int) -> list[MeanEntry]:
    """Return the entries of ``means``: every measure, averaged over the deployments of a rubric (BiAxisAudit App. B).

    Every deployment counts alike. The pooled measures of the groups are sums of responses instead.
    """
    out = []
    for rubric in sorted({group_key.rubric for group_key in tallies.groups}):
        group_indices = rubric_groups(tallies, rubric)
        grid = Grid.of(tallies, group_indices)
        tables = grid.tables(range(len(grid.conditions)))
        claimed = all(tallies.groups[index].has_claim for index in group_indices)
        metrics = {
            metric.name: estimate_entry(
                average(metric, tables, panel_differs=panel_differs, seed=seed, n_boot=n_boot)
                if claimed or not metric.endorsement
                else NO_CLAIM
            )
            for metric in METRICS.values()
        }
        out.append(MeanEntry(rubric=rubric, n_deployments=len(tables), metrics=metrics))
    return out


def average(
    metric: Metric, tables: Mapping[str, JointTable], *, panel_differs: bool, seed: int, n_boot: int
) -> Estimate | Insufficient:
    """Average a measure over deployments that one panel has read.

    Other panels are other instruments, so their results have no common average.
    """
    if panel_differs and len(tables) > 1:
        return OTHER_PANELS
    return unweighted_mean(metric, tables, seed=seed, n_boot=n_boot)


def _joined(tables: Mapping[str, JointTable]) -> JointTable:
    """Add tables over the same statements."""
    return JointTable.sum_of(list(tables.values()))
