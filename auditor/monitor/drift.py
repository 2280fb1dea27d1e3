"""Keep the drift state of one measure of one deployment: update it pass by pass, summarise it, store it as JSON."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from auditor.counting.joint import Floats
from auditor.domain.estimate import Insufficient
from auditor.metrics.estimate import MIN_STATEMENTS
from auditor.monitor.decision import APART, Evidence, Level, Promise, decide
from auditor.monitor.detectors import DayState, ShiftState, detectable_shift
from auditor.monitor.passes import PAGING, Pass, shifts
from auditor.monitor.references import Json, Reference
from auditor.stats.intervals import t_quantile

#: Names of the detectors, as series and findings have them.
STATEMENTS: Final = "statements"
DAYS: Final = "days"
ANCHOR: Final = "anchor"
INSTRUMENT: Final = "instrument"
_NONE = Evidence(shift=-np.inf, day=-np.inf, apart=None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Anchor:
    """A deployment that is known not to change, read by the same judges, with its own evidence."""

    reference: Reference
    itself: ShiftState = field(default_factory=ShiftState)
    apart: ShiftState = field(default_factory=ShiftState)  #: state of the watched deployment's shifts less the anchor's


@dataclass(frozen=True, kw_only=True, slots=True)
class DriftState:
    """The state of one series since its reference; ``update`` returns the next one."""

    reference: Reference
    promise: Promise
    margin: float  #: largest shift that does not matter; added to the reference's allowance
    shift: ShiftState
    day: DayState
    anchor: Anchor | None = None
    highest: Evidence = _NONE
    n_passes: int = 0  #: since the reference

    def update(self, observed: Pass, anchor: Pass | None = None) -> "DriftState":
        """Return the state after one more whole pass, and the anchor's of the same day where there is one."""
        moved = shifts(observed.rates, self.reference.expected)
        allowance = self.reference.allowance + self.margin
        level = observed.level
        new = replace(
            self,
            shift=self.shift.update(moved, allowance),
            day=self.day if level is None else self.day.update(level),
            anchor=self.anchor if self.anchor is None or anchor is None else self._anchored(self.anchor, moved, anchor),
            n_passes=self.n_passes + 1,
        )
        return replace(new, highest=_higher(self.highest, new))

    def _anchored(self, known: Anchor, moved: Floats, anchor: Pass) -> Anchor:
        drifted = shifts(anchor.rates, known.reference.expected)
        allowance = np.hypot(self.reference.allowance, known.reference.allowance) + self.margin
        return replace(
            known,
            itself=known.itself.update(drifted, known.reference.allowance),
            apart=known.apart.update(moved - drifted, float(allowance), bound=2.0),
        )

    @property
    def evidence(self) -> Evidence:
        """Return the log evidence now."""
        anchor = self.anchor
        return Evidence(
            shift=self.shift.evidence,
            day=self.day.evidence,
            apart=None if anchor is None else anchor.apart.evidence,
            instrument=None if anchor is None else anchor.itself.evidence,
        )

    @property
    def level(self) -> Level | None:
        """Return the level of the highest evidence so far."""
        return decide(self.highest, self.promise, shaken=self.reference.shaken)


def start_drift(
    reference: Reference,
    promise: Promise,
    *,
    series: str,
    seed: int,
    margin: float = 0.0,
    anchor: Reference | None = None,
) -> DriftState:
    """Return the state before the first pass after a reference.

    Parameters
    ----------
    reference
        Reference of the measure.
    promise
        Shared with the other series that may page.
    series, seed
        They determine the random draws that break ties between days.
    margin
        Largest shift that does not matter, at least 0.
    anchor
        The anchor's reference for the same measure, over the same days.
    """
    return DriftState(
        reference=reference,
        promise=promise,
        margin=margin,
        shift=ShiftState(),
        day=DayState(series=series, seed=seed).seeded(reference.levels),
        anchor=None if anchor is None else Anchor(reference=anchor),
    )


def _higher(before: Evidence, state: DriftState) -> Evidence:
    """Return the highest evidence so far. The difference to the anchor counts only while the statements alarm."""
    now = state.evidence
    confirms = now.apart if now.shift >= state.promise.threshold else None
    return Evidence(
        shift=max(before.shift, now.shift),
        day=max(before.day, now.day),
        apart=_highest([before.apart, confirms, None if state.anchor is None else -np.inf]),
        instrument=_highest([before.instrument, now.instrument]),
    )


def _highest(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def level_of(
    state: DriftState, metric: str, *, is_anchor: bool = False, refused: Insufficient | None = None
) -> Level | None:
    """Return the level of a series' findings.

    Only measures that share the promise can page. A change of the anchor itself is a change of the instrument, because
    the anchor is chosen for not changing. A series has no findings where its readers support none (``refused``).
    """
    if refused is not None:
        return None
    level = state.level
    if level is not None and is_anchor:
        return "instrument"
    return "investigate" if level == "page" and metric not in PAGING else level


def scaled_evidence(evidence: Evidence, promise: Promise) -> Mapping[str, float]:
    """Return each detector's log evidence on a scale on which it alarms at ``-log(alpha)``.

    For ``days`` this is log(M / (K T)). The statements and the anchor's own series have a part of alpha, whose log is
    added; ``anchor``, the difference to the anchor, confirms at a fixed evidence. Without evidence a
    detector is absent.

    Examples
    --------
    >>> promise = Promise(alpha=0.05, horizon=90, series=2)
    >>> evidence = scaled_evidence(Evidence(shift=promise.threshold, day=-np.inf, apart=2.0), promise)
    >>> {name: round(value, 6) for name, value in evidence.items()}, float(round(-np.log(0.05), 6))
    ({'statements': 2.995732, 'anchor': 2.995732}, 2.995732)
    """
    thresholds = {
        STATEMENTS: (evidence.shift, promise.threshold),
        DAYS: (evidence.day, promise.day_threshold),
        ANCHOR: (evidence.apart, APART),
        INSTRUMENT: (evidence.instrument, promise.threshold),
    }
    return {
        name: value - threshold - float(np.log(promise.alpha))
        for name, (value, threshold) in thresholds.items()
        if value is not None and np.isfinite(value)
    }


def summary(
    state: DriftState, metric: str, *, is_anchor: bool = False, refused: Insufficient | None = None
) -> dict[str, Any]:
    """Return the summary of a state: its level or why it has none, its evidence, the smallest shift it would find."""
    smallest = detectable_shift(state.reference, state.promise.threshold, state.margin)
    if isinstance(smallest, Insufficient):
        shift: dict[str, Any] = {"missing": smallest.reason}
    else:
        shift = {"value": _scale(metric) * smallest}
    return {
        "level": level_of(state, metric, is_anchor=is_anchor, refused=refused),
        "refused": None if refused is None else refused.reason,
        "evidence": dict(scaled_evidence(state.evidence, state.promise)),
        "shift": shift,
        "shaken": bool(state.reference.shaken),  # a NumPy one when it has just been fitted
        "n_passes": state.n_passes,
        "n_statements": state.reference.n_statements,
    }


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """The difference between a window and the reference, over the same statements and conditions."""

    value: float
    low: float  #: 95 %, for a single look
    high: float
    n: int  #: responses
    n_statements: int


def change_since(reference: Reference, window: Pass, metric: str) -> Change | Insufficient:
    """Compare a window with the reference, paired by statement; the interval is over statements (MONITORING 1).

    Parameters
    ----------
    reference
        Reference of the measure.
    window
        The sum of its passes.
    metric
        For ``dni`` the change is that of A - B, not of the (1 + A - B) / 2 that is counted.

    Examples
    --------
    >>> rates = np.tile([0.2, 0.4], 50)[:, None]
    >>> was = Reference(expected=rates - 0.1, allowance=0.0, variance=0.0, overdispersion=1.0, levels=(),
    ...                 n_statements=100, n_passes=14)
    >>> change = change_since(was, Pass(events=rates * 10, trials=np.full((100, 1), 10.0)), "ir")
    >>> round(change.value, 3), round(change.low, 3), round(change.high, 3), change.n, change.n_statements
    (0.1, 0.1, 0.1, 1000, 100)
    """
    moved = shifts(window.rates, reference.expected)
    known = ~np.isnan(moved)
    size = int(known.sum())
    if size < MIN_STATEMENTS:
        return Insufficient(reason=f"{size} statements, {MIN_STATEMENTS} needed")
    scale = _scale(metric)
    mean = scale * float(moved[known].mean())
    half = scale * t_quantile(0.95, size - 1) * float(moved[known].std(ddof=1)) / size**0.5
    n = int(window.trials[known].sum())
    return Change(value=mean, low=mean - half, high=mean + half, n=n, n_statements=size)


def _scale(metric: str) -> float:
    """Return the factor of a count: a pass counts half of DNI."""
    return 2.0 if metric == "dni" else 1.0


def state_json(state: DriftState) -> Json:
    """Return a state as JSON; its reference, its anchor's and its promise are stored elsewhere.

    JSON has no infinities: the log evidence before the first pass is ``"-inf"``.
    """
    anchor = state.anchor
    highest = state.highest
    return {
        "margin": state.margin,
        "shift": _written(state.shift.log_sums),
        "day": {
            "series": state.day.series,
            "seed": state.day.seed,
            "levels": list(state.day.levels),
            "bets": _written(state.day.log_sums),
        },
        "anchor": None
        if anchor is None
        else {"itself": _written(anchor.itself.log_sums), "apart": _written(anchor.apart.log_sums)},
        "highest": {name: _number(getattr(highest, name)) for name in Evidence.__dataclass_fields__},
        "n_passes": state.n_passes,
    }


def state_of(
    written: Mapping[str, Any], reference: Reference, anchor: Reference | None, promise: Promise
) -> DriftState:
    """Read a state from JSON.

    Raises
    ------
    ValueError
        It was written with an anchor and is read without, or the other way round.
    """
    kept = written["anchor"]
    if (kept is None) != (anchor is None):
        raise ValueError("a drift state is read with the anchor it was started with")
    day = written["day"]
    return DriftState(
        reference=reference,
        promise=promise,
        margin=float(written["margin"]),
        shift=ShiftState(_read(written["shift"])),
        day=DayState(
            series=day["series"], seed=day["seed"], levels=tuple(map(float, day["levels"])), log_sums=_read(day["bets"])
        ),
        anchor=None
        if anchor is None
        else Anchor(reference=anchor, itself=ShiftState(_read(kept["itself"])), apart=ShiftState(_read(kept["apart"]))),
        highest=Evidence(**{name: _float(value) for name, value in written["highest"].items()}),
        n_passes=written["n_passes"],
    )


def _number(value: float | None) -> float | str | None:
    return value if value is None or math.isfinite(value) else str(value)


def _float(value: float | str | None) -> Any:
    return None if value is None else float(value)


def _written(values: tuple[float, ...]) -> list[float | str | None]:
    return [_number(value) for value in values]


def _read(values: list[float | str]) -> tuple[float, ...]:
    return tuple(map(float, values))
