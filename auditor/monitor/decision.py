"""Decide the level of a series' evidence: page, investigate, instrument, or none (MONITORING 3.2)."""

from dataclasses import dataclass
from typing import Final, Literal

from auditor.stats.evidence import log_threshold

Level = Literal["page", "investigate", "instrument"]

#: Share of the promise's alpha for the detectors; the references' allowances have the rest. Chosen by this project.
DETECTORS: Final = 0.6
#: With an anchor, a page needs at least this evidence of the difference to the anchor. No promise rests on it; it was
#: chosen by simulation (shocks of 2.4 points a day that the anchor shares).
APART: Final = 2.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Promise:
    """The probability that a deployment that never changes pages within the horizon is at most ``alpha``."""

    alpha: float
    horizon: int  #: passes
    series: int  #: that may page

    @property
    def threshold(self) -> float:
        """Return the threshold of the paired detector's log evidence."""
        return log_threshold(self.horizon, DETECTORS * self.alpha, self.series)

    @property
    def day_threshold(self) -> float:
        """Return the threshold of the day detector's log evidence: it needs no reference, so it has all of alpha."""
        return log_threshold(self.horizon, self.alpha, self.series)

    @property
    def reference_alpha(self) -> float:
        """Return the part of alpha for all references' allowances."""
        return (1 - DETECTORS) * self.alpha


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """The log evidence of each detector for one series: at one moment, or the highest since the reference."""

    shift: float  #: evidence of a change of statements from their reference
    day: float  #: evidence of a change of days from the days before
    apart: float | None  #: evidence of a difference to the anchor; None without an anchor
    instrument: float | None = None  #: evidence of a change of the anchor itself from its reference


def decide(evidence: Evidence, promise: Promise, *, shaken: bool = False) -> Level | None:
    """Return the level of a series' evidence, or None.

    Parameters
    ----------
    evidence
        Highest so far: an alarm stays until the reference is replaced.
    promise
        Promise with the thresholds.
    shaken
        Whether the reference's days vary more than statements explain, so that statements alone are no evidence.

    Returns
    -------
    str or None
        ``page``: the statements moved, and the days or the difference to the anchor confirm it. ``investigate``: the
        statements moved, and nothing confirms it. ``instrument``: only the days moved, or the anchor itself, or
        statements whose days vary too much (``shaken``).

    Examples
    --------
    >>> promise = Promise(alpha=0.05, horizon=90, series=2)
    >>> decide(Evidence(shift=9.0, day=1.0, apart=None), promise)
    'investigate'
    >>> decide(Evidence(shift=9.0, day=1.0, apart=2.5), promise)
    'page'
    """
    limit = promise.threshold
    moved, shook = evidence.shift >= limit, evidence.day >= promise.day_threshold
    if evidence.instrument is not None and evidence.instrument >= limit and not _apart(evidence):
        return "instrument"
    if moved and (shook if evidence.apart is None else _apart(evidence)):
        return "page"
    if moved and not shook and not shaken:
        return "investigate"
    return "instrument" if moved or shook else None


def _apart(evidence: Evidence) -> bool:
    return evidence.apart is not None and evidence.apart >= APART
