"""Prompt-shopping exposure: the lowest and the highest score that the same traffic can be made to give.

Who may choose the format after having seen the scores picks the one that chance favoured, too. The lowest of several
noisy scores is too low on average, the highest too high, their range too wide; each has an interval here that knows
of the choice.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy import special

from auditor.domain.estimate import Insufficient
from auditor.metrics.estimate import LOW_RATE
from auditor.metrics.joint import SHAPE, Floats
from auditor.metrics.rates import ELAB_CODED, ELIGIBLE, SEL_CODED
from auditor.stats.bootstrap import rate_replicates
from auditor.stats.intervals import Interval
from auditor.stats.max_t import largest_deviations, level_of
from auditor.stats.spread import Spread, range_interval
from replay.comparison.scores import CONFIDENCE, TOO_FEW_WAYS, Scores
from replay.comparison.sides import Sides

#: Sides of which shares this far apart could be read are not scored on the same answers. Chosen by this project.
UNEVEN: Final = 0.1
#: A larger share of selections without a label makes a low score say little. Chosen by this project.
ABSTAINING: Final = 0.2
COVERAGE_DIFFERS: Final = "coverage_differs"
ABSTAIN_HEAVY: Final = "abstain_heavy"

#: Cells in which the layers that a measure speaks of have labels; the union is seen in full where both have.
_READ: Final = {"ber_sel_full": SEL_CODED, "ber_elab_full": ELAB_CODED}
_SELECTION_FAILED: Final = np.zeros(SHAPE)
_SELECTION_FAILED[5, :] = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class End:
    """The lowest or the highest score, and the side that gave it. The interval is of the lowest (highest) true one."""

    side: str
    value: float
    low: float
    high: float
    flags: tuple[str, ...] = ()  #: of this side's score


@dataclass(frozen=True, kw_only=True, slots=True)
class Exposure:
    """How far one score moves with the way of asking, with 95 % intervals that know of the choice."""

    lowest: End
    highest: End
    range: float  #: as observed, too wide on average
    corrected: float  #: less its bootstrap bias, never below 0
    low: float  #: of the true range
    high: float
    n_statements: int  #: of the side with the fewest
    left_out: tuple[str, ...]  #: sides with too few statements in the measure's base
    flags: tuple[str, ...] = ()


def exposure(sides: Sides, scores: Scores, *, n_boot: int, seed: int) -> Exposure | Insufficient:
    """Find the range of a score over sides, repetitions left out.

    The bounds follow from intervals that hold for all sides at once, each by the method of its own score at the level
    that max-T over the paired statement bootstrap asks for. The lowest true score is not above the lowest of their
    upper bounds; for the lower bound one interval alone is enough, since the side with the lowest true score is fixed.
    Likewise the highest. The range is bounded as ``auditor.stats.spread`` does, and where a score is rare by the ends.

    Parameters
    ----------
    sides
        Over the same parents.
    scores
        A measure of these sides.
    n_boot, seed
        Of the paired statement bootstrap.

    Returns
    -------
    Exposure or Insufficient
        Insufficient where fewer than two sides have 15 statements.
    """
    ways = [place for place, side in enumerate(sides.sides) if not side.repeats]
    kept = scores.enough(ways)
    if len(kept) < 2:
        return TOO_FEW_WAYS
    y, n = scores.successes[:, kept], scores.trials[:, kept]
    rates, replicates = rate_replicates(y, n, n_boot=n_boot, seed=seed)
    fewest = min(scores.statements[place] for place in kept)
    lowest, highest = _ends(scores, kept, rates, _level_of_all(rates, replicates, fewest), seed)
    spread = range_interval(rates, replicates, fewest)
    bounds = _range_bounds(spread, lowest, highest, [scores.level(place) for place in kept])
    return Exposure(
        lowest=_end(sides, scores, kept[spread.smallest], float(rates.min()), lowest),
        highest=_end(sides, scores, kept[spread.largest], float(rates.max()), highest),
        range=spread.range,
        corrected=spread.corrected,
        low=bounds.low,
        high=min(bounds.high, scores.span),
        n_statements=fewest,
        left_out=tuple(sides.names[place] for place in ways if place not in kept),
        flags=_flags(sides, scores, kept),
    )


def _end(sides: Sides, scores: Scores, place: int, value: float, interval: Interval) -> End:
    flags = scores.flags(place)
    return End(side=sides.names[place], value=value, low=interval.low, high=interval.high, flags=flags)


def _level_of_all(rates: Floats, replicates: Floats, clusters: int) -> float:
    """Find the level at which each interval has to hold for all to hold at once."""
    noise = (replicates - rates) * np.sqrt(clusters / (clusters - 1))
    quantile = level_of(largest_deviations(noise, noise.std(axis=0, ddof=1)), CONFIDENCE)
    return max(CONFIDENCE, float(1 - 2 * special.ndtr(-quantile)))


def _ends(scores: Scores, kept: Sequence[int], rates: Floats, level: float, seed: int) -> tuple[Interval, Interval]:
    """Bound the lowest and the highest true score; each interval holds what was observed."""
    alone = [scores.interval(place, CONFIDENCE, seed)[0] for place in kept]
    together = [scores.interval(place, level, seed)[0] for place in kept]
    smallest, largest = float(rates.min()), float(rates.max())
    return (
        Interval(
            low=min(smallest, *(each.low for each in alone)), high=max(smallest, min(each.high for each in together))
        ),
        Interval(
            low=min(largest, max(each.low for each in together)), high=max(largest, *(each.high for each in alone))
        ),
    )


def _range_bounds(spread: Spread, low: Interval, high: Interval, levels: Sequence[float]) -> Interval:
    """Bound the range; where a score is rare, bounds as far above as below reach too low, and the ends stand in."""
    rare = min(levels) < LOW_RATE or max(levels) > 1 - LOW_RATE
    widest = max(spread.high, high.high - low.low) if rare else spread.high
    return Interval(low=min(spread.low, spread.range), high=max(widest, spread.range))


def _flags(sides: Sides, scores: Scores, kept: Sequence[int]) -> tuple[str, ...]:
    """Say what some of the scores may not be read as, and whether they are of the same answers."""
    name = scores.metric.name
    flags = sorted({flag for place in kept for flag in scores.flags(place)})
    read = (sides.worth(_READ.get(name, ELIGIBLE)) * sides.weight[:, None]).mean(axis=0)[kept]
    if float(read.max() - read.min()) > UNEVEN:
        flags.append(COVERAGE_DIFFERS)
    if name != "ber_elab_full" and any(abstaining(sides, place) > ABSTAINING for place in kept):
        flags.append(ABSTAIN_HEAVY)
    return tuple(flags)


def abstaining(sides: Sides, place: int) -> float:
    """Share of a side's answers whose selection was asked for and has no label."""
    failed = sides.worth(_SELECTION_FAILED)[:, place]
    return float((failed * sides.weight).sum() / sides.weight.sum())
