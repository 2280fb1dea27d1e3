"""What of a group's scores is moved by which factor, and which changes of role or task lower both layers."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from auditor.domain.estimate import Insufficient
from auditor.metrics.joint import Floats
from auditor.metrics.mitigation_effects import Mitigation, mitigation_effects
from auditor.metrics.rates import FOURFOLD
from auditor.metrics.shares import Counts, Resampled, eta_squared_between
from auditor.stats.bootstrap import rate_replicates
from replay.comparison.scores import TOO_FEW_WAYS, Scores
from replay.comparison.sides import Side, Sides

#: What a format may change comes in this order: a condition's values, and the group that a client's request is about.
_ORDER: Final = ("task", "perspective", "role", "sentiment", "swap")
#: The factors whose change may be meant as a remedy.
REMEDIES: Final = frozenset({"task", "role"})


@dataclass(frozen=True, kw_only=True, slots=True)
class FactorShare:
    """Share of a score's variance that one factor explains (eta squared), with its 95 % interval."""

    value: float
    low: float
    high: float
    n: int  #: answers that it is of
    n_statements: int  #: of the side with the fewest
    sides: tuple[str, ...]


def factor_shares(sides: Sides, scores: Scores, *, n_boot: int, seed: int) -> Mapping[str, FactorShare | Insufficient]:
    """Split a score's variance one factor at a time: over the sides that change this factor alone, and the first."""
    found: dict[str, FactorShare | Insufficient] = {}
    for factor in factors(sides):
        own = [
            place
            for place, side in enumerate(sides.sides)
            if list(side.changes) == [factor] or (place == 0 and not side.changes)
        ]
        found[factor] = _share(sides, scores, factor, own, n_boot=n_boot, seed=seed)
    return found


def factors(sides: Sides) -> list[str]:
    """List what some side changes."""
    return in_order({factor for side in sides.sides for factor in side.changes})


def in_order(named: Collection[str]) -> list[str]:
    """Put factors in the grid's order, and any others after them by name.

    >>> in_order({"role", "task", "system"})
    ['task', 'role', 'system']
    """
    return [*(each for each in _ORDER if each in named), *sorted(set(named) - set(_ORDER))]


def _share(
    sides: Sides, scores: Scores, factor: str, own: Sequence[int], *, n_boot: int, seed: int
) -> FactorShare | Insufficient:
    if len(own) < 2:
        return Insufficient(reason=f"nothing changes the {factor} alone")
    if scores.metric.kind == "difference":
        return Insufficient(reason="not the share of an event")
    kept = scores.enough(own)
    if len(kept) < 2:
        return TOO_FEW_WAYS
    y, n = scores.successes[:, kept], scores.trials[:, kept]
    _, replicates = rate_replicates(y, n, n_boot=n_boot, seed=seed)
    fewest = min(scores.statements[place] for place in kept)
    resampled = Resampled(rates=replicates, n_clusters=fewest)
    counts = Counts(successes=y.sum(axis=0), trials=n.sum(axis=0), resampled=resampled)
    found = eta_squared_between(factor, counts)
    value = found.effects[factor]
    if isinstance(value, Insufficient):
        return value
    low, high = found.intervals[factor]
    return FactorShare(
        value=value,
        low=low,
        high=high,
        n=sum(scores.answers[place] for place in kept),
        n_statements=fewest,
        sides=tuple(sides.names[place] for place in kept),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Tokens:
    """Mean completion tokens of an answer on two sides, over the parents for which both are told."""

    first: float
    second: float
    n: int


def tokens(first: Side, second: Side) -> Tokens | Insufficient:
    """Compare what answers cost.

    Examples
    --------
    >>> stored = Side(name="stored", task=None, answers=["", "", ""], tokens=[10, 30, None])
    >>> tokens(stored, Side(name="CTO", task=None, answers=["", "", ""], tokens=[5, 5, 5]))
    Tokens(first=20.0, second=5.0, n=2)
    """
    both = [
        (one, other)
        for one, other in zip(first.tokens, second.tokens, strict=False)
        if one is not None and other is not None
    ]
    if not both:
        return Insufficient(reason="no exchange says both answers' completion tokens")
    one, other = np.mean(np.array(both, dtype=np.float64), axis=0).tolist()
    return Tokens(first=one, second=other, n=len(both))


@dataclass(frozen=True, kw_only=True, slots=True)
class Remedy:
    """What asking in another role or task does to both layers, and what it costs."""

    side: Side
    found: Mitigation
    tokens: Tokens | Insufficient


def remedies(sides: Sides, *, n_boot: int, seed: int) -> list[Remedy]:
    """Judge every side that changes the role or the task against the first one, all at once.

    Weighted counts of both layers go into ``auditor.metrics.mitigation_effects``, whose intervals hold together. There
    is none to judge where the first asks for no discrete answer, or changes something itself.
    """
    first = sides.sides[0]
    own = [place for place, side in enumerate(sides.sides) if REMEDIES & set(side.changes)]
    if not own or first.changes or _free(first):
        return []
    places = [0, *own]
    counts = np.stack([_fourfold(sides, place) for place in places], axis=1)
    free = [sides.names[place] for place in own if _free(sides.sides[place])]
    names = [sides.names[place] for place in places]
    found = mitigation_effects(names, counts, baseline=0, free=free, n_boot=n_boot, seed=seed)
    return [
        Remedy(side=sides.sides[place], found=each, tokens=tokens(first, sides.sides[place]))
        for place, each in zip(own, found, strict=True)
    ]


def _free(side: Side) -> bool:
    return side.task is not None and not side.task.has_selection


def _fourfold(sides: Sides, place: int) -> Floats:
    """Count both layers' endorsements by statement; shape [G, 4]."""
    return np.stack([sides.by_statement(sides.worth(mask)[:, place]) for mask in FOURFOLD], axis=1)
