"""The two detectors of one series: statements against their reference, and days against all days before.

States are a few floats and carry everything: the same passes in the same order give the same evidence, bit for bit.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from auditor.metrics.joint import Floats
from auditor.stats import conformal, shift_bets
from auditor.stats.evidence import NOTHING, carry_on, together

_SHAPE: Final = (2, len(shift_bets.STAKES))
_DAY_SHAPE: Final = (2, len(conformal.EXPONENTS))


def _nothing(shape: tuple[int, int]) -> tuple[float, ...]:
    return (NOTHING,) * (shape[0] * shape[1])


@dataclass(frozen=True, slots=True)
class ShiftState:
    """Evidence of the paired detector, by side and stake (MONITORING 3.1)."""

    bets: tuple[float, ...] = _nothing(_SHAPE)

    @property
    def evidence(self) -> float:
        """The logarithm of what all bets together have won; ``-inf`` before the first pass."""
        return float(together(np.array(self.bets).reshape(_SHAPE), 2))

    @property
    def side(self) -> int:
        """1 where the evidence is mostly of a rise, -1 of a fall."""
        up, down = together(np.array(self.bets).reshape(_SHAPE), 1)
        return 1 if up >= down else -1

    def after(self, moved: Floats, allowance: float, bound: float = 1.0) -> "ShiftState":
        """Bet on one whole pass.

        Parameters
        ----------
        moved
            Shape [S]: see ``passes.shifts``; for a comparison with an anchor the difference of both.
        allowance
            Of the reference, and the margin that nobody cares about.
        bound
            2 for a difference of two shifts.
        """
        growth = shift_bets.log_growth(moved, np.array(allowance), bound)
        return ShiftState(tuple(carry_on(np.array(self.bets).reshape(_SHAPE), growth).ravel().tolist()))


@dataclass(frozen=True, kw_only=True, slots=True)
class DayState:
    """Evidence of the day detector, and the levels of all days it has seen (MONITORING 3.2)."""

    series: str  #: names the random draws that break ties: with the seed, every series has its own
    seed: int
    levels: tuple[float, ...] = ()
    bets: tuple[float, ...] = field(default=_nothing(_DAY_SHAPE))

    @property
    def evidence(self) -> float:
        """The logarithm of what all bets together have won."""
        return float(together(np.array(self.bets).reshape(_DAY_SHAPE), 2))

    def seeded(self, levels: Sequence[float]) -> "DayState":
        """Know the reference's days, without betting on them."""
        return replace(self, levels=tuple(levels))

    def after(self, level: float) -> "DayState":
        """Bet on one day's rank."""
        rank = conformal.smoothed_rank(np.array(self.levels), np.array(level), np.array(self._draw()))
        growth = conformal.log_growth(rank)
        bets = carry_on(np.array(self.bets).reshape(_DAY_SHAPE), growth)
        return replace(self, levels=(*self.levels, level), bets=tuple(bets.ravel().tolist()))

    def _draw(self) -> float:
        digest = hashlib.blake2b(f"{self.seed}/{self.series}/{len(self.levels)}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") / 2**64
