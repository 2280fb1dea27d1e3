"""Estimate exposure: the lowest and the highest score of the same exchanges over all formats.

A format that is chosen after its score is known is partly chosen by chance. The lowest of several noisy scores is too
low on average, the highest too high, and their range too wide. The intervals account for this selection.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy import special

from auditor.counting.joint import SHAPE, Floats
from auditor.documents.comparison import RangeEndEntry
from auditor.domain.estimate import Insufficient
from auditor.metrics.estimate import LOW_RATE
from auditor.metrics.rates import ELAB_CODED, ELIGIBLE, SEL_CODED
from auditor.stats.bootstrap import rate_replicates
from auditor.stats.intervals import Interval
from auditor.stats.max_t import largest_deviations, level_of
from auditor.stats.spread import Spread, range_interval
from replay.comparison.arms import Arms
from replay.comparison.scores import CONFIDENCE, Scores

#: If the coverage of two arms differs by more than this, their scores count different answers. Chosen by this project.
UNEVEN: Final = 0.1
#: If a larger share of selections has no label, a low score is weak evidence. Chosen by this project.
ABSTAINING: Final = 0.2
COVERAGE_DIFFERS: Final = "coverage_differs"
ABSTAIN_HEAVY: Final = "abstain_heavy"

#: Cells in which all layers of a measure have labels; the union needs labels on both.
_READ: Final = {"ber_sel_full": SEL_CODED, "ber_elab_full": ELAB_CODED}
_SELECTION_FAILED: Final = np.zeros(SHAPE)
_SELECTION_FAILED[5, :] = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Exposure:
    """The range of one score over the formats, with 95 % intervals."""

    lowest: RangeEndEntry
    highest: RangeEndEntry
    range: float  #: the observed range, too wide on average
    corrected: float  #: the observed range minus its bootstrap bias, at least 0
    low: float  #: the interval of the true range
    high: float
    n_statements: int  #: statements of the arm that has the fewest
    left_out: tuple[str, ...]  #: arms with too few statements in the measure's base
    flags: tuple[str, ...] = ()


def exposure(arms: Arms, scores: Scores, *, n_boot: int, seed: int) -> Exposure | Insufficient:
    """Estimate the range of a score over the arms, except repetitions.

    The bounds follow from simultaneous intervals of all arms. Each interval uses the method of its own score, at the
    level that max-T over the paired statement bootstrap requires. The lowest true score is at most the lowest of the
    upper bounds. The lower bound needs one interval only, because the arm with the lowest true score is fixed. The same
    holds for the highest score. The range is bounded as in ``auditor.stats.spread``, and from its two ends if a score
    is rare.

    Parameters
    ----------
    arms
        The arms, over the same parents.
    scores
        The scores of one measure in these arms.
    n_boot, seed
        Replicates and seed of the paired statement bootstrap.

    Returns
    -------
    Exposure or Insufficient
        Insufficient if fewer than two arms have 15 statements.
    """
    places = [place for place, arm in enumerate(arms.arms) if not arm.repeats]
    kept = scores.enough(places)
    if len(kept) < 2:
        return scores.too_few(places)
    y, n = scores.successes[:, kept], scores.trials[:, kept]
    rates, replicates = rate_replicates(y, n, n_boot=n_boot, seed=seed)
    fewest = min(scores.statements[place] for place in kept)
    lowest, highest = _ends(scores, kept, rates, _level_of_all(rates, replicates, fewest), seed)
    spread = range_interval(rates, replicates, fewest)
    bounds = _range_bounds(spread, lowest, highest, [scores.level(place) for place in kept])
    return Exposure(
        lowest=_end(arms, scores, kept[spread.smallest], float(rates.min()), lowest),
        highest=_end(arms, scores, kept[spread.largest], float(rates.max()), highest),
        range=spread.range,
        corrected=spread.corrected,
        low=bounds.low,
        high=min(bounds.high, scores.span),
        n_statements=fewest,
        left_out=tuple(arms.names[place] for place in places if place not in kept),
        flags=_flags(arms, scores, kept),
    )


def _end(arms: Arms, scores: Scores, place: int, value: float, interval: Interval) -> RangeEndEntry:
    flags = scores.flags(place)
    return RangeEndEntry(side=arms.names[place], value=value, low=interval.low, high=interval.high, flags=flags)


def _level_of_all(rates: Floats, replicates: Floats, clusters: int) -> float:
    """Return the level of each interval at which all intervals hold simultaneously."""
    noise = (replicates - rates) * np.sqrt(clusters / (clusters - 1))
    quantile = level_of(largest_deviations(noise, noise.std(axis=0, ddof=1)), CONFIDENCE)
    return max(CONFIDENCE, float(1 - 2 * special.ndtr(-quantile)))


def _ends(scores: Scores, kept: Sequence[int], rates: Floats, level: float, seed: int) -> tuple[Interval, Interval]:
    """Bound the lowest and the highest true score. Each interval contains the observed value."""
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
    """Bound the range. For a rare score symmetric bounds are too low, so the bounds of the two ends are used."""
    rare = min(levels) < LOW_RATE or max(levels) > 1 - LOW_RATE
    widest = max(spread.high, high.high - low.low) if rare else spread.high
    return Interval(low=min(spread.low, spread.range), high=max(widest, spread.range))


def _flags(arms: Arms, scores: Scores, kept: Sequence[int]) -> tuple[str, ...]:
    """Return the flags of the scores, of different coverage, and of many selections without a label."""
    name = scores.metric.name
    flags = sorted({flag for place in kept for flag in scores.flags(place)})
    read = (arms.values(_READ.get(name, ELIGIBLE)) * arms.weight[:, None]).mean(axis=0)[kept]
    if float(read.max() - read.min()) > UNEVEN:
        flags.append(COVERAGE_DIFFERS)
    if name != "ber_elab_full" and any(abstaining(arms, place) > ABSTAINING for place in kept):
        flags.append(ABSTAIN_HEAVY)
    return tuple(flags)


def abstaining(arms: Arms, place: int) -> float:
    """Return the share of an arm's answers whose selection was requested but has no label."""
    failed = arms.values(_SELECTION_FAILED)[:, place]
    return float((failed * arms.weight).sum() / arms.weight.sum())
