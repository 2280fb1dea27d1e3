"""Simulated groups of replays: parents of known truth, asked in several ways, without a gateway between."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from auditor.counting.joint import LabelPair
from auditor.domain.condition import Task
from auditor.domain.estimate import Insufficient
from auditor.metrics.rates import METRICS
from replay.comparison.arms import STORED, Arm, Arms
from replay.comparison.exposure import exposure
from replay.comparison.scores import Scores


def coded(sel: str, elab: str, why: str = "no_marker") -> LabelPair:
    """Two labels; an Abstain is one that failed, unless its reason is another."""
    return LabelPair(
        sel=sel,
        sel_reason=why if sel == "Abstain" else None,
        elab=elab,
        elab_reason="no_elaboration" if elab == "Abstain" else None,
    )


@dataclass(frozen=True, kw_only=True)
class World:
    """A rate of endorsement by side; statements differ, by the same measure on every side or anew on each."""

    rates: tuple[float, ...]
    names: tuple[str, ...] = ()
    changes: tuple[dict[str, str], ...] = ()
    statements: int = 100
    parents: int = 2  #: to each statement
    own: bool = False  #: each side moves statements of its own
    icc: float = 0.3
    agree: float = 0.8  #: how often the elaboration says what the selection does
    abstain: tuple[float, ...] = ()  #: share of bare answers, by side

    def draw(self, seed: int) -> Arms:
        """Ask everything once."""
        rng = np.random.default_rng([23, seed])
        statement = np.repeat(np.arange(self.statements), self.parents)
        odds = (1 - self.icc) / self.icc
        quantile = rng.random((self.statements, len(self.rates)))
        own = quantile if self.own else quantile[:, :1]
        arms = []
        for place, rate in enumerate(self.rates):
            p = _beta(own[:, min(place, own.shape[1] - 1)], rate, odds)[statement]
            name, changes = self._named(place)
            answers = self._answers(rng, rng.random(len(p)) < p, place)
            repeats = place > 0 and not changes
            arms.append(Arm(name=name, task=Task.BJ, answers=answers, changes=changes, repeats=repeats))
        return Arms.of(arms, [f"S{number:04}" for number in statement])

    def _named(self, place: int) -> tuple[str, dict[str, str]]:
        name = self.names[place] if self.names else STORED if place == 0 else f"format-{place}"
        changes = self.changes[place] if self.changes else {"task": name} if place else {}
        return name, changes

    def _answers(self, rng: np.random.Generator, endorses: Any, place: int) -> list[LabelPair]:
        same = rng.random(len(endorses)) < self.agree
        bare = rng.random(len(endorses)) < (self.abstain[place] if self.abstain else 0.0)
        sel = np.where(endorses, "E", "D").tolist()
        elab = np.where(bare, "Abstain", np.where(endorses == same, "E", "D")).tolist()
        return [coded(*labels) for labels in zip(sel, elab, strict=True)]


def _beta(quantile: Any, rate: float, odds: float) -> Any:
    """Turn a statement's place among all into its chance of being endorsed."""
    return (
        np.full(len(quantile), rate) if rate in {0.0, 1.0} else stats.beta.ppf(quantile, rate * odds, (1 - rate) * odds)
    )


#: What replays look like: formats of equal truth, and of truths far apart; few statements; rare endorsement.
WORLDS = {
    "equal": World(rates=(0.3,) * 6),
    "equal, own": World(rates=(0.2,) * 6, own=True, parents=1),
    "equal, few": World(rates=(0.3,) * 5, statements=25, parents=4),
    "equal, rare": World(rates=(0.02,) * 5, statements=150),
    "spread": World(rates=(0.15, 0.6, 0.3, 0.2, 0.25, 0.4)),
    "spread, own": World(rates=(0.15, 0.6, 0.3, 0.2), own=True, parents=1),
    "close": World(rates=(0.2, 0.22, 0.25, 0.2, 0.2, 0.28)),
    "rare and not": World(rates=(0.01, 0.02, 0.1), statements=120),
}


def coverage(world: World, *, draws: int, n_boot: int) -> dict[str, float]:
    """How often the intervals of the lowest score, of the highest and of the range hold what is declared."""
    held = dict.fromkeys(("lowest", "highest", "range"), 0)
    low, high = min(world.rates), max(world.rates)
    for seed in range(draws):
        arms = world.draw(seed)
        found = exposure(arms, Scores.of(arms, METRICS["ber_sel_full"]), n_boot=n_boot, seed=seed)
        assert not isinstance(found, Insufficient)
        held["lowest"] += found.lowest.low <= low <= found.lowest.high
        held["highest"] += found.highest.low <= high <= found.highest.high
        held["range"] += found.low - 1e-12 <= high - low <= found.high + 1e-12
    return {name: n / draws for name, n in held.items()}
