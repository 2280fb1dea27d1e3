"""Sum one metric by statement and arm, over the same parents, and compute its intervals.

The methods are those of ``auditor.metrics.estimate``. Answers are weighted here by the number of exchanges that they
represent, so the plain Wilson interval, which needs unweighted answers, is never used.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from auditor.counting.joint import Floats, Ints
from auditor.domain.estimate import Base, Estimate, Insufficient, IntervalMethod
from auditor.metrics.estimate import ENOUGH_STATEMENTS, LOW_RATE, MIN_STATEMENTS, rate_flags
from auditor.metrics.rates import Metric
from auditor.stats.intervals import (
    ClusterRate,
    Interval,
    SampleWeights,
    cluster_rate,
    difference_of,
    rare_rate_bounds,
    sample_weights,
    wilson_of,
)
from replay.comparison.arms import Arms

CONFIDENCE: Final = 0.95
TOO_FEW_WAYS: Final = Insufficient(reason=f"fewer than two formats with {MIN_STATEMENTS} statements")


@dataclass(frozen=True, kw_only=True, slots=True)
class Scores:
    """The weighted sums of one metric over G statements and S arms."""

    metric: Metric
    successes: Floats  #: shape [G, S]; signed for DNI
    trials: Floats  #: shape [G, S]
    answers: tuple[int, ...]  #: unweighted number of answers in the base, by arm
    over: Floats  #: shape [G, S]: the positive terms of DNI; for other metrics the successes
    under: Floats  #: shape [G, S]: the negative terms of DNI; for other metrics 0
    weights: tuple[SampleWeights | None, ...]  #: by arm; None where all answers of the base have the same weight

    @classmethod
    def of(cls, arms: Arms, metric: Metric) -> "Scores":
        """Compute the weighted sums of a measure by statement."""
        values, base = arms.values(metric.numerator), arms.values(metric.denominator)
        return cls(
            metric=metric,
            successes=arms.sum_by_statement(values),
            trials=arms.sum_by_statement(base),
            answers=tuple((base > 0).sum(axis=0).tolist()),
            over=arms.sum_by_statement(np.maximum(values, 0)),
            under=arms.sum_by_statement(np.maximum(-values, 0)),
            weights=tuple(_weights(arms, np.flatnonzero(base[:, arm] > 0)) for arm in range(base.shape[1])),
        )

    @property
    def statements(self) -> tuple[int, ...]:
        """Count the statements with an answer in the base, by arm."""
        return tuple(np.count_nonzero(self.trials, axis=0).tolist())

    def worth(self, arm: int) -> float:
        """Return an arm's number of statements; with unequal weights the effective number of answers or statements."""
        weights = self.weights[arm]
        return self.statements[arm] if weights is None else min(weights.answers, weights.clusters)

    @property
    def span(self) -> int:
        """The largest possible difference of two scores."""
        return 2 if self.metric.kind == "difference" else 1

    def level(self, arm: int) -> float:
        """Return the rate of the counted event: the rate itself, or for DNI the rate of disagreement."""
        return float((self.over + self.under)[:, arm].sum() / self.trials[:, arm].sum())

    def enough(self, places: Iterable[int]) -> list[int]:
        """Return those of the arms that have at least 15 (effective) statements in the base."""
        return [place for place in places if self.worth(place) >= MIN_STATEMENTS]

    def too_few(self, places: Iterable[int]) -> Insufficient:
        """Return why fewer than two of the arms are enough."""
        if sum(self.statements[place] >= MIN_STATEMENTS for place in places) < 2:
            return TOO_FEW_WAYS
        return Insufficient(reason=f"fewer than two formats with {MIN_STATEMENTS} effective answers")

    def flags(self, arm: int) -> tuple[str, ...]:
        """Return the flags of an arm's score."""
        return rate_flags(self.level(arm), few=self.worth(arm) < ENOUGH_STATEMENTS)

    def interval(self, arm: int, conf: float, seed: int) -> tuple[Interval, IntervalMethod]:
        """Return the interval of one arm's score. Its base must not be empty."""
        level = self.level(arm)
        weights = self.weights[arm]
        # Scaled to the effective number of answers; the weights themselves sum to the parents.
        scale = 1.0 if weights is None else weights.answers / float(self.trials[:, arm].sum())
        y, n = self.successes[:, arm] * scale, self.trials[:, arm] * scale
        if self.metric.kind != "difference":
            return share_interval(y, n, conf, seed, weights)
        if min(level, 1 - level) >= LOW_RATE:
            return difference_of(_rate(y, n, weights), level * float(n.sum()), conf), "logit_cluster"
        worst = None if weights is None else weights.heaviest
        parts = self.over[:, arm] * scale, self.under[:, arm] * scale
        up, down = (rare_rate_bounds(part, n, (1 + conf) / 2, seed=seed, worst=worst) for part in parts)
        return Interval(low=up.low - down.high, high=up.high - down.low), "cluster_bootstrap"

    def estimate(self, arm: int, seed: int) -> Estimate | Insufficient:
        """Estimate one arm's score. Insufficient with fewer than 15 statements."""
        statements = self.statements[arm]
        if statements < MIN_STATEMENTS:
            return Insufficient(
                reason=f"{statements} statements in the {self.metric.base} base, {MIN_STATEMENTS} needed"
            )
        if self.worth(arm) < MIN_STATEMENTS:
            worth = f"{self.worth(arm):.1f} effective answers"
            return Insufficient(reason=f"{worth} in the {self.metric.base} base, {MIN_STATEMENTS} needed")
        value = float(self.successes[:, arm].sum() / self.trials[:, arm].sum())
        interval, method = self.interval(arm, CONFIDENCE, seed)
        return Estimate(
            value=value,
            low=min(interval.low, value),
            high=max(interval.high, value),
            base=self.metric.base,
            method=method,
            n=self.answers[arm],
            n_statements=statements,
            flags=self.flags(arm),
        )


def _weights(arms: Arms, parents: Ints) -> SampleWeights | None:
    """Return what unequal weights leave of some parents."""
    cluster, weight = arms.cluster[parents], arms.weight[parents]
    if not len(parents) or weight.min() == weight.max():
        return None
    return sample_weights(np.ones(len(parents)), cluster, weight)


def _rate(y: Floats, n: Floats, weights: SampleWeights | None) -> ClusterRate:
    rate = cluster_rate(y, n)
    return rate if weights is None else replace(rate, df=weights.df)


def share_interval(
    y: Floats, n: Floats, conf: float, seed: int, weights: SampleWeights | None = None
) -> tuple[Interval, IntervalMethod]:
    """Return the interval of a weighted, clustered share. ``y``, ``n``: shape [G]; weights sum to the answers."""
    worst = None if weights is None else weights.heaviest
    share = float(y.sum() / n.sum())
    if min(share, 1 - share) < LOW_RATE:
        return rare_rate_bounds(y, n, conf, seed=seed, worst=worst), "cluster_bootstrap"
    return wilson_of(_rate(y, n, weights), conf), "design_effect_wilson"


def share_estimate(y: Floats, n: Floats, answers: int, *, base: Base, seed: int) -> Estimate | Insufficient:
    """Estimate a weighted share of clustered answers. Insufficient with fewer than 15 statements."""
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
