"""Test sequentially whether a mean difference lies within a margin or beyond it.

Four e-processes start with 1 each. The mean of each grows only if its null hypothesis is false, so the probability
that it ever reaches 1 / alpha is at most alpha, for any number of looks and any stopping time (Ville's inequality).
This is not asymptotic: it holds for any distribution of values within their bounds.
"""

from dataclasses import dataclass
from math import exp, inf, isfinite, log, log1p, sqrt
from typing import Final

import numpy as np

from auditor.domain.estimate import Insufficient
from auditor.stats.differences import Verdict
from auditor.stats.intervals import Interval

#: Values before the asymptotic confidence sequence is read.
ENOUGH: Final = 50
#: Largest loss of an e-process by one value, as a share of it. Chosen by this project: with a half, verdicts take 1.4
#: times as long; with nine tenths they come a seventh sooner, but a rare value of the other kind costs nearly all.
_LARGEST_LOSS: Final = 0.75
#: The assumed spread before the first value, as a share of the bound; it counts as one value.
_FIRST_SD: Final = 0.25
#: A spread below this share of the bound is a rounding error.
_ROUNDING: Final = 1e-12


@dataclass(kw_only=True, slots=True)
class SequentialTOST:
    """Sequential test of a mean difference: within a margin, or beyond it.

    The verdict is ``equivalent`` when the e-processes against both one-sided nulls have reached 1 / alpha; this is an
    intersection of nulls, so it needs no correction. It is ``different`` when the mean of the two e-processes against a
    difference within the margin has (MONITORING 4). Each wrong verdict has probability at most alpha over all times, as
    long as each value's mean, given those before it, is what the null says. The first verdict stays; the evidence is
    still updated.

    The fields are the whole state in plain numbers: ``SequentialTOST(**asdict(one))`` continues ``one``.

    Attributes
    ----------
    margin
        The largest difference that does not matter, positive, below ``bound``. Fixed before the first value: a margin
        that depends on the tested values makes the error bound invalid.
    bound
        No difference is larger, in either direction: 9 for scores from 1 to 10, 2 for cosine distances.
    alpha
        Probability of either wrong verdict, in (0, 1).

    Raises
    ------
    ValueError
        For a margin or alpha out of its range.

    Examples
    --------
    Differences of 4 where a half would not matter; and none at all, which takes longer.

    >>> test = SequentialTOST(margin=0.5, bound=9.0)
    >>> [test.update(4.0) for _ in range(17)][-1], test.after
    ('different', 17)
    >>> test = SequentialTOST(margin=0.5, bound=9.0)
    >>> [test.update(0.0) for _ in range(100)][-1], test.after
    ('equivalent', 70)
    """

    margin: float
    bound: float
    alpha: float = 0.05
    n: int = 0
    mean: float = 0.0
    squares: float = 0.0  #: sum of squared deviations from the mean
    lower: float = 0.0  #: log wealth against: the mean is at or below ``-margin``
    upper: float = 0.0  #: against: it is at or above ``margin``
    above: float = 0.0  #: against: it is at or below ``margin``
    below: float = 0.0  #: against: it is at or above ``-margin``
    verdict: Verdict = "inconclusive"
    after: int | None = None  #: values until the verdict; None as long as there is none

    def __post_init__(self) -> None:
        if not 0 < self.margin < self.bound < inf:
            raise ValueError("the margin must be positive and below the bound")
        if not 0 < self.alpha < 1:
            raise ValueError("alpha must be between 0 and 1")

    def update(self, difference: float) -> Verdict:
        """Add one value and return the verdict so far.

        Parameters
        ----------
        difference
            Difference of one cluster, in [-bound, bound]. Repeated measurements of a cluster are averaged first.

        Raises
        ------
        ValueError
            For a value beyond the bound, or none.
        """
        if not isfinite(difference) or abs(difference) > self.bound * (1 + 1e-9):
            raise ValueError(f"a difference is beyond {self.bound:g}")
        self.lower += self._growth(difference, 1, self.margin)
        self.upper += self._growth(difference, -1, self.margin)
        self.above += self._growth(difference, 1, -self.margin)
        self.below += self._growth(difference, -1, -self.margin)
        self.n += 1
        step = difference - self.mean
        self.mean += step / self.n
        self.squares += step * (difference - self.mean)
        if self.after is None:
            self._decide()
        return self.verdict

    @property
    def different(self) -> float:
        """Log evidence that the mean lies beyond the margin: the mean over both sides."""
        high, low = max(self.above, self.below), min(self.above, self.below)
        return high + log1p(exp(low - high)) - log(2)

    def sequence(self) -> Interval | Insufficient:
        """Return the asymptotic confidence sequence, which is narrower where values are far from the bound.

        It needs more than the e-processes: the mean must be nearly normal, so there may be no rare large values.

        Returns
        -------
        Interval or Insufficient
            Nothing before ``ENOUGH`` values, or where none differs from another.
        """
        if self.n < ENOUGH:
            return Insufficient(reason=f"fewer than {ENOUGH} values")
        sd = sqrt(self.squares / (self.n - 1))
        if sd <= _ROUNDING * self.bound:
            return Insufficient(reason="the values do not vary")
        return asymptotic_sequence(self.n, self.mean, sd, alpha=self.alpha)

    def _growth(self, difference: float, sign: int, room: float) -> float:
        """Return the log factor of one value for a positive mean of ``sign * difference + room``.

        The stake is the mean over the mean square (Waudby-Smith & Ramdas 2024, aGRAPA), as far as ``_LARGEST_LOSS``
        allows; without a positive mean the factor is 1.
        """
        weight = self.n + 1
        expected = sign * self.mean * self.n / weight + room
        if expected <= 0:
            return 0.0
        variance = (self.squares + (_FIRST_SD * self.bound) ** 2) / weight
        stake = min(expected / (variance + expected**2), _LARGEST_LOSS / (self.bound - room))
        return log1p(stake * (sign * difference + room))

    def _decide(self) -> None:
        enough = log(1 / self.alpha)
        if min(self.lower, self.upper) >= enough:
            self.verdict, self.after = "equivalent", self.n
        elif self.different >= enough:
            self.verdict, self.after = "different", self.n


def read_sequence(bounds: Interval, margin: float) -> Verdict:
    """Read a confidence sequence against a margin.

    Parameters
    ----------
    bounds
        Bounds of a mean difference.
    margin
        The largest difference that does not matter, positive.

    Examples
    --------
    >>> [read_sequence(Interval(low=low, high=low + 1), 1.0) for low in (-0.5, 1.5, 0.5)]
    ['equivalent', 'different', 'inconclusive']
    """
    if -margin < bounds.low and bounds.high < margin:
        return "equivalent"
    return "different" if bounds.low > margin or bounds.high < -margin else "inconclusive"


def asymptotic_sequence(n: int, mean: float, sd: float, *, alpha: float = 0.05, best_at: int = 60) -> Interval:
    """Bound a mean of independent units after n of them, valid at all times (Waudby-Smith et al.; MONITORING 2).

    Parameters
    ----------
    n
        Units so far, at least 2; about 20 before the asymptotics hold.
    mean, sd
        Mean and standard deviation of the units so far.
    alpha
        Probability that the interval ever misses.
    best_at
        The number of units for which it is narrowest.

    Examples
    --------
    About 1.6 times as wide as the interval that may be looked at once.

    >>> sequence = asymptotic_sequence(60, 0.0, 1.0)
    >>> round(sequence.high / (1.96 / 60**0.5), 2)
    1.55
    """
    rho2 = (2 * np.log(1 / alpha) + np.log(1 + 2 * np.log(1 / alpha))) / best_at
    spread = n * rho2 + 1
    half = sd * np.sqrt(2 * spread / (n**2 * rho2) * np.log(np.sqrt(spread) / alpha))
    return Interval(low=float(mean - half), high=float(mean + half))
