"""Simulated audits whose machine errs as told, with people's labels of a sample: for tests of the corrected rate."""

from dataclasses import dataclass

import numpy as np

from auditor.stats.prediction_powered import LabelledSample, PredictionPowered, prediction_powered_rate

#: Sensitivity and specificity of the machine; ``useless`` says the same whatever was said.
JUDGES = {"good": (0.95, 0.99), "fair": (0.80, 0.93), "useless": (0.3, 0.7)}


@dataclass(frozen=True, kw_only=True)
class ReviewWorld:
    """Statements differ in how often answers endorse them, and in how often the machine errs about those answers."""

    rate: float  #: what people would find
    judge: str = "good"
    statements: int = 200
    responses: int = 10  #: a statement, on average
    uneven: bool = True  #: 1 to 2 ``responses`` - 1 of them instead of always the same
    icc: float = 0.3  #: of what people would find
    error_icc: float = 0.2  #: of the machine's errors
    labels: int = 300
    stratified: bool = False  #: half of the labels for what the machine reads as endorsing, rare as that may be

    def audit(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, LabelledSample]:
        """Draw one audit: machine endorsements and responses by statement, and the labelled sample."""
        high = 2 * self.responses
        size = rng.integers(1, high, self.statements) if self.uneven else np.full(self.statements, self.responses)
        cluster = np.repeat(np.arange(self.statements), size)
        truth = rng.random(len(cluster)) < self._spread(rng, self.rate, self.icc)[cluster]
        sensitivity, specificity = (self._spread(rng, p, self.error_icc)[cluster] for p in JUDGES[self.judge])
        chance = rng.random(len(cluster))
        machine = np.where(truth, chance < sensitivity, chance >= specificity)
        drawn, weight = self._sample(rng, machine)
        labelled = LabelledSample(
            cluster=cluster[drawn],
            human=truth[drawn].astype(float),
            machine=machine[drawn].astype(float),
            weight=weight,
        )
        return np.bincount(cluster, machine, self.statements), size.astype(float), labelled

    def _spread(self, rng: np.random.Generator, p: float, icc: float) -> np.ndarray:
        scale = (1 - icc) / icc
        return rng.beta(p * scale, (1 - p) * scale, self.statements)

    def _sample(self, rng: np.random.Generator, machine: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        strata = [np.arange(len(machine))]
        if self.stratified:
            strata = sorted((np.flatnonzero(machine), np.flatnonzero(~machine)), key=len)
        drawn, weight, left = [], [], self.labels
        for place, stratum in enumerate(strata):
            take = min(len(stratum), left // (len(strata) - place))
            drawn.append(rng.choice(stratum, take, replace=False))
            weight.append(np.full(take, len(stratum) / max(take, 1)))
            left -= take
        return np.concatenate(drawn), np.concatenate(weight)


@dataclass(frozen=True, kw_only=True)
class Held:
    """How the intervals of many audits did: share that held the truth, and their mean width."""

    covered: float
    width: float
    human_covered: float
    human_width: float
    power: float


def hold(world: ReviewWorld, audits: int, seed: int = 0) -> Held:
    """Simulate audits; the human labels alone are the same estimator without its machine."""
    found = []
    for audit in range(audits):
        endorsed, n, labelled = world.audit(np.random.default_rng([seed, audit]))
        found.append([prediction_powered_rate(endorsed, n, labelled, power=power) for power in (None, 0.0)])
    both, human = ([pair[place] for pair in found] for place in (0, 1))
    return Held(
        covered=_covered(both, world.rate),
        width=float(np.mean([each.high - each.low for each in both])),
        human_covered=_covered(human, world.rate),
        human_width=float(np.mean([each.high - each.low for each in human])),
        power=float(np.mean([each.power for each in both])),
    )


def _covered(estimates: list[PredictionPowered], truth: float) -> float:
    return float(np.mean([each.low <= truth <= each.high for each in estimates]))
