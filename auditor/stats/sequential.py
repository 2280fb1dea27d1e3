"""Is a mean difference small enough not to matter, or large enough to? Decided by bets, after every single value.

Four bettors start with 1 each. A bettor's wealth grows on average only if its null is false, so that it ever reaches
1 / alpha has probability alpha at most, however often one looks and whenever one stops (Ville). Nothing is asymptotic:
it holds for any distribution of values within their bounds.
"""

from dataclasses import dataclass
from math import exp, inf, isfinite, log, log1p, sqrt
from typing import Final

from auditor.domain.estimate import Insufficient
from auditor.stats.confidence_sequences import asymptotic_sequence
from auditor.stats.equivalence import Verdict
from auditor.stats.intervals import Interval

#: Values before the asymptotic confidence sequence is read.
ENOUGH: Final = 50
#: The most that a bet may lose, as a share of the wealth. Chosen by this project: with a half, verdicts take 1.4 times
#: as long; with nine tenths they come a seventh sooner, and a rare value of the other kind costs nearly all there is.
_LARGEST_LOSS: Final = 0.75
#: What the values are taken to vary by before there are any, as a share of their bound; it counts as one value.
_FIRST_SD: Final = 0.25
#: A spread below this share of the bound is rounding and no spread.
_ROUNDING: Final = 1e-12


@dataclass(kw_only=True, slots=True)
class SequentialTOST:
    """Two one-sided tests of a mean difference against a margin, and the test of its exceeding the margin, watched.

    ``equivalent`` once the bets against both one-sided nulls have reached 1 / alpha: an intersection of nulls, which
    takes no correction. ``different`` once the bets against the mean's lying within the margin have, half of them
    placed on either side (MONITORING 4). Either wrong verdict ever comes with probability at most alpha, as long as
    each value's mean, given those before it, is what the null says. The first verdict stays; the evidence goes on.

    The fields are the whole state, plain numbers: ``SequentialTOST(**asdict(one))`` goes on where ``one`` was.

    Attributes
    ----------
    margin
        The largest difference that does not matter, positive, below ``bound``. Fixed before the first value: one that
        is made of the values that are tested voids the promise.
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

    >>> one = SequentialTOST(margin=0.5, bound=9.0)
    >>> [one.update(4.0) for _ in range(17)][-1], one.after
    ('different', 17)
    >>> one = SequentialTOST(margin=0.5, bound=9.0)
    >>> [one.update(0.0) for _ in range(100)][-1], one.after
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
        """Place all bets on one value and give the verdict so far.

        Parameters
        ----------
        difference
            In [-bound, bound]: of one cluster. Repeated measurements of a cluster are averaged first.

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
        """Log evidence that the mean lies beyond the margin: half the stake on each side."""
        high, low = max(self.above, self.below), min(self.above, self.below)
        return high + log1p(exp(low - high)) - log(2)

    def sequence(self) -> Interval | Insufficient:
        """Bound the mean at all times at once, asymptotically: narrower than bets where values are far from the bound.

        Departs from the bets in what it rests on: a mean of so many values is taken for normal, so that a value which
        is rare and large is not allowed for.

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
        """Bet that the mean of ``sign * difference + room`` is positive, as much as the values before suggest.

        The stake is the mean over the mean square (Waudby-Smith & Ramdas 2024, aGRAPA), as far as ``_LARGEST_LOSS``
        lets it; where the mean is not positive there is no bet.
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
        Of a mean difference.
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
