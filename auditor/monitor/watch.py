"""Watching one measure of one deployment, pass by pass: all its detectors in one state, and what it says by now."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from auditor.metrics.joint import Floats
from auditor.monitor.decision import Evidence, Level, Promise, decide
from auditor.monitor.detectors import DayState, ShiftState
from auditor.monitor.passes import Pass, shifts
from auditor.monitor.reference import Reference

_NONE = Evidence(shift=-np.inf, day=-np.inf, apart=None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Anchor:
    """A deployment that is known not to change, read by the same judges: its reference for the same measure."""

    reference: Reference
    itself: ShiftState = field(default_factory=ShiftState)
    apart: ShiftState = field(default_factory=ShiftState)  #: of the watched deployment's shifts less the anchor's


@dataclass(frozen=True, kw_only=True, slots=True)
class Watch:
    """The state of one series since its reference. ``after`` gives the next one; nothing else changes it."""

    reference: Reference
    promise: Promise
    margin: float  #: a shift up to here is none; added to the reference's allowance
    shift: ShiftState
    day: DayState
    anchor: Anchor | None = None
    highest: Evidence = _NONE
    n_passes: int = 0  #: since the reference

    def after(self, own: Pass, anchor: Pass | None = None) -> "Watch":
        """Look at one more whole pass; the anchor's of the same moment, where there is one."""
        moved = shifts(own.rates, self.reference.expected)
        allowance = self.reference.allowance + self.margin
        level = own.level
        new = replace(
            self,
            shift=self.shift.after(moved, allowance),
            day=self.day if level is None else self.day.after(level),
            anchor=self.anchor if self.anchor is None or anchor is None else self._anchored(self.anchor, moved, anchor),
            n_passes=self.n_passes + 1,
        )
        return replace(new, highest=_higher(self.highest, new))

    def _anchored(self, known: Anchor, moved: Floats, anchor: Pass) -> Anchor:
        drifted = shifts(anchor.rates, known.reference.expected)
        allowance = np.hypot(self.reference.allowance, known.reference.allowance) + self.margin
        return replace(
            known,
            itself=known.itself.after(drifted, known.reference.allowance),
            apart=known.apart.after(moved - drifted, float(allowance), bound=2.0),
        )

    @property
    def evidence(self) -> Evidence:
        """The log evidence by now."""
        anchor = self.anchor
        return Evidence(
            shift=self.shift.evidence,
            day=self.day.evidence,
            apart=None if anchor is None else anchor.apart.evidence,
            instrument=None if anchor is None else anchor.itself.evidence,
        )

    @property
    def level(self) -> Level | None:
        """What a person should be told."""
        return decide(self.highest, self.promise, shaken=self.reference.shaken)


def begin(
    reference: Reference,
    promise: Promise,
    *,
    series: str,
    seed: int,
    margin: float = 0.0,
    anchor: Reference | None = None,
) -> Watch:
    """Begin to watch against a reference.

    Parameters
    ----------
    reference
        Of the measure.
    promise
        Which the series shares with the others that may page.
    series, seed
        Name the draws that break ties between days.
    margin
        Smallest shift of interest, at least 0.
    anchor
        The anchor's reference for the same measure, over the same days.
    """
    return Watch(
        reference=reference,
        promise=promise,
        margin=margin,
        shift=ShiftState(),
        day=DayState(series=series, seed=seed).seeded(reference.levels),
        anchor=None if anchor is None else Anchor(reference=anchor),
    )


def _higher(before: Evidence, watch: Watch) -> Evidence:
    """Raise what was highest before. That the anchor stays behind counts on days on which the statements alarm."""
    now = watch.evidence
    confirms = now.apart if now.shift >= watch.promise.threshold else None
    return Evidence(
        shift=max(before.shift, now.shift),
        day=max(before.day, now.day),
        apart=_highest([before.apart, confirms, None if watch.anchor is None else -np.inf]),
        instrument=_highest([before.instrument, now.instrument]),
    )


def _highest(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
