"""Make the entries of documents from what is estimated of groups of rows."""

from collections.abc import Sequence

import numpy as np
from msgspec import UNSET

from auditor.counting.joint import label_counts
from auditor.counting.rows import STATEMENT
from auditor.counting.tallies import Tallies
from auditor.documents.analysis import CategoryEntry, PoolEntry
from auditor.documents.base import Missing, or_missing
from auditor.documents.estimates import (
    AbstainEntry,
    ConditionEntry,
    CountsEntry,
    GroupEntry,
    MisreadingEntry,
    estimate_entry,
)
from auditor.domain.estimate import Insufficient
from auditor.estimation.grid import rubric_groups
from auditor.estimation.groups import CONDITION_METRICS, Group
from auditor.metrics.bounds import failure_bounds, layer_sizes
from auditor.metrics.divergence import fourfold_counts, misreading, qe_fold
from auditor.metrics.rates import METRICS


def group_entry(group: Group) -> GroupEntry:
    """Return all that is estimated of a group, with its tables."""
    n_selection, n_elaboration = layer_sizes(group.totals)
    n11, n10, n01, n00 = (int(count) for count in fourfold_counts(group.totals.astype(np.float64)))
    bounds = failure_bounds(group.weighted_totals)
    ir = group.metrics["ir"]
    return GroupEntry(
        by=group.by,
        rubric=group.rubric,
        n=group.n,
        n_selection=n_selection,
        n_elaboration=n_elaboration,
        n_eligible=group.n_eligible,
        n_statements=group.n_statements,
        n_effective=UNSET if group.n_effective is None else group.n_effective,
        coverage=group.coverage,
        joint=label_counts(group.totals),
        counts=CountsEntry(n11=n11, n10=n10, n01=n01, n00=n00),
        abstain=AbstainEntry(sel=group.sel_abstains, elab=group.elab_abstains),
        metrics={name: estimate_entry(estimate) for name, estimate in group.metrics.items()},
        bounds={
            metric.name: bounds[metric.name]
            for metric in METRICS.values()
            if metric.name in bounds and (group.has_claim or not metric.endorsement)
        },
        cancellation_trap=or_missing(group.cancellation_trap),
        sign_flip=or_missing(group.sign_flip),
        qe_fold=or_missing(ir if isinstance(ir, Insufficient) else qe_fold(group.weighted_totals)),
        misreading=_misreading(group),
        flags=group.flags,
    )


def _misreading(group: Group) -> dict[str, MisreadingEntry | Missing]:
    ir, dni = group.metrics["ir"], group.metrics["dni"]
    if isinstance(ir, Insufficient):
        return dict.fromkeys(("ir", "dni"), Missing(missing=ir.reason))
    if isinstance(dni, Insufficient):
        return dict.fromkeys(("ir", "dni"), Missing(missing=dni.reason))
    return {**misreading(ir, dni, group.weighted_totals)}


def condition_entry(group: Group) -> ConditionEntry:
    """Return a group without its tables, with the measures by which conditions are compared."""
    return ConditionEntry(
        by=group.by,
        rubric=group.rubric,
        n=group.n,
        n_eligible=group.n_eligible,
        n_statements=group.n_statements,
        coverage=group.coverage,
        metrics={name: estimate_entry(group.metrics[name]) for name in CONDITION_METRICS},
        sign_flip=or_missing(group.sign_flip),
        flags=group.flags,
    )


def pool(tallies: Tallies) -> list[PoolEntry]:
    """Return the entry of ``pool``: how many statements there are, in all and by category (BiAxisAudit Table V).

    A statement that rows put in two categories counts in both; rows without a category come last.
    """
    group_indices = rubric_groups(tallies, STATEMENT)
    if not group_indices:
        return []
    by_category: dict[str | None, list[int]] = {}
    for index in group_indices:
        by_category.setdefault(tallies.groups[index].category, []).append(index)
    names = sorted(by_category, key=lambda name: (name is None, name or ""))
    categories = [CategoryEntry(category=name, n_statements=_count(tallies, by_category[name])) for name in names]
    return [PoolEntry(rubric=STATEMENT, n_statements=_count(tallies, group_indices), categories=categories)]


def _count(tallies: Tallies, group_indices: Sequence[int]) -> int:
    return len(np.unique(tallies.statement[tallies.entries(group_indices)]))
