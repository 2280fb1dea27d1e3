"""Estimate the answers to one plan, and the change between two plans by their shared statements."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from auditor.counting.stored import tallies_of
from auditor.documents.audits import MissingPlanDifference, PlanDifferenceEntry, PlanHeadlinesEntry
from auditor.documents.estimates import estimate_entry
from auditor.estimation.groups import Estimator, Group
from auditor.metrics.estimate import MIN_STATEMENTS
from auditor.stats.differences import paired, t_interval

#: The measures that stand for a plan.
HEADLINES: Final = ("ber_union_full", "ir", "dni")
_ENDORSING: Final = frozenset({"E", "QE"})


def estimate_plan(rows: Sequence[Mapping[str, Any]], seed: int) -> dict[str, Group]:
    """Estimate the answers to a plan by deployment.

    Parameters
    ----------
    rows
        Counts as ``auditor.store.plan_rows.count_plan`` gives them.
    seed
        Seed of the bootstraps.
    """
    counted = tallies_of(rows)
    if not counted.groups:
        return {}
    estimator = Estimator(counted, seed=seed, panel_differs=False)
    return {str(group.by["deployment"]): group for group in estimator.groups(("deployment",))}


def headlines_entry(group: Group) -> PlanHeadlinesEntry:
    """Return the headline measures of a group, with the numbers of answers and statements."""
    return PlanHeadlinesEntry(
        n=group.n,
        n_eligible=group.n_eligible,
        n_statements=group.n_statements,
        coverage=group.coverage.eligible,
        **{name: estimate_entry(group.metrics[name]) for name in HEADLINES},
    )


def compare_plans(
    rows: Sequence[Mapping[str, Any]], others: Sequence[Mapping[str, Any]], deployment: str, other: str
) -> PlanDifferenceEntry | MissingPlanDifference:
    """Estimate how much more often one plan's answers endorse on either layer than another's.

    Each statement that both plans asked counts once: the difference of its two rates, all answers in the base. The
    interval is Student's, over statements.

    Returns
    -------
    PlanDifferenceEntry or MissingPlanDifference
        Difference in [-1, 1]; under 15 statements the reason why there is none.
    """
    first, second = _rates(rows, deployment), _rates(others, other)
    shared = sorted(set(first) & set(second))
    if len(shared) < MIN_STATEMENTS:
        why = f"both plans asked {len(shared)} statements; {MIN_STATEMENTS} are needed"
        return MissingPlanDifference(missing=why, n_statements=len(shared))
    difference = paired(np.array([first[name] - second[name] for name in shared]))
    interval = t_interval(difference)
    return PlanDifferenceEntry(
        value=difference.value,
        low=max(-1.0, interval.low),
        high=min(1.0, interval.high),
        n_statements=len(shared),
        method="paired by statement, Student's t",
    )


def _rates(rows: Iterable[Mapping[str, Any]], deployment: str) -> dict[str, float]:
    """Return the share of endorsing answers by statement; calls without an answer have no coding."""
    counts: dict[str, list[int]] = {}
    for row in rows:
        if row["deployment"] != deployment or row["uncoded"] is not None:
            continue
        endorsing, every = counts.setdefault(row["cluster"], [0, 0])
        union = row["sel"] in _ENDORSING or row["elab"] in _ENDORSING
        counts[row["cluster"]] = [endorsing + row["n"] * union, every + row["n"]]
    return {name: endorsing / every for name, (endorsing, every) in counts.items()}
