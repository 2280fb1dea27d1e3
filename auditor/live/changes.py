"""From a window of probes, and what its deployment is held against, to rows: standardised rates and their changes.

Each condition has the same weight, 1/C: asking one of them more often changes nothing. A condition that one side lacks
is named and left out; nothing is put in its place.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from auditor.domain.estimate import Insufficient
from auditor.domain.exchange import Origin
from auditor.live.estimates import ALL, NAMED, Snapshot, Window
from auditor.live.tallies import Row, condition_of
from auditor.metrics.estimate import ENOUGH_STATEMENTS, rate_flags
from auditor.metrics.joint import FREE_TASKS, N_CELLS, Coded, Floats, joint_cell
from auditor.metrics.rates import BY_NAME
from auditor.metrics.standardised import (
    Counts,
    Standardised,
    estimable,
    kitagawa,
    standardised_difference,
    standardised_rate,
)
from auditor.store.estimates import EstimateRow

#: What is standardised: the measures that are watched for drift.
MEASURES: Final = ("ber_union_full", "ir", "dni")
#: How the intervals come about: t(G - 1) on linearised sums over statements, of one window or of a pair.
_LEVEL_METHOD, _CHANGE_METHOD = "linearised_t", "paired_linearised_t"


@dataclass(frozen=True, kw_only=True, slots=True)
class ReferenceWindow:
    """What a deployment is held against: the tallies of these days, first and last included."""

    since: date
    until: date
    rows: Sequence[Row]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Grid:
    """Responses by statement, condition and joint cell: shape [S, C, N_CELLS]."""

    conditions: tuple[str, ...]
    joint: Floats

    def counts(self, measure: str, kept: NDArray[np.bool_] | None = None) -> Counts:
        """Count one measure, of all conditions or of the kept ones."""
        joint = self.joint if kept is None else self.joint[:, kept]
        metric = BY_NAME[measure]
        return Counts(events=joint @ metric.numerator.ravel(), trials=joint @ metric.denominator.ravel())


def change_rows(
    snapshot: Snapshot, coder: str, window: Window, references: Mapping[str, ReferenceWindow]
) -> Iterator[EstimateRow]:
    """Give the standardised rates of each deployment's probes, and how they have changed since its reference.

    Parameters
    ----------
    snapshot
        When it is made.
    coder
        Whose codings were counted.
    window
        Its tallies.
    references
        By deployment; where there is none, that is what is missing.
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
    new, old = _grids(rows, before)
    for measure in MEASURES:
        _, layer, base = NAMED[measure]
        own = replace(like, layer=layer, base=base, detail={"measure": measure})
        yield _level(replace(own, metric="standardised"), new, measure)
        changed = replace(own, metric="change")
        if reference is None:
            yield replace(changed, missing="it has no reference yet")
        else:
            since, until = reference.since.isoformat(), reference.until.isoformat()
            detail = {**own.detail, "reference_since": since, "reference_until": until}
            yield _change(replace(changed, detail=detail), new, old, measure)


def _grids(*windows: Sequence[Row]) -> tuple[_Grid, ...]:
    """Lay windows over the same statements and conditions: all that any of them has."""
    named = [[(row["cluster"], "/".join(condition_of(row)), row) for row in rows] for rows in windows]
    statements = {name: at for at, name in enumerate(sorted({one[0] for rows in named for one in rows}))}
    conditions = {name: at for at, name in enumerate(sorted({one[1] for rows in named for one in rows}))}
    grids = []
    for rows in named:
        joint = np.zeros((len(statements), len(conditions), N_CELLS))
        for statement, condition, row in rows:
            joint[statements[statement], conditions[condition], _cell(row)] += row["n"]
        grids.append(_Grid(conditions=tuple(conditions), joint=joint))
    return tuple(grids)


def _cell(row: Row) -> int:
    coded = Coded(sel=row["sel"], sel_reason=row["sel_reason"], elab=row["elab"], elab_reason=row["elab_reason"])
    return joint_cell(coded, free=row["task"] in FREE_TASKS)


def _level(like: EstimateRow, grid: _Grid, measure: str) -> EstimateRow:
    asked = grid.joint.any(axis=(0, 2))
    kept = estimable(grid.counts(measure))
    counts = grid.counts(measure, kept)
    found = standardised_rate(counts, _equal(counts))
    rates = dict(zip(_names(grid, kept), counts.rates.tolist(), strict=True))
    row = replace(like, method=_LEVEL_METHOD, detail={**like.detail, "left_out": _names(grid, asked & ~kept)})
    if isinstance(found, Insufficient):
        return replace(row, missing=found.reason if kept.any() else "no condition has 5 statements")
    return _known(row, found, {"rates": rates}, measure, [found.value])


def _change(like: EstimateRow, new: _Grid, old: _Grid, measure: str) -> EstimateRow:
    kept = estimable(new.counts(measure)) & estimable(old.counts(measure))
    either = new.joint.any(axis=(0, 2)) | old.joint.any(axis=(0, 2))
    row = replace(like, method=_CHANGE_METHOD, detail={**like.detail, "left_out": _names(new, either & ~kept)})
    if not kept.any():
        return replace(row, missing="no condition has 5 statements in both windows")
    now, then = new.counts(measure, kept), old.counts(measure, kept)
    found = standardised_difference(now, then, _equal(now))
    if isinstance(found, Insufficient):
        return replace(row, missing=found.reason)
    split = kitagawa(now, then)
    detail = {"conditions": _names(new, kept), "pooled": split.pooled, "drift": split.drift, "mix": split.mix}
    return _known(row, found, detail, measure, [float(one.rates @ _equal(one)) for one in (now, then)])


def _known(
    row: EstimateRow, found: Standardised, detail: Mapping[str, Any], measure: str, levels: Sequence[float]
) -> EstimateRow:
    # A difference of two shares is near 0 for other reasons than being rare.
    level = 0.5 if BY_NAME[measure].kind == "difference" else min(levels, key=lambda one: min(one, 1 - one))
    return replace(
        row, value=found.value, low=found.low, high=found.high, n=found.n, n_statements=found.n_statements,
        flags=rate_flags(level, few=found.n_statements < ENOUGH_STATEMENTS), detail={**row.detail, **detail},
    )  # fmt: skip


def _equal(counts: Counts) -> Floats:
    size = counts.trials.shape[1]
    return np.full(size, 1 / max(size, 1))


def _names(grid: _Grid, kept: NDArray[np.bool_]) -> list[str]:
    return [name for name, keep in zip(grid.conditions, kept, strict=True) if keep]
