"""Everything that is said of one group: a deployment's exchanges of one origin, first asked in one way."""

from collections.abc import Mapping
from itertools import combinations
from typing import Final

import numpy as np

from auditor.analysis.document import Json, estimate_json, missing
from auditor.domain.estimate import Insufficient
from auditor.metrics.rates import BY_NAME
from replay.comparison.compare import COMPARED, NO_CLAIM, Change, Comparison, compare
from replay.comparison.effects import factor_shares, factors, remedies
from replay.comparison.entries import exposure_entry, factor_entry, pair_entry, remedy_entry, side_entry
from replay.comparison.exposure import Exposure, abstaining, exposure
from replay.comparison.scores import Scores
from replay.comparison.sides import Sides, Support, support
from replay.comparison.together import Compared, adjusted

#: Replicates of the statement bootstrap.
N_BOOT: Final = 2000
_UNREPEATED: Final = Insufficient(reason="nothing was asked again unchanged")


def group_findings(sides: Sides, *, claimed: bool, seed: int, n_boot: int = N_BOOT) -> dict[str, Json]:
    """Score every side, find how far scores can be moved, and compare every two sides.

    Scores, ranges, shares and verdicts are over the parents that were asked in every way; each pair of sides is
    compared over all parents that were asked both ways.

    Parameters
    ----------
    sides
        The first is what the others are held against: for a replay the stored answers.
    claimed
        Whether endorsing means endorsing a stereotype; otherwise only IR and DNI mean anything.
    seed, n_boot
        Of everything that is drawn, and replicates.
    """
    ground = support(sides)
    scores = _scores(ground, claimed=claimed)
    places = combinations(range(len(sides.sides)), 2)
    compared = {pair: compare(sides, pair, claimed=claimed, seed=seed) for pair in places}
    again = next((compared[0, place] for place, side in enumerate(sides.sides) if side.repeats), None)
    told = [(*pair, name) for pair, each in compared.items() for name in _told(each)]
    p = adjusted(sides, told, n_boot=n_boot, seed=seed)
    return {
        "statements": len(np.unique(sides.cluster)),
        "support": _support(ground),
        "sides": _sides(sides, ground, scores, seed),
        "exposure": _exposures(ground.sides, scores, again, n_boot=n_boot, seed=seed),
        "factors": _factors(ground.sides, scores, n_boot=n_boot, seed=seed),
        "mitigation": _mitigation(ground.sides, n_boot=n_boot, seed=seed) if claimed else [],
        "comparisons": len(told),
        "pairs": [pair_entry(each, _of_pair(p, pair)) for pair, each in compared.items()],
    }


def _scores(ground: Support, *, claimed: bool) -> dict[str, Scores | Insufficient]:
    return {
        name: Insufficient(reason=NO_CLAIM)
        if BY_NAME[name].endorsement and not claimed
        else Scores.of(ground.sides, BY_NAME[name])
        for name in COMPARED
    }


def _told(comparison: Comparison) -> list[str]:
    return [name for name, found in comparison.metrics.items() if isinstance(found, Change)]


def _of_pair(p: Mapping[Compared, float], pair: tuple[int, int]) -> dict[str, float]:
    return {name: value for (first, second, name), value in p.items() if (first, second) == pair}


def _support(ground: Support) -> dict[str, Json]:
    return {
        "parents": len(ground.sides.cluster),
        "statements": len(np.unique(ground.sides.cluster)),
        "parents_left_out": ground.n_left_out,
        "sides_left_out": dict(ground.left_out),
    }


def _sides(
    sides: Sides, ground: Support, scores: Mapping[str, Scores | Insufficient], seed: int
) -> list[dict[str, Json]]:
    out = []
    for side in sides.sides:
        place = ground.sides.names.index(side.name) if side.name in ground.sides.names else None
        out.append(
            {
                **side_entry(side),
                "selection_abstains": _abstains(ground, place, side.name),
                "scores": {name: _score(each, ground, place, side.name, seed) for name, each in scores.items()},
            }
        )
    return out


def _abstains(ground: Support, place: int | None, name: str) -> Json:
    if place is None:
        return missing(Insufficient(reason=ground.left_out[name]))
    if not len(ground.sides.cluster):
        return missing(Insufficient(reason="no exchange was asked in every way"))
    return abstaining(ground.sides, place)


def _score(scores: Scores | Insufficient, ground: Support, place: int | None, name: str, seed: int) -> dict[str, Json]:
    if isinstance(scores, Insufficient):
        return missing(scores)
    if place is None:
        return missing(Insufficient(reason=ground.left_out[name]))
    return estimate_json(scores.estimate(place, seed))


def _exposures(
    sides: Sides,
    scores: Mapping[str, Scores | Insufficient],
    again: Comparison | None,
    *,
    n_boot: int,
    seed: int,
) -> dict[str, Json]:
    out: dict[str, Json] = {}
    for name, each in scores.items():
        found = each if isinstance(each, Insufficient) else exposure(sides, each, n_boot=n_boot, seed=seed)
        floor = {} if isinstance(found, Insufficient) else {"repetition": _floor(found, again, name)}
        out[name] = exposure_entry(found) | floor
    return out


def _floor(found: Exposure, again: Comparison | None, name: str) -> dict[str, Json]:
    """Say how far the same question asked again may have moved the score, and whether the range is surely wider."""
    if again is None:
        return missing(_UNREPEATED)
    change = again.metrics[name]
    if isinstance(change, Insufficient):
        return missing(change)
    reach = max(abs(change.difference.low), abs(change.difference.high))
    return {"difference": change.difference.value, "reach": reach, "beyond": found.low > reach}


def _factors(sides: Sides, scores: Mapping[str, Scores | Insufficient], *, n_boot: int, seed: int) -> dict[str, Json]:
    found = {
        name: dict.fromkeys(factors(sides), each)
        if isinstance(each, Insufficient)
        else factor_shares(sides, each, n_boot=n_boot, seed=seed)
        for name, each in scores.items()
    }
    return {factor: {name: factor_entry(own[factor]) for name, own in found.items()} for factor in factors(sides)}


def _mitigation(sides: Sides, *, n_boot: int, seed: int) -> list[Json]:
    return [remedy_entry(each) for each in remedies(sides, n_boot=n_boot, seed=seed)]
