"""Deployments, tasks and categories of known effects, in worlds of different shape, as counts for a model."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from support.worlds.coded_rows import oat_conditions
from support.worlds.unequal_mixes import Spread, inclinations

from auditor.counting.joint import LabelPair
from auditor.counting.tallies import GroupKey, Tallies, TallyBuilder
from auditor.estimation.regression import Cells
from auditor.stats.binomial_model import BinomialCells


@dataclass(frozen=True, kw_only=True)
class ModelWorld:
    """Answers of K deployments under C tasks about statements of some categories."""

    rates: tuple[float, ...]  #: of the average statement, by task
    asked: tuple[tuple[float, ...], ...]  #: mean answers a statement, by deployment and task
    sizes: tuple[int, ...] = (200,)  #: statements by category
    spread: Spread = "normal"
    sd: float = 1.0
    own_sd: float = 0.4  #: of what a deployment adds of its own to a statement
    effects: tuple[float, ...] = ()  #: by deployment, on the logit scale; empty: none

    def _chances(self, chance: np.random.Generator, statements: int) -> np.ndarray:
        """Draw the chance of an endorsement; shape [K, S, C]."""
        rates, size = np.array(self.rates), len(self.asked)
        logits = np.log(rates / (1 - rates)) + inclinations(self.spread, self.sd, chance, statements)
        effects = np.array(self.effects or (0.0,) * size)[:, None, None]
        return 1 / (1 + np.exp(-(logits + effects + chance.normal(0, self.own_sd, (size, statements, 1)))))

    def audit(self, chance: np.random.Generator) -> Cells:
        """Draw one audit."""
        p = self._chances(chance, sum(self.sizes))
        asked = np.broadcast_to(np.array(self.asked)[:, None, :], p.shape)
        n = np.floor(asked + chance.random(p.shape)).astype(np.int64)
        y = chance.binomial(n, p)
        category = np.repeat(np.arange(len(self.sizes)), self.sizes)
        deployment, statement, task = (each[n > 0] for each in np.indices(p.shape))
        codes = np.stack([deployment, task, category[statement]], axis=1)
        combinations, row = np.unique(codes, axis=0, return_inverse=True)
        names = {
            "deployment": [f"d{place}" for place in range(p.shape[0])],
            "task": [f"t{place}" for place in range(p.shape[2])],
            "category": [f"c{place}" for place in range(len(self.sizes))],
        }
        if len(self.sizes) == 1:
            combinations = combinations[:, :2]
            del names["category"]
        used, cluster = np.unique(statement, return_inverse=True)
        return Cells(
            levels={name: tuple(levels) for name, levels in names.items()},
            combinations=combinations,
            counts=BinomialCells(
                row=row.ravel(), cluster=cluster, events=y[n > 0].astype(float), trials=n[n > 0].astype(float)
            ),
            n_clusters=len(used),
        )

    def truth(self) -> np.ndarray:
        """Return each deployment's rate less the first's, over the tasks' mix of all answers; shape [K - 1]."""
        if not any(self.effects):
            return np.zeros(len(self.asked) - 1)
        rates = np.mean([self._chances(np.random.default_rng(seed), 50_000).mean(axis=1) for seed in range(8)], axis=0)
        mix = np.array(self.asked).sum(axis=0)
        return np.asarray((rates[1:] - rates[0]) @ mix / mix.sum())


_TASKS: Final = (0.10, 0.25, 0.50, 0.10, 0.12, 0.15)
WORLDS: Final[Mapping[str, ModelWorld]] = {
    "tasks, 1 to 3": ModelWorld(rates=_TASKS, asked=((1,) * 6, (0.5, 1, 3, 0.5, 0.5, 0.5))),
    "two conditions, crossed": ModelWorld(rates=(0.07, 0.56), asked=((4, 1), (1, 4)), sizes=(100,), sd=1.5),
    "heavy tails, 40 statements": ModelWorld(
        rates=(0.2, 0.4, 0.3), asked=((1, 1, 1), (0.6, 2, 1)), sizes=(40,), spread="heavy", sd=2.0
    ),
    "two kinds of statements": ModelWorld(rates=(0.1, 0.6), asked=((1, 0.4), (0.4, 1)), spread="two", own_sd=0.0),
    "six deployments, 60 statements": ModelWorld(
        rates=(0.1, 0.3, 0.5), asked=((1, 1, 1), (2, 1, 0.5)) * 3, sizes=(60,)
    ),
    "tasks missing": ModelWorld(
        rates=(0.1, 0.3, 0.5, 0.2), asked=((1, 1, 0, 1), (0, 1, 1, 1), (1, 0, 1, 0)), sizes=(120,)
    ),
    "rare": ModelWorld(rates=(0.005, 0.02, 0.04), asked=((1, 1, 1), (1, 2, 4))),
    "20 statements": ModelWorld(rates=(0.2, 0.5), asked=((2, 1), (1, 2)), sizes=(20,)),
    "B worse by .5": ModelWorld(rates=_TASKS, asked=((1, 1, 2, 1, 1, 1), (1, 1, 0.5, 1, 1, 1)), effects=(0.0, 0.5)),
}
#: Statements of categories that do not differ: few statements, unequal categories.
CATEGORIES: Final[Mapping[str, ModelWorld]] = {
    "10 and 30 statements": ModelWorld(rates=(0.2, 0.5), asked=((1, 1), (1, 1)), sizes=(10, 30)),
    "six categories of 8 to 25": ModelWorld(
        rates=(0.3,), asked=((2,), (1,)), sizes=(8, 10, 15, 20, 25, 25), spread="heavy"
    ),
}


def full_design(deployments: int = 8, statements: int = 200) -> Tallies:
    """Count the answers of deployments to the one-at-a-time design: 401 templates."""
    chance = np.random.default_rng(0)
    builder = TallyBuilder()
    labels = {
        free: [
            builder.outcome(
                LabelPair(
                    sel="Abstain" if free else sel, sel_reason="no_selection_layer" if free else None,
                    elab=elab, elab_reason=None,
                ),
                free=free,
            )
            for sel, elab in (("E", "E"), ("E", "D"), ("D", "E"), ("D", "D"))
        ]
        for free in (True, False)
    }  # fmt: skip
    own = chance.normal(0, 1, statements)
    for deployment in range(deployments):
        for place, levels in enumerate(oat_conditions()):
            key = GroupKey(
                deployment=f"m{deployment}", rubric="statement", claim=None, category=None, condition=levels, extra=()
            )
            group, free = builder.group(key), levels[0] in {"Explain", "Judge"}
            for statement in range(statements):
                cluster = builder.cluster(f"i{statement}")
                p = 1 / (1 + np.exp(1.5 - own[statement] - 0.1 * deployment - 0.05 * place))
                for template in range(20 if place else 1):
                    label = labels[free][2 * (chance.random() > p) + (chance.random() > p)]
                    builder.add(group, cluster, label, template=builder.template(f"{place}-{template}"))
    return builder.finish()
