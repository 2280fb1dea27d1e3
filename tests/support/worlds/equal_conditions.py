"""Simulated audits whose conditions all have the same truth: whatever tells them apart is wrong."""

from dataclasses import dataclass

import numpy as np

from auditor.metrics.shares import horizontal_range


@dataclass(frozen=True, kw_only=True)
class EqualConditions:
    """One rate under every condition; statements differ, by the same measure everywhere or anew under each."""

    conditions: int
    rate: float
    statements: int = 200
    responses: int = 20  #: to each statement under each condition
    baseline_responses: int | None = None  #: to each statement under the first one, if not as many
    own: bool = False  #: each condition moves statements of its own
    icc: float = 0.3

    def audit(self, rng):
        """Ask everything once: successes and trials, by statement and condition."""
        odds = (1 - self.icc) / self.icc
        shape = (self.statements, self.conditions if self.own else 1)
        p = rng.beta(self.rate * odds, (1 - self.rate) * odds, shape)
        n = np.full((self.statements, self.conditions), self.responses)
        if self.baseline_responses is not None:
            n[:, 0] = self.baseline_responses
        return rng.binomial(n, p).astype(float), n.astype(float)


#: The shapes audits have: the full design, six roles, a daily panel of one response, few statements, a low rate.
WORLDS = {
    "oat": EqualConditions(conditions=21, rate=0.3, baseline_responses=1),
    "oat, own": EqualConditions(conditions=21, rate=0.1, baseline_responses=1, own=True),
    "roles": EqualConditions(conditions=6, rate=0.14),
    "panel": EqualConditions(conditions=12, rate=0.3, statements=100, responses=1),
    "panel, own": EqualConditions(conditions=12, rate=0.1, statements=100, responses=1, own=True),
    "two": EqualConditions(conditions=2, rate=0.3, statements=100, responses=4, own=True),
    "few": EqualConditions(conditions=6, rate=0.3, statements=20, responses=4),
    "low": EqualConditions(conditions=6, rate=0.02, statements=100, responses=4),
}


def range_holds_zero(world, seed, *, n_boot=1000):
    """Whether the interval of the range contains 0, and whether the observed range is above it."""
    y, n = world.audit(np.random.default_rng([13, seed]))
    levels = [str(index) for index in range(world.conditions)]
    found = horizontal_range(levels, y, n, n_boot=n_boot, seed=seed)
    return found.low <= 0 <= found.high, found.range > 0
