"""What a deployment is held against: references of all its measures over one panel, and the anchor's beside them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from auditor.domain.estimate import Insufficient
from auditor.monitor.decision import Promise
from auditor.monitor.panels import Panel, Row, design_of, panel_of, usable
from auditor.monitor.passes import WATCHED
from auditor.monitor.reference import MIN_PASSES, Reference, fit_reference
from auditor.monitor.state import Json, reference_json, reference_of
from auditor.stats.shift_bets import MOST_ALLOWED

Fitted = Mapping[str, Reference | Insufficient]


@dataclass(frozen=True, kw_only=True, slots=True)
class ReferenceSet:
    """References by measure; one that could not be fitted says why."""

    panel: Panel
    own: Fitted
    anchor: str | None = None  #: the deployment that stands still
    beside: Fitted | None = None  #: the anchor's, over the same panel and days

    def anchor_reference(self, metric: str) -> Reference | None:
        """Give the anchor's reference for a measure, where there is one."""
        found = None if self.beside is None else self.beside[metric]
        return found if isinstance(found, Reference) else None


def fit_set(
    rows: Sequence[Row],
    promise: Promise,
    *,
    margin: float = 0.0,
    anchor: str | None = None,
    anchor_rows: Sequence[Row] = (),
) -> ReferenceSet | Insufficient:
    """Fit the references of one deployment to the days of a window.

    Parameters
    ----------
    rows
        Of the deployment: see ``Panel.read``, with ``day``.
    promise
        Its references' part of alpha is shared by the series that may page.
    margin
        Added to every allowance; both together leave the detectors some room.
    anchor, anchor_rows
        The anchor's name and its rows of the same days.

    Returns
    -------
    ReferenceSet or Insufficient
        Insufficient where the rate on the full base could not be fitted: other measures have fewer answers.
    """
    design = design_of(rows)
    if design is None:
        return Insufficient(reason="no pass of a sentinel or panel plan")
    panel = panel_of(rows, design)
    own = {metric: _fit(panel, rows, metric, promise, margin) for metric in WATCHED}
    first = own[WATCHED[0]]
    if isinstance(first, Insufficient):
        return first
    beside = None if anchor is None else {name: _fit(panel, anchor_rows, name, promise, 0.0) for name in WATCHED}
    return ReferenceSet(panel=panel, own=own, anchor=anchor, beside=beside)


def _fit(panel: Panel, rows: Sequence[Row], metric: str, promise: Promise, margin: float) -> Reference | Insufficient:
    by_day: dict[Any, list[Row]] = {}
    for row in rows:
        by_day.setdefault(row["day"], []).append(row)
    passes = [panel.read(by_day[day], metric) for day in sorted(by_day)]
    whole = [one for one in passes if usable(one, metric)]
    if len(whole) < MIN_PASSES <= len(passes):
        return Insufficient(reason=f"{len(whole)} of {len(passes)} passes have enough statements, {MIN_PASSES} needed")
    fitted = fit_reference(whole, alpha=promise.reference_alpha, series=promise.series)
    if isinstance(fitted, Reference) and fitted.allowance + margin > MOST_ALLOWED:
        return Insufficient(
            reason=f"the reference leaves {fitted.allowance:.3f} open; with the margin that is more than {MOST_ALLOWED}"
        )
    return fitted


def set_json(fitted: ReferenceSet) -> Json:
    """Write a set, to the last bit."""
    return {
        "design": fitted.panel.design,
        "statements": list(fitted.panel.statements),
        "conditions": list(fitted.panel.conditions),
        "own": {name: reference_json(one) for name, one in fitted.own.items()},
        "anchor": fitted.anchor,
        "beside": None if fitted.beside is None else {name: reference_json(one) for name, one in fitted.beside.items()},
    }


def set_of(written: Mapping[str, Any]) -> ReferenceSet:
    """Read a set again."""
    beside = written["beside"]
    return ReferenceSet(
        panel=Panel(
            design=written["design"],
            statements=tuple(written["statements"]),
            conditions=tuple(written["conditions"]),
        ),
        own={name: reference_of(one) for name, one in written["own"].items()},
        anchor=written["anchor"],
        beside=None if beside is None else {name: reference_of(one) for name, one in beside.items()},
    )
