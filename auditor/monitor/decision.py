"""What is made of the evidence of a deployment's series: page, investigate, instrument, or nothing (MONITORING 3.2)."""

from dataclasses import dataclass
from typing import Final, Literal

from auditor.stats.evidence import log_threshold

Level = Literal["page", "investigate", "instrument"]

#: Of the promise's alpha, the detectors have this part; the reference's allowances the rest. Chosen by this project.
DETECTORS: Final = 0.6
#: With an anchor: a person is woken only where the difference to the anchor has at least so much evidence of its own.
#: No promise rests on it; it was chosen by simulation (shocks of 2.4 points a day that the anchor shares).
APART: Final = 2.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Promise:
    """P(a deployment whose truth never changes ever pages within the horizon) is at most ``alpha``."""

    alpha: float
    horizon: int  #: passes
    series: int  #: that may page

    @property
    def threshold(self) -> float:
        """What the log of the paired detector's evidence must reach."""
        return log_threshold(self.horizon, DETECTORS * self.alpha, self.series)

    @property
    def day_threshold(self) -> float:
        """What the day detector's must reach: it rests on no reference, so all of alpha is its own."""
        return log_threshold(self.horizon, self.alpha, self.series)

    @property
    def reference_alpha(self) -> float:
        """What is left for the references' allowances together."""
        return (1 - DETECTORS) * self.alpha


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """Log evidence of one series at one moment, the highest of each since its reference."""

    shift: float  #: of statements against their reference
    day: float  #: of days against the days before
    apart: float | None  #: of the difference to the anchor; None without one
    instrument: float | None = None  #: of the anchor itself against its own reference


def decide(evidence: Evidence, promise: Promise, *, shaken: bool = False) -> Level | None:
    """Decide what a series' evidence is worth telling.

    Parameters
    ----------
    evidence
        Highest so far: what has alarmed stays alarmed until the reference is replaced.
    promise
        Whose threshold counts.
    shaken
        The reference's days vary more than statements explain: statements alone are not believed.

    Returns
    -------
    str or None
        ``page``: the statements moved, and so did the days, or the difference to the anchor. ``investigate``: the
        statements moved, and nothing confirms it. ``instrument``: the days alone moved, or the anchor itself, or
        statements on days that are known to be shaken.

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
