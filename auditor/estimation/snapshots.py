"""Estimate rolling windows: from tallies to the rows that the auditor stores, exports and shows.

The numbers are those of ``auditor.estimation.analysis``. This module chooses which of them are stored, and under which
names.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from msgspec import UnsetType

from auditor.counting.conditions import BASELINE, FACTORS
from auditor.counting.rows import Vote
from auditor.counting.stored import Row, condition_of, tallies_of
from auditor.counting.tallies import Tallies
from auditor.documents.agreement import MissingKappa
from auditor.documents.base import Missing
from auditor.documents.conditions import MissingRange, MissingVarianceShare, RangeEntry, VarianceShareEntry
from auditor.documents.estimates import EstimateEntry, GroupEntry
from auditor.domain.coding import ABSTAIN
from auditor.estimation.groups import Estimator
from auditor.estimation.judges import judge_kappas
from auditor.estimation.variation import Variation, scopes
from auditor.metrics.estimate import MIN_STATEMENTS
from auditor.metrics.rates import METRICS
from auditor.reviews.corrections import ReviewSample, corrected_rows
from auditor.store.estimates import EstimateRow

#: Bootstrap replicates of the ranges over conditions, as in reports.
N_BOOT: Final = 2000
ALL: Final = "all"
AT_BASELINE: Final = "baseline"
CATEGORY: Final = "category"
#: Suffix of the audit name if no judge may read its answers, which makes it another instrument.
UNJUDGED: Final = "unjudged"


@dataclass(frozen=True, kw_only=True, slots=True)
class Window:
    """Tallies of one coder over one window. More is estimated of the longest window."""

    name: str
    since: datetime
    longest: bool
    rows: Sequence[Row]
    votes: Mapping[tuple[str, tuple[Vote, ...]], int]
    samples: Sequence[ReviewSample] = ()  #: that people have labelled, the newest first


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """What all rows of one snapshot have in common."""

    as_of: datetime
    seed: int


def estimate_windows(
    snapshot: Snapshot,
    coder: str,
    windows: Sequence[Window],
    *,
    audit: str | None = None,
    judges: Collection[str] = (),
) -> Iterator[EstimateRow]:
    """Estimate everything of one coder.

    Parameters
    ----------
    snapshot
        When it is made, and the seed of the bootstraps.
    coder
        Whose codings were counted.
    windows
        Its tallies; planned calls and traffic are never in one coder's.
    audit
        For traffic: what stands in the place of the condition.
    judges
        Of the coder, by name.
    """
    for window in windows:
        for origin in sorted({row["origin"] for row in window.rows}):
            own = [row for row in window.rows if row["origin"] == origin]
            first = EstimateRow(
                as_of=snapshot.as_of, deployment=None, origin=origin, rubric=own[0]["rubric"], condition=audit or ALL,
                window=window.name, since=window.since, coder=coder, metric="", seed=snapshot.seed,
            )  # fmt: skip
            yield from _of_origin(first, own, window, planned=audit is None, judges=judges)
            yield from corrected_rows(first, [one for one in window.samples if one.origin == origin])


def _of_origin(
    like: EstimateRow, rows: Sequence[Row], window: Window, *, planned: bool, judges: Collection[str]
) -> Iterator[EstimateRow]:
    tallies = tallies_of(rows)
    if tallies.profiles:
        panels = {profile.deployment: frozenset(judges) for profile in tallies.profiles}
        estimator = Estimator(tallies, seed=like.seed, panel_differs=False, panels=panels)
        for group in estimator.groups(("deployment",)):
            yield from _group_rows(like, group)
        if planned:
            yield from _conditions(like, rows, estimator, panels, longest=window.longest)
        if planned and window.longest:
            yield from _across(like, tallies)
    if window.longest:
        yield from _uncoded(like, rows)
        if like.origin == "probe":
            yield from _kappas(like, window.votes)


def _conditions(
    like: EstimateRow,
    rows: Sequence[Row],
    estimator: Estimator,
    panels: Mapping[str, frozenset[str]],
    *,
    longest: bool,
) -> Iterator[EstimateRow]:
    """Estimate the baseline cell, and in the longest window each level of each factor, each category and each cell."""
    at_baseline = tallies_of(row for row in rows if condition_of(row) == BASELINE)
    if at_baseline.profiles:
        cell = Estimator(at_baseline, seed=like.seed, panel_differs=False, panels=panels)
        for group in cell.groups(("deployment",)):
            yield from _group_rows(replace(like, condition=AT_BASELINE), group)
    if not longest:
        return
    # A factor that was not varied has one level with all rows; tasks are named nevertheless.
    varied = [
        factor
        for place, factor in enumerate(FACTORS)
        if factor == "task" or len({condition_of(row)[place] for row in rows}) > 1
    ]
    for name in (*varied, CATEGORY):
        for group in estimator.groups(("deployment", name)):
            if group.by[name]:  # statements of one's own need no category
                yield from _group_rows(replace(like, condition=f"{name}={group.by[name]}"), group)
    for group in estimator.groups(("deployment", *FACTORS)):
        if group.n_statements >= MIN_STATEMENTS:
            cell_name = "/".join(str(group.by[factor]) for factor in FACTORS)
            yield from _group_rows(replace(like, condition=cell_name), group)


def _group_rows(like: EstimateRow, group: GroupEntry) -> Iterator[EstimateRow]:
    own = replace(
        like, deployment=str(group.by["deployment"]), n=group.n, n_statements=group.n_statements,
        n_eligible=group.n_eligible, coverage=group.coverage.eligible,
    )  # fmt: skip
    for name, metric in METRICS.items():
        estimate = group.metrics[name]
        row = replace(own, metric=metric.series.name, layer=metric.layer, base=metric.base)
        yield replace(row, missing=estimate.missing) if isinstance(estimate, Missing) else _known(row, estimate)
    shares = {"structural": group.coverage.structural, "failed": group.coverage.failed}
    yield replace(own, metric="coverage", value=group.coverage.eligible, detail=shares, flags=tuple(group.flags))
    yield replace(own, metric="eligible_responses", value=float(group.n_eligible))
    effective = float(group.n) if isinstance(group.n_effective, UnsetType) else group.n_effective
    yield replace(own, metric="effective_responses", value=effective)
    trap = replace(own, metric="cancellation_trap", base="eligible")
    if isinstance(group.cancellation_trap, Missing):
        yield replace(trap, missing=group.cancellation_trap.missing)
    else:
        yield replace(trap, detail={"state": group.cancellation_trap})


def _known(row: EstimateRow, estimate: EstimateEntry) -> EstimateRow:
    return replace(
        row, value=estimate.value, low=estimate.low, high=estimate.high, n=estimate.n,
        n_statements=estimate.n_statements, method=estimate.method, flags=tuple(estimate.flags),
        n_effective=None if isinstance(estimate.n_effective, UnsetType) else estimate.n_effective,
    )  # fmt: skip


def _across(like: EstimateRow, tallies: Tallies) -> Iterator[EstimateRow]:
    """Estimate how much each deployment's rates vary with the prompt."""
    variation = Variation(tallies, seed=like.seed, n_boot=N_BOOT)
    for scope in scopes(tallies):
        if "deployment" not in scope.by:
            continue
        own = replace(like, deployment=str(scope.by["deployment"]))
        for found in variation.ranges(scope):
            metric = METRICS[found.metric]
            row = replace(own, metric=f"{metric.series.name}_range", layer=metric.layer, base=metric.base)
            yield _range_row(replace(row, detail={"over": found.over}), found)
        for shares in variation.shares(scope):
            if shares.weights == "responses":
                row = replace(own, metric="variance_share", layer="union", base="full", flags=tuple(shares.flags))
                yield from _share_rows(row, shares)


def _range_row(row: EstimateRow, found: RangeEntry | MissingRange) -> EstimateRow:
    if isinstance(found, MissingRange):
        return replace(row, missing=found.missing)
    detail = {
        **row.detail, "min": found.min, "max": found.max, "min_at": found.min_at, "max_at": found.max_at,
        "corrected": found.range_corrected, "left_out": list(found.left_out),
    }  # fmt: skip
    return replace(
        row, value=found.range, low=found.low, high=found.high, n_statements=found.n_statements,
        method="cluster_bootstrap", flags=tuple(found.flags), detail=detail,
    )  # fmt: skip


def _share_rows(row: EstimateRow, shares: VarianceShareEntry | MissingVarianceShare) -> Iterator[EstimateRow]:
    for factor in FACTORS:
        own = replace(row, detail={"factor": factor})
        if isinstance(shares, MissingVarianceShare):
            yield replace(own, missing=shares.missing)
            continue
        effect = shares.effects[factor]
        if isinstance(effect, Missing):
            yield replace(own, n=shares.n, missing=effect.missing)
        else:
            yield replace(own, n=shares.n, value=effect)


def _uncoded(like: EstimateRow, rows: Sequence[Row]) -> Iterator[EstimateRow]:
    """Count codings, why layers have no label, and why exchanges have no coding at all (layer ``both``)."""
    counted: dict[tuple[str, str, str], int] = {}
    coded: Counter[str] = Counter()

    def count(row: Row, layer: str, reason: str) -> None:
        key = (row["deployment"], layer, reason)
        counted[key] = counted.get(key, 0) + row["n"]

    for row in rows:
        if row["uncoded"] is not None:
            count(row, "both", row["uncoded"])
        else:
            coded[row["deployment"]] += row["n"]
        for layer in ("sel", "elab"):
            if row[layer] == ABSTAIN:
                count(row, layer, row[f"{layer}_reason"] or "unstated")
    for (name, layer, reason), n in sorted(counted.items()):
        yield uncoded_row(replace(like, deployment=name), layer, reason, n)
    for name, n in sorted(coded.items()):
        yield replace(like, deployment=name, metric="coded_responses", value=float(n), n=n)


def uncoded_row(like: EstimateRow, layer: str, reason: str, n: int) -> EstimateRow:
    """Make the row of one count."""
    return replace(like, metric="uncoded_responses", layer=layer, detail={"reason": reason}, value=float(n), n=n)


def _kappas(like: EstimateRow, votes: Mapping[tuple[str, tuple[Vote, ...]], int]) -> Iterator[EstimateRow]:
    for kappa in judge_kappas(votes):
        detail: dict[str, Any] = {"judge": kappa.judge, "other": kappa.other}
        row = replace(
            like, metric="judge_kappa", deployment=kappa.deployment, layer=kappa.layer, detail=detail, n=kappa.n
        )
        if isinstance(kappa, MissingKappa):
            yield replace(row, missing=kappa.missing)
        else:
            yield replace(row, value=kappa.value)
