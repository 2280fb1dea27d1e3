"""References and states as JSON and back, to the last bit: what is read again goes on as if it had never been written.

JSON has neither infinities nor NaN: log evidence of nothing is ``"-inf"``, a rate that is not known ``null``.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from auditor.domain.estimate import Insufficient
from auditor.metrics.joint import Floats
from auditor.monitor.decision import Evidence, Promise
from auditor.monitor.detectors import DayState, ShiftState
from auditor.monitor.reference import Reference
from auditor.monitor.watch import Anchor, Watch

Json = dict[str, Any]

_PLAIN = ("allowance", "variance", "overdispersion", "n_statements", "n_passes")


def reference_json(reference: Reference | Insufficient) -> Json:
    """Write a reference, or why there is none."""
    if isinstance(reference, Insufficient):
        return {"missing": reference.reason}
    return {
        "expected": [[None if math.isnan(rate) else rate for rate in row] for row in reference.expected.tolist()],
        "levels": list(reference.levels),
        **{name: getattr(reference, name) for name in _PLAIN},
    }


def reference_of(written: Mapping[str, Any]) -> Reference | Insufficient:
    """Read a reference again."""
    if "missing" in written:
        return Insufficient(reason=written["missing"])
    expected: Floats = np.array(written["expected"], dtype=np.float64)
    return Reference(
        expected=expected, levels=tuple(map(float, written["levels"])), **{name: written[name] for name in _PLAIN}
    )


def watch_json(watch: Watch) -> Json:
    """Write what a watch has seen; its reference, its anchor's and its promise are kept elsewhere."""
    anchor = watch.anchor
    highest = watch.highest
    return {
        "margin": watch.margin,
        "shift": _written(watch.shift.bets),
        "day": {
            "series": watch.day.series,
            "seed": watch.day.seed,
            "levels": list(watch.day.levels),
            "bets": _written(watch.day.bets),
        },
        "anchor": None
        if anchor is None
        else {"itself": _written(anchor.itself.bets), "apart": _written(anchor.apart.bets)},
        "highest": {name: _number(getattr(highest, name)) for name in Evidence.__dataclass_fields__},
        "n_passes": watch.n_passes,
    }


def watch_of(written: Mapping[str, Any], reference: Reference, anchor: Reference | None, promise: Promise) -> Watch:
    """Read a watch again.

    Raises
    ------
    ValueError
        It was written with an anchor and is read without, or the other way round.
    """
    kept = written["anchor"]
    if (kept is None) != (anchor is None):
        raise ValueError("a watch is read with the anchor it was begun with")
    day = written["day"]
    return Watch(
        reference=reference,
        promise=promise,
        margin=float(written["margin"]),
        shift=ShiftState(_read(written["shift"])),
        day=DayState(
            series=day["series"], seed=day["seed"], levels=tuple(map(float, day["levels"])), bets=_read(day["bets"])
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
