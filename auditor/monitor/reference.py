"""The reference window: what each statement's rate was, how well that is known, and whether days shook all of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import ndtri
from scipy.stats import chi2

from auditor.domain.estimate import Insufficient
from auditor.metrics.estimate import ENOUGH_STATEMENTS
from auditor.metrics.joint import Floats
from auditor.monitor.passes import Pass, shifts

#: Passes that a reference needs: fewer say next to nothing of how statements vary from day to day.
MIN_PASSES: Final = 7
#: Day means that vary so many times more than statements explain void the paired detector's promise (MONITORING 3.2).
MOST_OVERDISPERSED: Final = 1.3
_CHANCE: Final = 0.01


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Reference:
    """What one measure of one deployment was like over the reference passes."""

    expected: Floats  #: shape [S, C]: rates; NaN where nothing was answered
    allowance: float  #: b: how far the mean of what is expected may itself be off, at the level asked for
    variance: float  #: of one statement's shift in one pass, on average
    overdispersion: float  #: variance of the day means over what the statements explain of it; 1 without common shocks
    levels: tuple[float, ...]  #: the passes' levels, oldest first
    n_statements: int
    n_passes: int

    @property
    def shaken(self) -> bool:
        """Whether whole days moved together, so that only the day detector may be believed.

        A ratio of few passes is noisy: it must also be more than chance gives one reference in a hundred.
        """
        freedom = self.n_passes - 1
        by_chance = float(chi2.sf(self.overdispersion * freedom, freedom))
        return self.overdispersion > MOST_OVERDISPERSED and by_chance < _CHANCE


def fit_reference(passes: Sequence[Pass], *, alpha: float, series: int = 1) -> Reference | Insufficient:
    """Fit a reference to its passes, oldest first (MONITORING 3.1).

    Parameters
    ----------
    passes
        Over the same panel of statements and conditions.
    alpha
        Probability that any of the allowances misses: a part of the promise's alpha.
    series
        K allowances that share it.

    Returns
    -------
    Reference or Insufficient
        Insufficient under ``MIN_PASSES`` passes or ``ENOUGH_STATEMENTS`` statements asked in two of them.

    Examples
    --------
    >>> days = [Pass(events=np.full((100, 1), k % 2), trials=np.full((100, 1), 4)) for k in range(8)]
    >>> found = fit_reference(days, alpha=0.05)
    >>> float(found.expected[0, 0]), found.n_statements, found.shaken
    (0.125, 100, True)
    """
    if len(passes) < MIN_PASSES:
        return Insufficient(reason=f"{len(passes)} passes, {MIN_PASSES} needed for a reference")
    trials = np.sum([each.trials for each in passes], axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = np.sum([each.events for each in passes], axis=0) / trials
    moved = shifts(np.stack([each.rates for each in passes]), expected)
    number = (~np.isnan(moved)).sum(axis=0)
    usable = number >= 2
    if usable.sum() < ENOUGH_STATEMENTS:
        return Insufficient(reason=f"{int(usable.sum())} statements in two passes, {ENOUGH_STATEMENTS} needed")
    moved, number = moved[:, usable], number[usable]
    variance = np.nanvar(moved, axis=0, ddof=1)
    size = len(number)
    explained = variance.sum() / size**2
    observed = float(np.nanvar(np.nanmean(moved, axis=1), ddof=1))
    levels = tuple(level for each in passes if (level := each.level) is not None)
    return Reference(
        expected=np.where(usable[:, None], expected, np.nan),
        allowance=float(-ndtri(alpha / (2 * series)) * np.sqrt((variance / number).sum()) / size),
        variance=float(variance.mean()),
        overdispersion=observed / explained if explained > 0 else 1.0,
        levels=levels,
        n_statements=size,
        n_passes=len(passes),
    )
