"""Define the two drift detectors of one series, and the smallest shift that they are expected to find.

One compares each statement with its reference, the other compares each day with all days before it. Their states are
a few numbers, and the same passes in the same order give the same evidence to the last bit.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from auditor.counting.joint import Floats
from auditor.domain.estimate import Insufficient
from auditor.monitor.references import Reference
from auditor.stats.evidence import (
    EXPONENTS,
    NOTHING,
    STAKES,
    log_mean_exp,
    rank_log_factors,
    shift_log_factors,
    smoothed_rank,
    sr_update,
)

_SHAPE: Final = (2, len(STAKES))
_DAY_SHAPE: Final = (2, len(EXPONENTS))


def _nothing(shape: tuple[int, int]) -> tuple[float, ...]:
    return (NOTHING,) * (shape[0] * shape[1])


@dataclass(frozen=True, slots=True)
class ShiftState:
    """Evidence of the paired detector, by direction of the shift and stake (MONITORING 3.1)."""

    log_sums: tuple[float, ...] = _nothing(_SHAPE)

    @property
    def evidence(self) -> float:
        """Return the logarithm of the mean evidence over directions and stakes; ``-inf`` before the first pass."""
        return float(log_mean_exp(np.array(self.log_sums).reshape(_SHAPE), 2))

    @property
    def side(self) -> int:
        """Return 1 if most of the evidence is for a rise, -1 if for a fall."""
        up, down = log_mean_exp(np.array(self.log_sums).reshape(_SHAPE), 1)
        return 1 if up >= down else -1

    def update(self, moved: Floats, allowance: float, bound: float = 1.0) -> "ShiftState":
        """Return the state after one more whole pass.

        Parameters
        ----------
        moved
            Shape [S]: ``passes.shifts`` of the pass; for a comparison with an anchor, less the anchor's.
        allowance
            Allowance of the reference, plus the margin below which a shift does not matter.
        bound
            2 for a difference of two shifts.
        """
        factors = shift_log_factors(moved, np.array(allowance), bound)
        return ShiftState(tuple(sr_update(np.array(self.log_sums).reshape(_SHAPE), factors).ravel().tolist()))


@dataclass(frozen=True, kw_only=True, slots=True)
class DayState:
    """Evidence of the day detector, and the levels of all days so far (MONITORING 3.2)."""

    series: str  #: names the random draws that break ties between days; with the seed, each series has its own
    seed: int
    levels: tuple[float, ...] = ()
    log_sums: tuple[float, ...] = field(default=_nothing(_DAY_SHAPE))

    @property
    def evidence(self) -> float:
        """Return the logarithm of the mean evidence over directions and exponents."""
        return float(log_mean_exp(np.array(self.log_sums).reshape(_DAY_SHAPE), 2))

    def seeded(self, levels: Sequence[float]) -> "DayState":
        """Return a state with the levels of the reference's days, without evidence from them."""
        return replace(self, levels=tuple(levels))

    def update(self, level: float) -> "DayState":
        """Return the state after one more day."""
        rank = smoothed_rank(np.array(self.levels), np.array(level), np.array(self._draw()))
        factors = rank_log_factors(rank)
        log_sums = sr_update(np.array(self.log_sums).reshape(_DAY_SHAPE), factors)
        return replace(self, levels=(*self.levels, level), log_sums=tuple(log_sums.ravel().tolist()))

    def _draw(self) -> float:
        digest = hashlib.blake2b(f"{self.seed}/{self.series}/{len(self.levels)}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") / 2**64


#: Number of passes after a change, including the first pass with the change.
WITHIN: Final = 7
_STEPS: Final = 40


def detectable_shift(reference: Reference, threshold: float, margin: float = 0.0) -> float | Insufficient:
    """Find the smallest shift whose expected evidence reaches the threshold within ``WITHIN`` passes.

    The model: all statements shift alike, and in each pass a statement's value lies one standard deviation above or
    below that with equal chance. Each pass adds the expected logarithm to the evidence of each stake, from no evidence
    on. This is the paired detector alone; where days must confirm a page, they need longer.

    Parameters
    ----------
    reference
        Reference, of which the allowance, the variance and the number of statements are used.
    threshold
        Threshold of the log evidence.
    margin
        Added to the allowance.

    Returns
    -------
    float or Insufficient
        Shift in (0, 1); Insufficient where not even a shift of 1 would be found.

    Examples
    --------
    200 statements of which each varies by .23 from pass to pass: a little under 4 points.

    >>> nothing = np.empty((0, 0))
    >>> shift = detectable_shift(Reference(expected=nothing, allowance=0.01, variance=0.055, overdispersion=1.0,
    ...                                    levels=(), n_statements=200, n_passes=14), 8.7)
    >>> round(shift, 3)
    0.038
    """
    allowance = reference.allowance + margin
    spread = float(np.sqrt(reference.variance))

    def is_found(shift: float) -> bool:
        return _expected(shift - allowance, spread, reference.n_statements) >= threshold

    low, high = 0.0, 1.0
    if not is_found(high):
        return Insufficient(reason=f"{reference.n_statements} statements cannot show any shift within {WITHIN} passes")
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if is_found(middle) else (middle, high)
    return high


def _expected(gain: float, spread: float, statements: int) -> float:
    """Return the log evidence after ``WITHIN`` passes that each add what is expected."""
    gains = np.clip(np.array([gain + spread, gain - spread]), -1.0, 1.0)
    up, down = (np.log1p(np.outer(STAKES, sign * gains)).mean(axis=1) * statements for sign in (1.0, -1.0))
    evidence = np.full((2, len(STAKES)), NOTHING)
    for _ in range(WITHIN):
        evidence = sr_update(evidence, np.stack([up, down]))
    return float(log_mean_exp(evidence, 2))
