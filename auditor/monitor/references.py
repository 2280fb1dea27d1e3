"""Fit references: the rates of each measure of a deployment over some days, with the error of these rates.

A set holds the references of all watched measures, and the anchor's beside them. Written as JSON and read again, a
reference is the same to the last bit; JSON has no NaN, so a rate that is not known is ``null``.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from scipy import special
from scipy.special import ndtri

from auditor.counting.joint import Floats
from auditor.domain.estimate import Insufficient
from auditor.metrics.estimate import ENOUGH_STATEMENTS
from auditor.monitor.decision import Promise
from auditor.monitor.passes import WATCHED, Pass, ProbeGrid, Row, design_of, grid_of, shifts, usable
from auditor.stats.evidence import MOST_ALLOWED

Json = dict[str, Any]

#: Passes that a reference needs; with fewer, the variation from day to day cannot be estimated.
MIN_PASSES: Final = 7
#: With day means that vary more than this times what statements explain, the paired detector's promise is void
#: (MONITORING 3.2).
MOST_OVERDISPERSED: Final = 1.3
_CHANCE: Final = 0.01


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Reference:
    """The rates of one measure of one deployment over the reference passes, and how well they are known."""

    expected: Floats  #: shape [S, C]: rates; NaN where nothing was answered
    allowance: float  #: b: bound of the error of the mean expected rate, at the requested probability
    variance: float  #: mean variance of one statement's shift in one pass
    overdispersion: float  #: variance of the day means, over the part that statements explain; 1 without common shocks
    levels: tuple[float, ...]  #: the passes' levels, oldest first
    n_statements: int
    n_passes: int

    @property
    def shaken(self) -> bool:
        """Return whether whole days moved together, so that statements alone are not evidence.

        The ratio of few passes is noisy, so it must also exceed the value that chance exceeds in 1 % of references.
        """
        freedom = self.n_passes - 1
        by_chance = float(special.chdtrc(freedom, self.overdispersion * freedom))
        return self.overdispersion > MOST_OVERDISPERSED and by_chance < _CHANCE


def fit_reference(passes: Sequence[Pass], *, alpha: float, series: int = 1) -> Reference | Insufficient:
    """Fit a reference to its passes, oldest first (MONITORING 3.1).

    Parameters
    ----------
    passes
        Passes over the same panel of statements and conditions.
    alpha
        Probability that any of the allowances is too small: a part of the promise's alpha.
    series
        K, the number of allowances that share it.

    Returns
    -------
    Reference or Insufficient
        Insufficient under ``MIN_PASSES`` passes or ``ENOUGH_STATEMENTS`` statements asked in two of them.

    Examples
    --------
    >>> days = [Pass(events=np.full((100, 1), k % 2), trials=np.full((100, 1), 4)) for k in range(8)]
    >>> reference = fit_reference(days, alpha=0.05)
    >>> float(reference.expected[0, 0]), reference.n_statements, reference.shaken
    (0.125, 100, True)
    """
    if len(passes) < MIN_PASSES:
        return Insufficient(reason=f"{len(passes)} passes, {MIN_PASSES} needed for a reference")
    trials = np.sum([each.trials for each in passes], axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = np.sum([each.events for each in passes], axis=0) / trials
    moved = shifts(np.stack([each.rates for each in passes]), expected)
    number = (~np.isnan(moved)).sum(axis=0)
    usable = number >= 2
    if usable.sum() < ENOUGH_STATEMENTS:
        return Insufficient(reason=f"{int(usable.sum())} statements in two passes, {ENOUGH_STATEMENTS} needed")
    moved, number = moved[:, usable], number[usable]
    variance = np.nanvar(moved, axis=0, ddof=1)
    size = len(number)
    explained = variance.sum() / size**2
    observed = float(np.nanvar(np.nanmean(moved, axis=1), ddof=1))
    levels = tuple(level for each in passes if (level := each.level) is not None)
    return Reference(
        expected=np.where(usable[:, None], expected, np.nan),
        allowance=float(-ndtri(alpha / (2 * series)) * np.sqrt((variance / number).sum()) / size),
        variance=float(variance.mean()),
        overdispersion=observed / explained if explained > 0 else 1.0,
        levels=levels,
        n_statements=size,
        n_passes=len(passes),
    )


#: Fields that JSON holds as they are.
_PLAIN: Final = ("allowance", "variance", "overdispersion", "n_statements", "n_passes")


def reference_json(reference: Reference | Insufficient) -> Json:
    """Return a reference as JSON, or why there is none."""
    if isinstance(reference, Insufficient):
        return {"missing": reference.reason}
    return {
        "expected": [[None if math.isnan(rate) else rate for rate in row] for row in reference.expected.tolist()],
        "levels": list(reference.levels),
        **{name: getattr(reference, name) for name in _PLAIN},
    }


def reference_of(written: Mapping[str, Any]) -> Reference | Insufficient:
    """Read a reference from JSON."""
    if "missing" in written:
        return Insufficient(reason=written["missing"])
    expected: Floats = np.array(written["expected"], dtype=np.float64)
    return Reference(
        expected=expected, levels=tuple(map(float, written["levels"])), **{name: written[name] for name in _PLAIN}
    )


Fitted = Mapping[str, Reference | Insufficient]


@dataclass(frozen=True, kw_only=True, slots=True)
class ReferenceSet:
    """References by measure, or the reason why one could not be fitted."""

    grid: ProbeGrid
    references: Fitted
    anchor: str | None = None  #: the deployment that is known not to change
    beside: Fitted | None = None  #: the anchor's, over the same grid and days

    def anchor_reference(self, metric: str) -> Reference | None:
        """Return the anchor's reference for a measure, where there is one."""
        reference = None if self.beside is None else self.beside[metric]
        return reference if isinstance(reference, Reference) else None


def fit_references(
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
        Counts of the deployment, as ``ProbeGrid.read`` takes them, with ``day``.
    promise
        Promise whose alpha the references share with the detectors.
    margin
        Added to every allowance; their sum may be at most ``MOST_ALLOWED``.
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
    grid = grid_of(rows, design)
    references = {metric: _fit(grid, rows, metric, promise, margin) for metric in WATCHED}
    first = references[WATCHED[0]]
    if isinstance(first, Insufficient):
        return first
    beside = None if anchor is None else {name: _fit(grid, anchor_rows, name, promise, 0.0) for name in WATCHED}
    return ReferenceSet(grid=grid, references=references, anchor=anchor, beside=beside)


def _fit(
    grid: ProbeGrid, rows: Sequence[Row], metric: str, promise: Promise, margin: float
) -> Reference | Insufficient:
    by_day: dict[Any, list[Row]] = {}
    for row in rows:
        by_day.setdefault(row["day"], []).append(row)
    passes = [grid.read(by_day[day], metric) for day in sorted(by_day)]
    whole = [probe_pass for probe_pass in passes if usable(probe_pass, metric)]
    if len(whole) < MIN_PASSES <= len(passes):
        return Insufficient(reason=f"{len(whole)} of {len(passes)} passes have enough statements, {MIN_PASSES} needed")
    fitted = fit_reference(whole, alpha=promise.reference_alpha, series=promise.series)
    if isinstance(fitted, Reference) and fitted.allowance + margin > MOST_ALLOWED:
        return Insufficient(
            reason=f"the reference leaves {fitted.allowance:.3f} open; with the margin that is more than {MOST_ALLOWED}"
        )
    return fitted


def references_json(fitted: ReferenceSet) -> Json:
    """Return a set as JSON."""
    return {
        "design": fitted.grid.design,
        "statements": list(fitted.grid.statements),
        "conditions": list(fitted.grid.conditions),
        "own": {name: reference_json(reference) for name, reference in fitted.references.items()},
        "anchor": fitted.anchor,
        "beside": None
        if fitted.beside is None
        else {name: reference_json(reference) for name, reference in fitted.beside.items()},
    }


def references_of(written: Mapping[str, Any]) -> ReferenceSet:
    """Read a set from JSON."""
    beside = written["beside"]
    return ReferenceSet(
        grid=ProbeGrid(
            design=written["design"],
            statements=tuple(written["statements"]),
            conditions=tuple(written["conditions"]),
        ),
        references={name: reference_of(reference) for name, reference in written["own"].items()},
        anchor=written["anchor"],
        beside=None if beside is None else {name: reference_of(reference) for name, reference in beside.items()},
    )
