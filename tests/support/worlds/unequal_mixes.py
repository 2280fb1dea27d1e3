"""Two deployments that were asked the same conditions unequally often, in worlds of different shape."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from auditor.metrics.paired import PairedDifference, paired_difference
from auditor.metrics.standardised import GridCounts
from auditor.stats.intervals import design_effect_wilson

Spread = Literal["normal", "heavy", "two"]


def inclinations(spread: Spread, sd: float, chance: np.random.Generator, statements: int) -> np.ndarray:
    """Draw how much statements are endorsed more than the average one, on the logit scale; shape [S, 1]."""
    shape = (statements, 1)
    drawn = {
        "normal": lambda: chance.standard_normal(shape),
        "heavy": lambda: chance.standard_t(3, shape) / np.sqrt(3),
        "two": lambda: np.where(chance.random(shape) < 0.15, 2.38, -0.42),
    }[spread]()
    return np.asarray(sd * drawn)


@dataclass(frozen=True, kw_only=True)
class MixWorld:
    """Statements with their own inclination; the second deployment endorses more by ``effect`` on the logit scale."""

    rates: tuple[float, ...]  #: of the average statement, by condition
    asked: tuple[tuple[float, ...], tuple[float, ...]]  #: mean answers a statement, by deployment and condition
    statements: int = 200
    spread: Spread = "normal"  #: of the statements' inclinations
    sd: float = 1.0  #: of the inclinations, on the logit scale
    own_sd: float = 0.4  #: of what a deployment adds of its own to a statement
    effect: float = 0.0

    def chances(self, chance: np.random.Generator, statements: int) -> list[np.ndarray]:
        """Draw statements, and return the chance that each deployment endorses them; shape [S, C] each."""
        logits = np.log(np.array(self.rates) / (1 - np.array(self.rates))) + inclinations(
            self.spread, self.sd, chance, statements
        )
        own = [chance.normal(0, self.own_sd, (statements, 1)) for _ in range(2)]
        return [1 / (1 + np.exp(-(logits + apart + self.effect * side))) for side, apart in enumerate(own)]

    def audit(self, chance: np.random.Generator) -> tuple[GridCounts, GridCounts]:
        """Draw one audit of both deployments."""
        counts = []
        for p, asked in zip(self.chances(chance, self.statements), self.asked, strict=True):
            whole = np.floor(asked)
            n = (whole + (chance.random(p.shape) < np.array(asked) - whole)).astype(np.int64)
            counts.append(GridCounts(events=chance.binomial(n, p).astype(float), trials=n.astype(float)))
        return counts[0], counts[1]

    def truths(self) -> np.ndarray:
        """Return each deployment's rate with equal weights of the conditions; shape [2]."""
        chances = self.chances(np.random.default_rng(0), 400_000)
        return np.array([p.mean() for p in chances])


_TASKS: Final = (0.10, 0.25, 0.50, 0.10, 0.12, 0.15)
WORLDS: Final[Mapping[str, MixWorld]] = {
    "tasks, 1 to 3": MixWorld(rates=_TASKS, asked=((1, 1, 1, 1, 1, 1), (0.5, 1, 3, 0.5, 0.5, 0.5))),
    "two conditions, crossed": MixWorld(rates=(0.07, 0.56), asked=((4, 1), (1, 4)), statements=100, sd=1.5),
    "heavy tails, few statements": MixWorld(
        rates=(0.2, 0.4, 0.3), asked=((1, 1, 1), (0.6, 2, 1)), statements=40, spread="heavy", sd=2.0
    ),
    "two kinds of statements": MixWorld(rates=(0.1, 0.6), asked=((1, 0.4), (0.4, 1)), spread="two", own_sd=0.0),
    "21 conditions": MixWorld(
        rates=(0.3, *[0.1 + 0.02 * k for k in range(20)]), asked=((1,) * 21, (0.2,) * 10 + (1,) * 11)
    ),
    "rare": MixWorld(rates=(0.005, 0.02, 0.04), asked=((1, 1, 1), (1, 2, 4))),
    "few common questions": MixWorld(rates=_TASKS, asked=((0.4,) * 6, (0.4, 0.4, 0.4, 0.2, 0.2, 0.8)), statements=150),
    "B worse by .5": MixWorld(rates=_TASKS, asked=((1, 1, 2, 1, 1, 1), (1, 1, 0.5, 1, 1, 1)), effect=0.5),
    "many draws": MixWorld(rates=(0.1, 0.3), asked=((20, 5), (5, 20)), statements=120, own_sd=0.2, effect=0.3),
    "rare, B worse": MixWorld(rates=(0.002, 0.004), asked=((1, 1), (1, 3)), effect=1.5, sd=0.5),
    "15 statements": MixWorld(rates=(0.2, 0.5), asked=((2, 1), (1, 2)), statements=15),
}


def worse_by_overlap(first: GridCounts, second: GridCounts) -> bool:
    """Return whether the intervals of the two pooled rates do not overlap."""
    low, high = sorted(
        (design_effect_wilson(side.events.sum(1), side.trials.sum(1)) for side in (first, second)),
        key=lambda each: each.low,
    )
    return low.high < high.low


def held_and_found(first: GridCounts, second: GridCounts, truth: float) -> tuple[bool, bool]:
    """Return whether the paired interval holds the true difference, and whether it shows a difference."""
    paired = paired_difference(first, second)
    assert isinstance(paired, PairedDifference)
    return paired.low <= truth <= paired.high, paired.p <= 0.05
