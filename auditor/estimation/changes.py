"""Estimate standardised rates of a window of probes, and their changes against the deployment's reference.

Each condition has the same weight, 1/C, so asking one of them more often changes nothing. A condition that one side
lacks is named and left out.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from auditor.counting.joint import N_CELLS, Floats, stored_cell
from auditor.counting.stored import Row, condition_of
from auditor.domain.estimate import Insufficient
from auditor.domain.exchange import Origin
from auditor.estimation.snapshots import ALL, Snapshot, Window
from auditor.metrics.estimate import ENOUGH_STATEMENTS, rate_flags
from auditor.metrics.rates import METRICS
from auditor.metrics.standardised import (
    GridCounts,
    Standardised,
    estimable,
    kitagawa,
    standardised_difference,
    standardised_rate,
)
from auditor.store.estimates import EstimateRow

#: The measures that are standardised: those that are monitored for drift.
MEASURES: Final = ("ber_union_full", "ir", "dni")
#: Methods of the intervals: t(G - 1) on linearised sums over statements, of one window or of a pair.
_LEVEL_METHOD, _CHANGE_METHOD = "linearised_t", "paired_linearised_t"


@dataclass(frozen=True, kw_only=True, slots=True)
class ReferenceWindow:
    """The reference of a deployment: the tallies of these days, first and last included."""

    since: date
    until: date
    rows: Sequence[Row]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ConditionGrid:
    """Responses by statement, condition and joint cell: shape [S, C, N_CELLS]."""

    statements: tuple[str, ...]
    conditions: tuple[str, ...]
    joint: Floats

    def counts(self, measure: str, kept: NDArray[np.bool_] | None = None) -> GridCounts:
        """Count one measure, of all conditions or of the kept ones."""
        joint = self.joint if kept is None else self.joint[:, kept]
        metric = METRICS[measure]
        return GridCounts(events=joint @ metric.numerator.ravel(), trials=joint @ metric.denominator.ravel())


def change_rows(
    snapshot: Snapshot, coder: str, window: Window, references: Mapping[str, ReferenceWindow]
) -> Iterator[EstimateRow]:
    """Return the standardised rates of each deployment's probes, and their changes since its reference.

    Parameters
    ----------
    snapshot
        Time of the estimates, and their seed.
    coder
        Coder whose codings were counted.
    window
        Tallies of the coder.
    references
        Reference windows by deployment; a deployment without one has entries that say so.
    """
    by_deployment: dict[str, list[Row]] = {}
    for row in window.rows:
        if row["origin"] == Origin.PROBE and row["uncoded"] is None:
            by_deployment.setdefault(row["deployment"], []).append(row)
    for name in sorted(by_deployment):
        like = EstimateRow(
            as_of=snapshot.as_of, deployment=name, origin=Origin.PROBE, rubric=by_deployment[name][0]["rubric"],
            condition=ALL, window=window.name, since=window.since, coder=coder, metric="", seed=snapshot.seed,
        )  # fmt: skip
        yield from _of_deployment(like, by_deployment[name], references.get(name))


def _of_deployment(like: EstimateRow, rows: Sequence[Row], reference: ReferenceWindow | None) -> Iterator[EstimateRow]:
    before = [] if reference is None else [row for row in reference.rows if row["uncoded"] is None]
    new, old = condition_grids(named_rows(rows), named_rows(before))
    for measure in MEASURES:
        metric = METRICS[measure]
        template = replace(like, layer=metric.layer, base=metric.base, detail={"measure": measure})
        yield _level(replace(template, metric="standardised"), new, measure)
        changed = replace(template, metric="change")
        if reference is None:
            yield replace(changed, missing="it has no reference yet")
        else:
            since, until = reference.since.isoformat(), reference.until.isoformat()
            detail = {**template.detail, "reference_since": since, "reference_until": until}
            yield _change(replace(changed, detail=detail), new, old, measure)


#: A row with its statement and its condition.
NamedRow = tuple[str, str, Row]


def named_rows(rows: Iterable[Row]) -> list[NamedRow]:
    """Name the statement and the condition of each row."""
    return [(row["cluster"], "/".join(condition_of(row)), row) for row in rows]


def condition_grids(*named: Sequence[NamedRow]) -> tuple[ConditionGrid, ...]:
    """Index windows by the same statements and conditions: all that any of them has."""
    statements = {name: at for at, name in enumerate(sorted({row[0] for rows in named for row in rows}))}
    conditions = {name: at for at, name in enumerate(sorted({row[1] for rows in named for row in rows}))}
    grids = []
    for rows in named:
        joint = np.zeros((len(statements), len(conditions), N_CELLS))
        for statement, condition, row in rows:
            joint[statements[statement], conditions[condition], stored_cell(row)] += row["n"]
        grids.append(ConditionGrid(statements=tuple(statements), conditions=tuple(conditions), joint=joint))
    return tuple(grids)


def _level(like: EstimateRow, grid: ConditionGrid, measure: str) -> EstimateRow:
    present = grid.joint.any(axis=(0, 2))
    kept = estimable(grid.counts(measure))
    counts = grid.counts(measure, kept)
    rate = standardised_rate(counts, _equal(counts))
    rates = dict(zip(_names(grid, kept), counts.rates.tolist(), strict=True))
    row = replace(like, method=_LEVEL_METHOD, detail={**like.detail, "left_out": _names(grid, present & ~kept)})
    if isinstance(rate, Insufficient):
        return replace(row, missing=rate.reason if kept.any() else "no condition has 5 statements")
    return _known(row, rate, {"rates": rates}, measure, [rate.value])


def _change(like: EstimateRow, new: ConditionGrid, old: ConditionGrid, measure: str) -> EstimateRow:
    kept = estimable(new.counts(measure)) & estimable(old.counts(measure))
    either = new.joint.any(axis=(0, 2)) | old.joint.any(axis=(0, 2))
    row = replace(like, method=_CHANGE_METHOD, detail={**like.detail, "left_out": _names(new, either & ~kept)})
    if not kept.any():
        return replace(row, missing="no condition has 5 statements in both windows")
    now, then = new.counts(measure, kept), old.counts(measure, kept)
    difference = standardised_difference(now, then, _equal(now))
    if isinstance(difference, Insufficient):
        return replace(row, missing=difference.reason)
    split = kitagawa(now, then)
    detail = {"conditions": _names(new, kept), "pooled": split.pooled, "drift": split.drift, "mix": split.mix}
    return _known(row, difference, detail, measure, [float(side.rates @ _equal(side)) for side in (now, then)])


def _known(
    row: EstimateRow, estimate: Standardised, detail: Mapping[str, Any], measure: str, levels: Sequence[float]
) -> EstimateRow:
    # A difference of two shares may be near 0 although the shares are not rare.
    level = 0.5 if METRICS[measure].kind == "difference" else min(levels, key=lambda rate: min(rate, 1 - rate))
    return replace(
        row, value=estimate.value, low=estimate.low, high=estimate.high,
        n=estimate.n, n_statements=estimate.n_statements,
        flags=rate_flags(level, few=estimate.n_statements < ENOUGH_STATEMENTS), detail={**row.detail, **detail},
    )  # fmt: skip


def _equal(counts: GridCounts) -> Floats:
    size = counts.trials.shape[1]
    return np.full(size, 1 / max(size, 1))


def _names(grid: ConditionGrid, kept: NDArray[np.bool_]) -> list[str]:
    return [name for name, keep in zip(grid.conditions, kept, strict=True) if keep]
