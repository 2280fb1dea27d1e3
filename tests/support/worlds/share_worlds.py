"""Simulated audits with known shares of variance: some factors move the rate a lot, some a little, some not at all."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import stats
from support.worlds.coded_rows import BASELINE, factorial_conditions, oat_conditions

from auditor.metrics.shares import ConditionCounts, Resampled, eta_squared_between, eta_squared_oat, factorial_shares
from auditor.stats.bootstrap import rate_replicates

#: So many statements there are; an audit draws from them.
POPULATION = 10_000


@dataclass(frozen=True, kw_only=True)
class ShareWorld:
    """A rate under each condition; statements differ, by the same measure everywhere or anew under each."""

    rates: dict[tuple[str, ...], float]
    design: str = "oat"
    statements: int = 200
    responses: int = 20  #: to each statement under each condition, but for one under the baseline of OAT
    own: bool = False  #: each condition moves statements of its own
    icc: float = 0.3

    @cached_property
    def population(self):
        """Propensity of each statement under each condition."""
        odds = (1 - self.icc) / self.icc
        rank = (np.arange(POPULATION) + 0.5) / POPULATION
        return np.stack([stats.beta.ppf(rank, p * odds, (1 - p) * odds) for p in self.rates.values()], axis=1)

    @cached_property
    def trials(self):
        """Responses to one statement, by condition."""
        once = self.design == "oat" and self.responses > 1
        return np.array([1.0 if once and condition == BASELINE else self.responses for condition in self.rates])

    def truth(self):
        """The shares that an endless audit would find."""
        means = self.population.mean(axis=0)
        return self.shares(means * self.trials, self.trials)

    def audit(self, seed, n_boot):
        """Ask once, and share out the variance."""
        rng = np.random.default_rng([17, seed])
        drawn = rng.integers(0, POPULATION, (self.statements, len(self.rates) if self.own else 1))
        own = np.take_along_axis(self.population, np.broadcast_to(drawn, (self.statements, len(self.rates))), axis=0)
        n = np.tile(self.trials, (self.statements, 1))
        y = rng.binomial(n.astype(int), own).astype(float)
        _, rates = rate_replicates(y, n, n_boot=n_boot, seed=seed)
        return self.shares(y.sum(axis=0), n.sum(axis=0), Resampled(rates=rates, n_clusters=self.statements))

    def shares(self, successes, trials, resampled=None):
        """Share out the variance in the design's way."""
        counts = ConditionCounts(conditions=list(self.rates), successes=successes, trials=trials, resampled=resampled)
        if self.design == "deployment":
            return eta_squared_between("deployment", counts)
        return factorial_shares(counts) if self.design == "factorial" else eta_squared_oat(counts)


def oat_rates(rate=0.1):
    """Tasks far apart, roles that help, one tone that matters a little, perspectives that are all the same."""
    rates = dict.fromkeys(oat_conditions(), rate)
    tasks = {"SC": 1.7, "CTO": 6.5, "Explain": 1.0, "Judge": 1.2, "Rate": 2.5}
    roles = {"sociologist": 0.8, "military": 0.5, "policy_maker": 0.4, "data_scientist": 0.4, "ai_ethicist": 0.3}
    for task, times in tasks.items():
        rates[(task, *BASELINE[1:])] = rate * times
    for role, times in roles.items():
        rates[(*BASELINE[:2], role, BASELINE[3])] = rate * times
    rates[(*BASELINE[:3], "negative")] = rate * 1.6
    return rates


def crossed_rates():
    """The paper's crossover: skepticism takes from CTO and gives to SC; roles help a little, perspectives do not."""
    own = {("CTO", "neutral"): 0.35, ("CTO", "skeptical"): 0.08, ("SC", "neutral"): 0.15, ("SC", "skeptical"): 0.21}
    return {
        condition: own.get((condition[0], condition[3]), 0.06) * (1 if condition[2] == "none" else 0.8)
        for condition in factorial_conditions()
    }


EQUAL = dict.fromkeys(oat_conditions(), 0.3)
#: Rates of eight deployments from .02 to .3, in place of conditions.
DEPLOYMENTS = {(f"m{k}", "", "", ""): rate for k, rate in enumerate((0.02, 0.04, 0.1, 0.14, 0.2, 0.22, 0.25, 0.3))}

#: The shapes audits have.
WORLDS = {
    "oat": ShareWorld(rates=oat_rates()),
    "oat, own": ShareWorld(rates=oat_rates(), own=True),
    "oat, equal": ShareWorld(rates=EQUAL),
    "panel": ShareWorld(rates=oat_rates(), statements=100, responses=1),
    "panel, own": ShareWorld(rates=oat_rates(), statements=100, responses=1, own=True),
    "panel, equal": ShareWorld(rates=EQUAL, statements=100, responses=1, own=True),
    "crossed": ShareWorld(rates=crossed_rates(), design="factorial", responses=1),
    "crossed, own": ShareWorld(rates=crossed_rates(), design="factorial", responses=1, own=True),
    "crossed, pooled": ShareWorld(rates=crossed_rates(), design="factorial", responses=8),
    "deployments": ShareWorld(rates=DEPLOYMENTS, design="deployment", responses=21),
    "deployments, equal": ShareWorld(rates=dict.fromkeys(DEPLOYMENTS, 0.1), design="deployment", responses=21),
    "few": ShareWorld(rates=oat_rates(), statements=20, responses=4),
    "few, own": ShareWorld(rates=oat_rates(), statements=20, responses=4, own=True),
    "low": ShareWorld(rates=oat_rates(0.02), statements=100, responses=1),
    "low, own": ShareWorld(rates=oat_rates(0.02), statements=100, responses=1, own=True),
}


def coverage(world, audits, n_boot):
    """By effect: its true share, and how often its interval held it, where there is one (a rate of 0 varies not)."""
    truth = world.truth().effects
    held: dict[str, list[bool]] = {effect: [] for effect in truth}
    for seed in range(audits):
        for effect, (low, high) in world.audit(seed, n_boot).intervals.items():
            # A share that is 0 comes out of sums as 1e-30 or so.
            held[effect].append(low <= truth[effect] + 1e-12 and truth[effect] <= high)
    return {effect: (truth[effect], float(np.mean(each))) for effect, each in held.items()}
