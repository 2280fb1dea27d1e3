"""A sample of stored exchanges, drawn in one pass: the same seed draws the same, whatever the order they come in.

Pure; it knows only an exchange's id and how likely it was to be kept. What is drawn carries both probabilities on, so
that whoever estimates can weight by what each exchange stands for.
"""

import heapq
from collections import Counter
from collections.abc import Mapping
from typing import Final, Generic, Protocol, TypeVar
from uuid import UUID

from auditor.domain.sampling import rank
from replay.selecting import Chances, Selection

_RANKS: Final = 2.0**64


class Kept(Protocol):
    """What is asked of an exchange."""

    @property
    def id(self) -> UUID:
        """Decides, with the seed, its place in the draw."""

    @property
    def inclusion(self) -> float:
        """Probability with which it was kept, (0, 1]."""


_Kept = TypeVar("_Kept", bound=Kept)


class Draw(Generic[_Kept]):
    """Takes at most as many as the selection says of what it is shown, and holds no more than it takes.

    With even chances this is a simple random sample. With chances by traffic it is sequential Poisson sampling: those
    with the smallest ``u / w`` are taken, ``u`` a uniform number and ``w = 1 / inclusion`` (Ohlsson 1998, Sequential
    Poisson Sampling, Journal of Official Statistics 14(2)).
    """

    def __init__(self, selection: Selection) -> None:
        self._limit, self._seed = selection.limit, selection.seed
        self._by_traffic = selection.draw is Chances.TRAFFIC
        self._taken: list[tuple[float, int, _Kept]] = []
        self._seen: Counter[float] = Counter()

    def show(self, one: _Kept) -> None:
        """Show one exchange; each only once."""
        self._seen[one.inclusion] += 1
        place = rank(self._seed, one.id.bytes) / _RANKS * (one.inclusion if self._by_traffic else 1.0)
        # The heap's first is the one to go: the last of those that are taken.
        entry = (-place, -one.id.int, one)
        if self._limit is None or len(self._taken) < self._limit:
            heapq.heappush(self._taken, entry)
        else:
            heapq.heappushpop(self._taken, entry)

    @property
    def taken(self) -> list[_Kept]:
        """What is drawn of all that was shown, by id: the oldest first."""
        return sorted((one for _, _, one in self._taken), key=lambda one: one.id)

    @property
    def chances(self) -> Mapping[float, float]:
        """Probability of having been drawn, (0, 1], by the probability of having been kept."""
        if self._limit is None:
            return dict.fromkeys(self._seen, 1.0)
        if self._by_traffic:
            return proportional(self._seen, self._limit)
        return dict.fromkeys(self._seen, min(1.0, self._limit / max(1, self._seen.total())))


def proportional(kept: Mapping[float, int], n: int) -> dict[float, float]:
    """Share out ``n`` draws in proportion to what each exchange stands for, none more than certain.

    Parameters
    ----------
    kept
        How many exchanges there are by their inclusion probability, (0, 1].
    n
        Draws, at least 1.

    Returns
    -------
    dict
        Probability of being drawn, ``min(1, c / inclusion)``; over all exchanges they sum to ``n``, or to all there is.

    Examples
    --------
    Of 30 that stand for one each and 5 that stand for four each, 10 are drawn: about 6 and 4.

    >>> proportional({1.0: 30, 0.25: 5}, 10)
    {1.0: 0.2, 0.25: 0.8}
    """
    certain: set[float] = set()
    # Those that stand for most come first; once one is not certain, none after it is.
    for inclusion in sorted(kept):
        if _share(kept, certain, n) < inclusion:
            break
        certain.add(inclusion)
    share = _share(kept, certain, n)
    return {one: 1.0 if one in certain else share / one for one in kept}


def _share(kept: Mapping[float, int], certain: set[float], n: int) -> float:
    """Give ``c``: what is left of the draws, over what the rest stands for."""
    left = n - sum(kept[one] for one in certain)
    rest = sum(count / one for one, count in kept.items() if one not in certain)
    return max(0.0, left) / rest if rest else 0.0
