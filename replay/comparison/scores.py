"""One measure of every side, over the same parents: its sums by statement, and the intervals they support.

Which interval a score gets is what ``auditor.metrics.estimate`` found to cover; here answers are weighted by how many
exchanges they stand for, so plain Wilson, which knows single answers alone, is never used.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from auditor.domain.estimate import Base, Estimate, Insufficient, IntervalMethod
from auditor.metrics.estimate import ENOUGH_STATEMENTS, LOW_RATE, MIN_STATEMENTS, rate_flags
from auditor.metrics.joint import Floats
from auditor.metrics.rates import Metric
from auditor.stats.intervals import Interval, design_effect_wilson, difference_interval, rare_rate_bounds
from replay.comparison.sides import Sides

CONFIDENCE: Final = 0.95
TOO_FEW_WAYS: Final = Insufficient(reason=f"fewer than two ways of asking with {MIN_STATEMENTS} statements")


@dataclass(frozen=True, kw_only=True, slots=True)
class Scores:
    """Weighted sums of one measure; G statements, S sides."""

    metric: Metric
    successes: Floats  #: shape [G, S]; signed for DNI
    trials: Floats  #: shape [G, S]
    answers: tuple[int, ...]  #: in the base, by side, however many exchanges they stand for
    over: Floats  #: shape [G, S]: for DNI what is added, else the successes
    under: Floats  #: shape [G, S]: for DNI what is taken off, else 0

    @classmethod
    def of(cls, sides: Sides, metric: Metric) -> "Scores":
        """Sum a measure over each statement's parents."""
        worth, base = sides.worth(metric.numerator), sides.worth(metric.denominator)
        return cls(
            metric=metric,
            successes=sides.by_statement(worth),
            trials=sides.by_statement(base),
            answers=tuple((base > 0).sum(axis=0).tolist()),
            over=sides.by_statement(np.maximum(worth, 0)),
            under=sides.by_statement(np.maximum(-worth, 0)),
        )

    @property
    def statements(self) -> tuple[int, ...]:
        """Count the statements with an answer in the base, by side."""
        return tuple(np.count_nonzero(self.trials, axis=0).tolist())

    @property
    def span(self) -> int:
        """Largest difference that two scores can have."""
        return 2 if self.metric.kind == "difference" else 1

    def level(self, side: int) -> float:
        """How often anything happens that the measure counts: the rate itself, or for DNI that the layers disagree."""
        return float((self.over + self.under)[:, side].sum() / self.trials[:, side].sum())

    def enough(self, places: Iterable[int]) -> list[int]:
        """Keep the sides that have 15 statements in the base."""
        return [place for place in places if self.statements[place] >= MIN_STATEMENTS]

    def flags(self, side: int) -> tuple[str, ...]:
        """Say what a side's score may not be read as."""
        return rate_flags(self.level(side), few=self.statements[side] < ENOUGH_STATEMENTS)

    def interval(self, side: int, conf: float, seed: int) -> tuple[Interval, IntervalMethod]:
        """Bound one side's score; its base must not be empty."""
        level = self.level(side)
        y, n = self.successes[:, side], self.trials[:, side]
        if self.metric.kind != "difference":
            return share_interval(y, n, conf, seed)
        if min(level, 1 - level) >= LOW_RATE:
            return difference_interval(y, n, level * float(n.sum()), conf), "logit_cluster"
        parts = self.over[:, side], self.under[:, side]
        up, down = (rare_rate_bounds(part, n, (1 + conf) / 2, seed=seed) for part in parts)
        return Interval(low=up.low - down.high, high=up.high - down.low), "cluster_bootstrap"

    def estimate(self, side: int, seed: int) -> Estimate | Insufficient:
        """Estimate one side's score; Insufficient under 15 statements."""
        statements = self.statements[side]
        if statements < MIN_STATEMENTS:
            return Insufficient(
                reason=f"{statements} statements in the {self.metric.base} base, {MIN_STATEMENTS} needed"
            )
        value = float(self.successes[:, side].sum() / self.trials[:, side].sum())
        interval, method = self.interval(side, CONFIDENCE, seed)
        return Estimate(
            value=value,
            low=min(interval.low, value),
            high=max(interval.high, value),
            base=self.metric.base,
            method=method,
            n=self.answers[side],
            n_statements=statements,
            flags=self.flags(side),
        )


def share_interval(y: Floats, n: Floats, conf: float, seed: int) -> tuple[Interval, IntervalMethod]:
    """Bound a weighted share of clustered answers; ``y`` and ``n`` of shape [G], the weights summing to the answers."""
    share = float(y.sum() / n.sum())
    if min(share, 1 - share) < LOW_RATE:
        return rare_rate_bounds(y, n, conf, seed=seed), "cluster_bootstrap"
    return design_effect_wilson(y, n, conf), "design_effect_wilson"


def share_estimate(y: Floats, n: Floats, answers: int, *, base: Base, seed: int) -> Estimate | Insufficient:
    """Estimate a weighted share of clustered answers; Insufficient under 15 statements."""
    statements = int(np.count_nonzero(n))
    if statements < MIN_STATEMENTS:
        return Insufficient(reason=f"{statements} statements with both answers, {MIN_STATEMENTS} needed")
    value = float(y.sum() / n.sum())
    interval, method = share_interval(y, n, CONFIDENCE, seed)
    return Estimate(
        value=value,
        low=min(interval.low, value),
        high=max(interval.high, value),
        base=base,
        method=method,
        n=answers,
        n_statements=statements,
        flags=rate_flags(value, few=statements < ENOUGH_STATEMENTS),
    )
