"""Estimate rolling windows: from tallies to the rows that the auditor stores, exports and shows.

The numbers are those of ``auditor.estimation.analysis``. This module chooses which of them are stored, and under which
names.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from auditor.counting.conditions import BASELINE, FACTORS
from auditor.counting.rows import Vote
from auditor.counting.stored import Row, condition_of, tallies_of
from auditor.counting.tallies import Tallies
from auditor.documents.agreement import MissingKappa
from auditor.documents.conditions import LevelRange
from auditor.domain.coding import ABSTAIN
from auditor.domain.estimate import Insufficient
from auditor.estimation.groups import Estimator, Group
from auditor.estimation.judges import judge_kappas
from auditor.estimation.variation import EVERYWHERE, RANGED, Variation, scopes
from auditor.metrics.estimate import MIN_STATEMENTS
from auditor.metrics.rates import METRICS
from auditor.metrics.shares import Shares
from auditor.reviews.corrections import ReviewSample, corrected_rows
from auditor.store.estimates import EstimateRow, with_estimate

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
        Time of the estimates, and the seed of the bootstraps.
    coder
        Coder whose codings were counted.
    windows
        Tallies of the coder; planned calls and traffic are never in one coder's.
    audit
        Name that stands in the place of the condition; for traffic only.
    judges
        Names of the coder's judges.
    """
    for window in windows:
        for origin in sorted({row["origin"] for row in window.rows}):
            rows = [row for row in window.rows if row["origin"] == origin]
            first = EstimateRow(
                as_of=snapshot.as_of, deployment=None, origin=origin, rubric=rows[0]["rubric"], condition=audit or ALL,
                window=window.name, since=window.since, coder=coder, metric="", seed=snapshot.seed,
            )  # fmt: skip
            yield from _of_origin(first, rows, window, planned=audit is None, judges=judges)
            yield from corrected_rows(first, [sample for sample in window.samples if sample.origin == origin])


def _of_origin(
    like: EstimateRow, rows: Sequence[Row], window: Window, *, planned: bool, judges: Collection[str]
) -> Iterator[EstimateRow]:
    tallies = tallies_of(rows)
    if tallies.groups:
        panels = {group_key.deployment: frozenset(judges) for group_key in tallies.groups}
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
    if at_baseline.groups:
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


def _group_rows(like: EstimateRow, group: Group) -> Iterator[EstimateRow]:
    n_eligible, coverage = group.n_eligible, group.coverage
    template = replace(
        like, deployment=str(group.by["deployment"]), n=group.n, n_statements=group.n_statements,
        n_eligible=n_eligible, coverage=coverage.eligible,
    )  # fmt: skip
    for name, metric in METRICS.items():
        row = replace(template, metric=metric.series.name, layer=metric.layer, base=metric.base)
        yield with_estimate(row, group.metrics[name])
    shares = {"structural": coverage.structural, "failed": coverage.failed}
    yield replace(template, metric="coverage", value=coverage.eligible, detail=shares, flags=group.flags)
    yield replace(template, metric="eligible_responses", value=float(n_eligible))
    effective = float(group.n) if group.n_effective is None else group.n_effective
    yield replace(template, metric="effective_responses", value=effective)
    trap = replace(template, metric="cancellation_trap", base="eligible")
    if isinstance(group.cancellation_trap, Insufficient):
        yield replace(trap, missing=group.cancellation_trap.reason)
    else:
        yield replace(trap, detail={"state": group.cancellation_trap})


def _across(like: EstimateRow, tallies: Tallies) -> Iterator[EstimateRow]:
    """Estimate how much each deployment's rates vary with the prompt."""
    variation = Variation(tallies, seed=like.seed, n_boot=N_BOOT)
    for scope in scopes(tallies):
        if "deployment" not in scope.by:
            continue
        template = replace(like, deployment=str(scope.by["deployment"]))
        for metric in (METRICS[name] for name in RANGED):
            row = replace(template, metric=f"{metric.series.name}_range", layer=metric.layer, base=metric.base)
            for over in (*FACTORS, EVERYWHERE):
                yield _range_row(replace(row, detail={"over": over}), variation.level_range(scope, metric.name, over))
        (shares,), flags = variation.oat_shares(scope, ("responses",))
        row = replace(template, metric="variance_share", layer="union", base="full", flags=flags)
        yield from _share_rows(row, shares)


def _range_row(row: EstimateRow, spread: LevelRange | Insufficient) -> EstimateRow:
    if isinstance(spread, Insufficient):
        return replace(row, missing=spread.reason)
    detail = {
        **row.detail, "min": spread.min, "max": spread.max, "min_at": spread.min_at, "max_at": spread.max_at,
        "corrected": spread.range_corrected, "left_out": list(spread.left_out),
    }  # fmt: skip
    return replace(
        row, value=spread.range, low=spread.low, high=spread.high, n_statements=spread.n_statements,
        method="cluster_bootstrap", flags=tuple(spread.flags), detail=detail,
    )  # fmt: skip


def _share_rows(row: EstimateRow, shares: Shares | Insufficient) -> Iterator[EstimateRow]:
    for factor in FACTORS:
        entry = replace(row, detail={"factor": factor})
        if isinstance(shares, Insufficient):
            yield replace(entry, missing=shares.reason)
            continue
        effect = shares.effects[factor]
        if isinstance(effect, Insufficient):
            yield replace(entry, n=shares.n, missing=effect.reason)
        else:
            yield replace(entry, n=shares.n, value=effect)


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
