"""Simulated audits of known truth, for tests of coverage: statements differ, responses to one statement resemble it."""

from dataclasses import dataclass

import numpy as np

from auditor.counting.joint import SHAPE, JointTable
from auditor.metrics.rates import bias_endorsement_rates

#: Cells E|E, E|D, D|E, D|D of the joint table: n11, n10, n01, n00.
CELLS = np.array([0, 3, 2 * SHAPE[1], 2 * SHAPE[1] + 3])


@dataclass(frozen=True, kw_only=True)
class World:
    """P(both endorse), P(selection only), P(elaboration only), P(neither); between-statement share of variance."""

    shares: tuple[float, float, float, float]
    icc: float = 0.3
    statements: int = 100
    responses: int = 4  #: a statement, each
    uneven: bool = False  #: 1 .. ``responses`` instead

    def audit(self, rng: np.random.Generator) -> JointTable:
        """Ask each statement; a Dirichlet of statements gives every indicator the same ICC."""
        own = rng.dirichlet(np.array(self.shares) * (1 - self.icc) / self.icc, self.statements)
        size = np.full(self.statements, self.responses)
        if self.uneven:
            size = rng.integers(1, self.responses + 1, self.statements)
        counts = np.stack([rng.multinomial(n, p) for n, p in zip(size, own, strict=True)])
        cluster, outcome = np.nonzero(counts)
        return JointTable(
            cluster=cluster, cell=CELLS[outcome], count=counts[cluster, outcome], n_clusters=self.statements
        )

    def truth(self) -> dict[str, float]:
        """What an endless audit would find."""
        rates = bias_endorsement_rates(np.array(self.shares))
        named = {
            "ber_sel": rates["ber_sel"],
            "ber_elab": rates["ber_elab"],
            "ber_union": rates["ber_union"],
            "ber_union_full": rates["ber_union"],
        }
        named |= {"ir": rates["ir"], "dni": rates["dni"], "ir_over_union": rates["ir_over_union"]}
        return {name: float(value) for name, value in named.items()}


def any_world(rng: np.random.Generator, *, responses: int, uneven: bool = False) -> World:
    """Draw a truth with both layers' rates, and their disagreement, between .05 and .5 or so."""
    while True:
        sel, elab = rng.uniform(0.05, 0.5, 2)
        both = rng.uniform(0.2, 0.9) * min(sel, elab)
        if sel + elab - 2 * both >= 0.05 and sel + elab - both < 0.95:
            shares = (both, sel - both, elab - both, 1 - sel - elab + both)
            return World(shares=shares, responses=responses, uneven=uneven)
