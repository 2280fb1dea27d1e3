"""The smallest shift that the paired detector is expected to tell within a week: what silence does not rule out."""

from typing import Final

import numpy as np

from auditor.domain.estimate import Insufficient
from auditor.monitor.reference import Reference
from auditor.stats.evidence import NOTHING, carry_on, together
from auditor.stats.shift_bets import STAKES

#: Passes after a change, the first one with it included.
WITHIN: Final = 7
_STEPS: Final = 40


def detectable_shift(reference: Reference, threshold: float, margin: float = 0.0) -> float | Insufficient:
    """Find the shift whose expected evidence reaches the threshold within ``WITHIN`` passes.

    Every statement is taken to shift alike, and its value in a pass to lie one standard deviation above or below that
    with equal chance; every pass then grows each bet by its expected logarithm, from no evidence on. Where days confirm
    a page, they need longer: this is the statements' detector alone.

    Parameters
    ----------
    reference
        Its allowance, the variance of a statement's shift in one pass, and the number of statements count.
    threshold
        Of the log evidence.
    margin
        Added to the allowance.

    Returns
    -------
    float or Insufficient
        In (0, 1); Insufficient where not even a shift of 1 would be told.

    Examples
    --------
    200 statements of which each varies by .23 from pass to pass: a little under 4 points.

    >>> nothing = np.empty((0, 0))
    >>> found = detectable_shift(Reference(expected=nothing, allowance=0.01, variance=0.055, overdispersion=1.0,
    ...                                    levels=(), n_statements=200, n_passes=14), 8.7)
    >>> round(found, 3)
    0.038
    """
    allowance = reference.allowance + margin
    spread = float(np.sqrt(reference.variance))

    def told(shift: float) -> bool:
        return _expected(shift - allowance, spread, reference.n_statements) >= threshold

    low, high = 0.0, 1.0
    if not told(high):
        return Insufficient(reason=f"{reference.n_statements} statements tell no shift within {WITHIN} passes")
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if told(middle) else (middle, high)
    return high


def _expected(gain: float, spread: float, statements: int) -> float:
    """Log evidence after ``WITHIN`` passes that each grow by what is expected."""
    gains = np.clip(np.array([gain + spread, gain - spread]), -1.0, 1.0)
    up, down = (np.log1p(np.outer(STAKES, sign * gains)).mean(axis=1) * statements for sign in (1.0, -1.0))
    evidence = np.full((2, len(STAKES)), NOTHING)
    for _ in range(WITHIN):
        evidence = carry_on(evidence, np.stack([up, down]))
    return float(together(evidence, 2))
