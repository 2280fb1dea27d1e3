"""Compute the share of a score's variance that each factor explains, and the effects of roles and tasks."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import numpy as np

from auditor.counting.joint import Floats
from auditor.documents.base import or_missing
from auditor.documents.comparison import FactorShareEntry, RemedyEntry, TokensEntry
from auditor.domain.estimate import Insufficient
from auditor.metrics.mitigation import Mitigation, mitigation_effects
from auditor.metrics.rates import FOURFOLD
from auditor.metrics.shares import CellCounts, Resampled, eta_squared_between
from auditor.stats.bootstrap import rate_replicates
from replay.comparison.arms import Arm, Arms
from replay.comparison.scores import Scores

#: What a format may change, in order of display: the factors of a condition, then the group in a client's request.
_ORDER: Final = ("task", "perspective", "role", "sentiment", "swap")
#: The factors that may be changed as a mitigation.
REMEDIES: Final = frozenset({"task", "role"})


def factor_shares(
    arms: Arms, scores: Scores, *, n_boot: int, seed: int
) -> Mapping[str, FactorShareEntry | Insufficient]:
    """Compute the share of variance of each factor from the first arm and the arms that change only this factor."""
    shares: dict[str, FactorShareEntry | Insufficient] = {}
    for factor in factors(arms):
        places = [
            place
            for place, arm in enumerate(arms.arms)
            if list(arm.changes) == [factor] or (place == 0 and not arm.changes)
        ]
        shares[factor] = _share(arms, scores, factor, places, n_boot=n_boot, seed=seed)
    return shares


def factors(arms: Arms) -> list[str]:
    """Return the factors that at least one arm changes."""
    return in_order({factor for arm in arms.arms for factor in arm.changes})


def in_order(named: Collection[str]) -> list[str]:
    """Sort factors in the order of the grid; others follow by name.

    >>> in_order({"role", "task", "system"})
    ['task', 'role', 'system']
    """
    return [*(each for each in _ORDER if each in named), *sorted(set(named) - set(_ORDER))]


def _share(
    arms: Arms, scores: Scores, factor: str, places: Sequence[int], *, n_boot: int, seed: int
) -> FactorShareEntry | Insufficient:
    if len(places) < 2:
        return Insufficient(reason=f"no format changes only the {factor}")
    if scores.metric.kind == "difference":
        return Insufficient(reason="a difference of two rates has no share of variance")
    kept = scores.enough(places)
    if len(kept) < 2:
        return scores.too_few(places)
    y, n = scores.successes[:, kept], scores.trials[:, kept]
    _, replicates = rate_replicates(y, n, n_boot=n_boot, seed=seed)
    fewest = min(scores.statements[place] for place in kept)
    resampled = Resampled(rates=replicates, n_clusters=fewest)
    counts = CellCounts(successes=y.sum(axis=0), trials=n.sum(axis=0), resampled=resampled)
    eta_squared = eta_squared_between(factor, counts)
    value = eta_squared.effects[factor]
    if isinstance(value, Insufficient):
        return value
    low, high = eta_squared.intervals[factor]
    return FactorShareEntry(
        value=value,
        low=low,
        high=high,
        n=sum(scores.answers[place] for place in kept),
        n_statements=fewest,
        sides=[arms.names[place] for place in kept],
    )


def tokens(first: Arm, second: Arm) -> TokensEntry | Insufficient:
    """Compare the completion tokens of two arms.

    Examples
    --------
    >>> stored = Arm(name="stored", task=None, answers=["", "", ""], tokens=[10, 30, None])
    >>> tokens(stored, Arm(name="CTO", task=None, answers=["", "", ""], tokens=[5, 5, 5]))
    TokensEntry(first=20.0, second=5.0, n=2)
    """
    both = [
        (count, other)
        for count, other in zip(first.tokens, second.tokens, strict=False)
        if count is not None and other is not None
    ]
    if not both:
        return Insufficient(reason="no exchange has the completion tokens of both answers")
    mean, other = np.mean(np.array(both, dtype=np.float64), axis=0).tolist()
    return TokensEntry(first=mean, second=other, n=len(both))


def remedies(arms: Arms, *, n_boot: int, seed: int) -> list[RemedyEntry]:
    """Compare every arm that changes the role or the task with the first arm, with simultaneous intervals.

    ``auditor.metrics.mitigation`` computes the simultaneous intervals from weighted counts of both layers. The result
    is empty if the first arm asks for no discrete answer or changes a factor itself.
    """
    first = arms.arms[0]
    remedial = [place for place, arm in enumerate(arms.arms) if REMEDIES & set(arm.changes)]
    if not remedial or first.changes or _free(first):
        return []
    places = [0, *remedial]
    counts = np.stack([_fourfold(arms, place) for place in places], axis=1)
    free = [arms.names[place] for place in remedial if _free(arms.arms[place])]
    names = [arms.names[place] for place in places]
    effects = mitigation_effects(names, counts, baseline=0, free=free, n_boot=n_boot, seed=seed)
    return [_remedy_entry(first, arms.arms[place], each) for place, each in zip(remedial, effects, strict=True)]


def _remedy_entry(first: Arm, arm: Arm, mitigation: Mitigation) -> RemedyEntry:
    return RemedyEntry(
        side=arm.name,
        task=None if arm.task is None else str(arm.task),
        n_statements=mitigation.n_statements,
        effect=or_missing(mitigation.effect),
        published=or_missing(mitigation.published),
        verdict=or_missing(mitigation.verdict),
        tokens=or_missing(tokens(first, arm)),
        flags=mitigation.flags,
    )


def _free(arm: Arm) -> bool:
    return arm.task is not None and not arm.task.has_selection


def _fourfold(arms: Arms, place: int) -> Floats:
    """Count the endorsements of both layers by statement; shape [G, 4]."""
    return np.stack([arms.sum_by_statement(arms.values(mask)[:, place]) for mask in FOURFOLD], axis=1)
