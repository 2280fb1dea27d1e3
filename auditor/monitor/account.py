"""What a watch says to people: its level, its evidence on one scale for all detectors, and how large the change is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from auditor.domain.estimate import Insufficient
from auditor.metrics.estimate import MIN_STATEMENTS
from auditor.monitor.decision import APART, Evidence, Level, Promise
from auditor.monitor.detectable import detectable_shift
from auditor.monitor.passes import PAGING, Pass, shifts
from auditor.monitor.reference import Reference
from auditor.monitor.watch import Watch
from auditor.stats.intervals import t_quantile

#: Names of the detectors, as series and findings have them.
STATEMENTS: Final = "statements"
DAYS: Final = "days"
ANCHOR: Final = "anchor"
INSTRUMENT: Final = "instrument"


def level_of(watch: Watch, metric: str, *, is_anchor: bool = False) -> Level | None:
    """Say what a person should be told of a series.

    Nobody is woken for a measure without a part in the promise. Where the anchor itself has moved, the instrument has:
    it is chosen because it does not change.
    """
    level = watch.level
    if level is not None and is_anchor:
        return "instrument"
    return "investigate" if level == "page" and metric not in PAGING else level


def on_one_scale(evidence: Evidence, promise: Promise) -> Mapping[str, float]:
    """Give each detector's log evidence so that it speaks at ``-log(alpha)``.

    For ``days`` this is log(M / (K T)). The statements and the anchor's own have a part of alpha, whose log is added;
    ``anchor``, the difference to it, confirms at a fixed evidence. What has no evidence yet is absent.

    Examples
    --------
    >>> promise = Promise(alpha=0.05, horizon=90, series=2)
    >>> found = on_one_scale(Evidence(shift=promise.threshold, day=-np.inf, apart=2.0), promise)
    >>> {name: round(value, 6) for name, value in found.items()}, float(round(-np.log(0.05), 6))
    ({'statements': 2.995732, 'anchor': 2.995732}, 2.995732)
    """
    speaks = {
        STATEMENTS: (evidence.shift, promise.threshold),
        DAYS: (evidence.day, promise.day_threshold),
        ANCHOR: (evidence.apart, APART),
        INSTRUMENT: (evidence.instrument, promise.threshold),
    }
    return {
        name: value - threshold - float(np.log(promise.alpha))
        for name, (value, threshold) in speaks.items()
        if value is not None and np.isfinite(value)
    }


def told(watch: Watch, metric: str, *, is_anchor: bool = False) -> dict[str, Any]:
    """Write what series show of a watch: its level, its evidence, and the smallest shift that would be told."""
    smallest = detectable_shift(watch.reference, watch.promise.threshold, watch.margin)
    if isinstance(smallest, Insufficient):
        shift: dict[str, Any] = {"missing": smallest.reason}
    else:
        shift = {"value": _scale(metric) * smallest}
    return {
        "level": level_of(watch, metric, is_anchor=is_anchor),
        "evidence": dict(on_one_scale(watch.evidence, watch.promise)),
        "shift": shift,
        "shaken": bool(watch.reference.shaken),  # a NumPy one when it has just been fitted
        "n_passes": watch.n_passes,
        "n_statements": watch.reference.n_statements,
    }


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """How far a window lies from the reference, over the same statements and conditions."""

    value: float
    low: float  #: 95 %, for who looks once
    high: float
    n: int  #: responses
    n_statements: int


def change_since(reference: Reference, window: Pass, metric: str) -> Change | Insufficient:
    """Compare a window with the reference, paired by statement; the interval is over statements (MONITORING 1).

    Parameters
    ----------
    reference
        Of the measure.
    window
        Its passes added up.
    metric
        For ``dni`` the change is that of A - B, not of the (1 + A - B) / 2 that is counted.

    Examples
    --------
    >>> rates = np.tile([0.2, 0.4], 50)[:, None]
    >>> was = Reference(expected=rates - 0.1, allowance=0.0, variance=0.0, overdispersion=1.0, levels=(),
    ...                 n_statements=100, n_passes=14)
    >>> found = change_since(was, Pass(events=rates * 10, trials=np.full((100, 1), 10.0)), "ir")
    >>> round(found.value, 3), round(found.low, 3), round(found.high, 3), found.n, found.n_statements
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
    """Say what a count is to be multiplied by: what is counted of DNI is half of it."""
    return 2.0 if metric == "dni" else 1.0
