"""Measures averaged over deployments, each of the same weight; the pooled ones beside them are sums of responses."""

from collections.abc import Mapping, Sequence

from auditor.analysis.across import OTHER_PANELS
from auditor.analysis.document import Json, estimate_json
from auditor.analysis.grid import Grid, rubric_profiles
from auditor.analysis.groups import NO_CLAIM
from auditor.analysis.tallies import Tallies
from auditor.domain.estimate import Estimate, Insufficient
from auditor.metrics.joint import JointTable
from auditor.metrics.means import unweighted_mean
from auditor.metrics.rates import METRICS, Metric


def means(tallies: Tallies, *, panel_differs: bool, seed: int, n_boot: int) -> list[Json]:
    """Write the entries of ``means``: every measure, averaged over the deployments of a rubric (BiAxisAudit App. B)."""
    out: list[Json] = []
    for rubric in sorted({profile.rubric for profile in tallies.profiles}):
        profiles = rubric_profiles(tallies, rubric)
        grid = Grid.of(tallies, profiles)
        tables = grid.tables(range(len(grid.conditions)))
        claimed = all(tallies.profiles[index].has_claim for index in profiles)
        metrics: dict[str, Json] = {
            metric.name: estimate_json(
                average(metric, tables, panel_differs=panel_differs, seed=seed, n_boot=n_boot)
                if claimed or not metric.endorsement
                else NO_CLAIM
            )
            for metric in METRICS
        }
        out.append({"rubric": rubric, "n_deployments": len(tables), "metrics": metrics})
    return out


def average(
    metric: Metric, tables: Mapping[str, JointTable], *, panel_differs: bool, seed: int, n_boot: int
) -> Estimate | Insufficient:
    """Average a measure over deployments that one panel has read.

    Other panels are other instruments: an average over them would be of nothing.
    """
    if panel_differs and len(tables) > 1:
        return OTHER_PANELS
    return unweighted_mean(metric, tables, seed=seed, n_boot=n_boot)


def joined(tables: Sequence[JointTable]) -> JointTable:
    """Add tables over the same statements."""
    first, *rest = tables
    for table in rest:
        first += table
    return first
