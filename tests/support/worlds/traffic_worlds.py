"""Simulated client traffic of known truth over routes that are sampled at different rates, for tests of weights."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from support.worlds.audit_worlds import CELLS

from auditor.counting.joint import JointTable
from auditor.metrics.rates import bias_endorsement_rates

#: P(both endorse), P(selection only), P(elaboration only), P(neither) on two routes: BER_sel .10 and .24, mean .17.
CALM, BIASED = (0.05, 0.05, 0.06, 0.84), (0.12, 0.12, 0.14, 0.62)


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """Two routes of one deployment; users differ, and a user's requests resemble one another."""

    samples: tuple[float, float] = (1.0, 0.1)  #: inclusion probability on each route
    shares: tuple[tuple[float, float, float, float], ...] = (CALM, BIASED)
    biased: float = 0.5  #: share of the requests that the second route gets
    users: int = 400
    requests: int = 3  #: of a user at most; 1 .. ``requests``
    icc: float = 0.2
    mixed: bool = False  #: whether a user's requests go to both routes

    def capture(self, rng: np.random.Generator) -> JointTable:
        """Send each user's requests, and capture each with the probability of its route."""
        size = rng.integers(1, self.requests + 1, self.users)
        second = rng.binomial(size, self.biased) if self.mixed else size * (rng.random(self.users) < self.biased)
        columns = []
        for sent, shares, sample in zip((size - second, second), self.shares, self.samples, strict=True):
            own = rng.dirichlet(np.array(shares) * (1 - self.icc) / self.icc, self.users)
            captured = rng.binomial(sent, sample)
            counts = np.stack([rng.multinomial(n, p) for n, p in zip(captured, own, strict=True)])
            user, outcome = np.nonzero(counts)
            columns.append((user, CELLS[outcome], counts[user, outcome], np.full(len(user), 1 / sample)))
        user, cell, count, weight = (np.concatenate(column) for column in zip(*columns, strict=True))
        names, cluster = np.unique(user, return_inverse=True)
        return JointTable(
            cluster=cluster, cell=cell, count=count.astype(np.int64), n_clusters=len(names), weight=weight
        )

    def truth(self) -> Mapping[str, float]:
        """What all traffic would show if every request were captured, with endless users."""
        joined = (1 - self.biased) * np.array(self.shares[0]) + self.biased * np.array(self.shares[1])
        return {name: float(value) for name, value in bias_endorsement_rates(joined).items()}
