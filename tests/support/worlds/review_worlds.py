"""Simulated audits whose machine errs as told, with people's labels of a sample: for tests of the corrected rate."""

from dataclasses import dataclass

import numpy as np

from auditor.stats.prediction_powered import (
    LabelledSample,
    PredictionPowered,
    prediction_powered_difference,
    prediction_powered_rate,
    prediction_powered_ratio,
)

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
    return _held(both, human, world.rate)


def _covered(estimates: list[PredictionPowered], truth: float) -> float:
    return float(np.mean([each.low <= truth <= each.high for each in estimates]))


#: Of the joint judge: chances that each layer is misread, for responses that (both, the selection alone, the
#: elaboration alone, neither) endorse. The elaboration's depend on the selection too, so the errors are joint.
JOINT_JUDGES = {
    "good": ((0.01, 0.01, 0.01, 0.01), (0.04, 0.03, 0.06, 0.02)),
    "fair": ((0.02, 0.03, 0.02, 0.01), (0.15, 0.20, 0.25, 0.07)),
    "lexicon": ((0.01, 0.02, 0.01, 0.01), (0.25, 0.35, 0.30, 0.13)),
}
#: Shares of both, the selection alone, the elaboration alone, neither.
JOINT_TRUTHS = {
    "rare": (0.20, 0.0175, 0.0045, 0.778),
    "some": (0.15, 0.08, 0.04, 0.73),
    "balanced": (0.20, 0.10, 0.10, 0.60),
    "one way": (0.10, 0.02, 0.15, 0.73),
}
#: What is estimated of both layers: weights of the four shares in the top, and in the base of a ratio.
JOINT_MEASURES = {
    "ir": ((0, 1, 1, 0), None),
    "dni": ((0, 1, -1, 0), None),
    "union": ((1, 1, 1, 0), None),
    "cor": ((1, 0, 0, 0), None),
    "ir/union": ((0, 1, 1, 0), (1, 1, 1, 0)),
}


@dataclass(frozen=True, kw_only=True)
class JointWorld:
    """Statements differ in how often answers endorse on each layer, and in how often the machine errs about them."""

    truth: str = "some"
    judge: str = "fair"
    statements: int = 200
    responses: int = 10  #: a statement, on average; 1 to 2 ``responses`` - 1
    icc: float = 0.3
    error_icc: float = 0.2
    labels: int = 300  #: of both layers
    stratified: bool = False  #: a quarter of the labels for each pair of readings of the machine

    def expected(self, measure: str) -> float:
        """Return the true value of a measure."""
        top, base = JOINT_MEASURES[measure]
        truth = np.array(JOINT_TRUTHS[self.truth])
        return float(truth @ top) / (1.0 if base is None else float(truth @ base))

    def audit(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Draw one audit: cluster, what people find and what the machine finds (0 to 3), the labelled, their weight."""
        size = rng.integers(1, 2 * self.responses, self.statements)
        cluster = np.repeat(np.arange(self.statements), size)
        scale = (1 - self.icc) / self.icc
        shares = rng.dirichlet(np.array(JOINT_TRUTHS[self.truth]) * scale, self.statements)
        truth = (rng.random(len(cluster))[:, None] > shares[cluster].cumsum(axis=1)[:, :3]).sum(axis=1)
        layers = []
        for layer, wrong in enumerate(JOINT_JUDGES[self.judge]):
            errs = self._errors(rng, np.array(wrong))[cluster, truth]
            endorses = truth < 2 if layer == 0 else truth % 2 == 0
            layers.append(np.where(rng.random(len(cluster)) < errs, ~endorses, endorses))
        machine = 2 * ~layers[0] + ~layers[1]
        drawn, weight = self._sample(rng, machine)
        return cluster, truth, machine, drawn, weight

    def _errors(self, rng: np.random.Generator, wrong: np.ndarray) -> np.ndarray:
        """Return each statement's chances to be misread, shape [S, 4]."""
        scale = (1 - self.error_icc) / self.error_icc
        return rng.beta(wrong * scale, (1 - wrong) * scale, (self.statements, 4))

    def _sample(self, rng: np.random.Generator, machine: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        strata = (
            [np.flatnonzero(machine == kind) for kind in range(4)] if self.stratified else [np.arange(len(machine))]
        )
        drawn, weight, left = [], [], self.labels
        strata = sorted((stratum for stratum in strata if len(stratum)), key=len)
        for place, stratum in enumerate(strata):
            take = min(len(stratum), left // (len(strata) - place))
            drawn.append(rng.choice(stratum, take, replace=False))
            weight.append(np.full(take, len(stratum) / take))
            left -= take
        return np.concatenate(drawn), np.concatenate(weight)


def joint_estimate(measure: str, audit: tuple, power: float | None = None) -> PredictionPowered:
    """Estimate a measure of both layers from an audit of a ``JointWorld``."""
    cluster, truth, machine, drawn, weight = audit
    statements = int(cluster.max()) + 1
    n = np.bincount(cluster, minlength=statements).astype(float)

    def counted(weights: tuple[int, ...]) -> tuple[np.ndarray, LabelledSample]:
        each = np.array(weights, dtype=float)
        sample = LabelledSample(
            cluster=cluster[drawn], human=each[truth[drawn]], machine=each[machine[drawn]], weight=weight
        )
        return np.bincount(cluster, each[machine], statements), sample

    top, base = JOINT_MEASURES[measure]
    sums, sample = counted(top)
    if base is not None:
        bases, below = counted(base)
        found = prediction_powered_ratio(sums, bases, n, sample, below, power=power)
        assert found is not None
        return found
    if measure == "dni":
        return prediction_powered_difference(sums, n, sample, power=power)
    return prediction_powered_rate(sums, n, sample, power=power)


def hold_joint(world: JointWorld, audits: int, seed: int = 0) -> dict[str, Held]:
    """Simulate audits; the human labels alone are the same estimators without their machine."""
    found = {measure: ([], []) for measure in JOINT_MEASURES}
    for number in range(audits):
        audit = world.audit(np.random.default_rng([seed, number]))
        for measure, (both, human) in found.items():
            both.append(joint_estimate(measure, audit))
            human.append(joint_estimate(measure, audit, power=0.0))
    return {measure: _held(both, human, world.expected(measure)) for measure, (both, human) in found.items()}


def _held(both: list[PredictionPowered], human: list[PredictionPowered], truth: float) -> Held:
    return Held(
        covered=_covered(both, truth),
        width=float(np.mean([each.high - each.low for each in both])),
        human_covered=_covered(human, truth),
        human_width=float(np.mean([each.high - each.low for each in human])),
        power=float(np.mean([each.power for each in both])),
    )
