"""Deployments that are watched every day, in worlds of known truth: what shocks them, what they share with an anchor.

A statement's rate is beta with mean .29 and intraclass correlation .3; 200 statements are asked four times a day. `IR`
takes each endorsing response with probability .63. `kept` is the share of the statement effect that stays from day to
day, the rest is drawn anew. A day's shock is normal, moves all rates of that day, and the anchor has the same one: it
goes through the same judges. Worlds: A all effects fixed; B half redrawn; C all redrawn; D and E as B, with shocks of
1.2 and 2.4 points.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from auditor.monitor.decision import Promise
from auditor.monitor.drift import DriftState, start_drift
from auditor.monitor.passes import PAGING, Pass
from auditor.monitor.references import Reference, fit_reference

STATEMENTS, ASKED, RATE, ICC, ONE_LAYER = 200, 4, 0.29, 0.3, 0.63
REFERENCE, HORIZON = 14, 90
PROMISE = Promise(alpha=0.05, horizon=HORIZON, series=len(PAGING))
NEVER = 10**6


@dataclass(frozen=True, kw_only=True)
class World:
    kept: float = 1.0
    shock: float = 0.0
    shift: float = 0.0
    shift_on: int = 31  #: monitored day


WORLDS = {
    "A": World(), "B": World(kept=0.5), "C": World(kept=0.0),
    "D": World(kept=0.5, shock=0.012), "E": World(kept=0.5, shock=0.024),
}  # fmt: skip


def days(world: World, rng: np.random.Generator, shocks: np.ndarray, *, moves: bool) -> Iterator[dict[str, Pass]]:
    spread = (RATE * (1 - ICC) / ICC, (1 - RATE) * (1 - ICC) / ICC)
    fixed = rng.beta(*spread, STATEMENTS) - RATE
    trials = np.full((STATEMENTS, 1), float(ASKED))
    for day, shock in enumerate(shocks, 1 - REFERENCE):
        fresh = rng.beta(*spread, STATEMENTS) - RATE
        rate = RATE + np.sqrt(world.kept) * fixed + np.sqrt(1 - world.kept) * fresh + shock
        rate += world.shift if moves and day >= world.shift_on else 0.0
        union = rng.binomial(ASKED, np.clip(rate, 0, 1))
        counts = {"ber_union_full": union, "ir": rng.binomial(union, ONE_LAYER)}
        yield {name: Pass(events=counts[name][:, None].astype(float), trials=trials) for name in PAGING}


def watched(world: World, seed: int, *, anchored: bool) -> int:
    """The first monitored day on which a person is paged, or NEVER."""
    rng = np.random.default_rng(seed)
    shocks = rng.normal(0, world.shock, REFERENCE + HORIZON)
    own = days(world, rng, shocks, moves=True)
    other = days(world, rng, shocks, moves=False) if anchored else None
    past = [next(own) for _ in range(REFERENCE)]
    anchors = [next(other) for _ in range(REFERENCE)] if other else []
    watches = {name: started(name, past, anchors, seed) for name in PAGING}
    for day, passes in enumerate(own, 1):
        beside = next(other) if other else {}
        for name in PAGING:
            watches[name] = watches[name].update(passes[name], beside.get(name))
            if watches[name].level == "page":
                return day
    return NEVER


def started(name: str, past: list[dict[str, Pass]], anchors: list[dict[str, Pass]], seed: int) -> DriftState:
    fitted = [
        fit_reference([each[name] for each in group], alpha=PROMISE.reference_alpha, series=len(PAGING))
        for group in (past, anchors)
        if group
    ]
    assert all(isinstance(one, Reference) for one in fitted)
    return start_drift(fitted[0], PROMISE, series=name, seed=seed, anchor=fitted[1] if anchors else None)


def paged_share(world: World, deployments: int, *, anchored: bool) -> float:
    return float(np.mean([watched(world, seed, anchored=anchored) < NEVER for seed in range(deployments)]))


def delays(shift: float, deployments: int, *, anchored: bool) -> np.ndarray:
    """Days from the shift, the first included, to the page; of deployments not paged before it."""
    world = World(kept=0.5, shift=shift)
    paged = np.array([watched(world, seed, anchored=anchored) for seed in range(deployments)])
    return paged[paged >= world.shift_on] - world.shift_on + 1
