"""Compare rates over several conditions with fixed weights, so that a change of the mix of questions does not count.

A pooled rate changes with the mix of conditions. Here the weight of each condition is fixed, and a change is computed
between the same statements. ``kitagawa`` splits a pooled change into the part of the rates and the part of the mix.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from auditor.counting.joint import Floats
from auditor.domain.estimate import Insufficient
from auditor.metrics.estimate import MIN_STATEMENTS
from auditor.stats.intervals import t_quantile

#: A condition with fewer statements than this has no rate of its own (MONITORING 1): nothing is put in its place.
MIN_STRATUM: Final = 5


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class GridCounts:
    """One measure over a grid: events (of a difference: signed) and trials, each of shape [S, C]."""

    events: Floats
    trials: Floats

    @property
    def rates(self) -> Floats:
        """Shape [C]: by condition; NaN for a condition without trials."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.events.sum(axis=0) / self.trials.sum(axis=0))

    @property
    def pooled(self) -> float:
        """The rate of all trials, whatever their condition; NaN without trials."""
        trials = float(self.trials.sum())
        return float(self.events.sum()) / trials if trials else float("nan")

    @property
    def shares(self) -> Floats:
        """Shape [C]: of the trials, each condition's share."""
        return np.asarray(self.trials.sum(axis=0) / self.trials.sum())


@dataclass(frozen=True, kw_only=True, slots=True)
class Standardised:
    """A rate, or a change of one, with its 95 % interval over statements."""

    value: float
    low: float
    high: float
    n: int  #: responses, of both windows where it is a change
    n_statements: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Split:
    """A change of the pooled rate, and its two parts: ``drift + mix``."""

    drift: float  #: the rates under the conditions changed
    mix: float  #: the conditions' shares changed

    @property
    def pooled(self) -> float:
        """The whole change."""
        return self.drift + self.mix


def estimable(counts: GridCounts) -> NDArray[np.bool_]:
    """Return for each condition whether ``MIN_STRATUM`` statements have answers; shape [C]."""
    return np.asarray((counts.trials > 0).sum(axis=0) >= MIN_STRATUM)


def standardised_rate(counts: GridCounts, weights: Floats, conf: float = 0.95) -> Standardised | Insufficient:
    """Compute the weighted mean of the conditions' rates (MONITORING 1), with an error clustered by statement.

    ``theta = sum_c w_c p_c``, ``u_s = sum_c w_c (y_sc - p_c n_sc) / n_c``, ``V = G / (G - 1) sum_s u_s^2`` and
    t(G - 1); G statements with data.

    Parameters
    ----------
    counts
        Every condition estimable.
    weights
        Shape [C], >= 0, of sum 1.
    conf
        Two-sided level.

    Returns
    -------
    Standardised or Insufficient
        Insufficient under 15 statements, or with a condition that is not estimable.

    Examples
    --------
    Two conditions of rates .1 and .5 with equal weight, however often each was asked.

    >>> y, n = np.tile([1.0, 1.0], (20, 1)), np.tile([10.0, 2.0], (20, 1))
    >>> standardised_rate(GridCounts(events=y, trials=n), np.array([0.5, 0.5])).value
    0.3
    """
    return _weighed([(1.0, counts)], weights, conf)


def standardised_difference(
    new: GridCounts, old: GridCounts, weights: Floats, conf: float = 0.95
) -> Standardised | Insufficient:
    """Compute the change of a standardised rate between two windows over the same statements and conditions.

    ``u_s = u_s(new) - u_s(old)``: a statement's own level cancels. A statement that only one window has counts too.

    Parameters
    ----------
    new, old
        Counts of the same shape, every condition estimable in both.
    weights
        Shape [C], >= 0, of sum 1.
    conf
        Two-sided level.

    Returns
    -------
    Standardised or Insufficient
        Insufficient under 15 statements, or with a condition that is not estimable.

    Examples
    --------
    >>> half, all_of_it = np.tile([0.0, 1.0], 10)[:, None], np.ones((20, 1))
    >>> ones = np.ones((20, 1))
    >>> difference = standardised_difference(
    ...     GridCounts(events=all_of_it, trials=ones), GridCounts(events=half, trials=ones), np.ones(1)
    ... )
    >>> difference.value, round(difference.high - difference.value, 3)
    (0.5, 0.24)
    """
    return _weighed([(1.0, new), (-1.0, old)], weights, conf)


def _weighed(windows: Sequence[tuple[float, GridCounts]], weights: Floats, conf: float) -> Standardised | Insufficient:
    """Add the windows' weighted rates, each with its sign, over the same statements."""
    if not len(weights) or not all(estimable(each).all() for _, each in windows):
        return Insufficient(reason=f"a condition has fewer than {MIN_STRATUM} statements")
    size = int(np.any([(each.trials > 0).any(axis=1) for _, each in windows], axis=0).sum())
    if size < MIN_STATEMENTS:
        return Insufficient(reason=f"{size} statements, {MIN_STATEMENTS} needed")
    value = float(sum(sign * (each.rates @ weights) for sign, each in windows))
    errors = np.sum([sign * _errors(each, weights) for sign, each in windows], axis=0)
    half = t_quantile(conf, size - 1) * float(np.sqrt(size / (size - 1) * (errors @ errors)))
    n = int(sum(each.trials.sum() for _, each in windows))
    return Standardised(value=value, low=value - half, high=value + half, n=n, n_statements=size)


def _errors(counts: GridCounts, weights: Floats) -> Floats:
    """Return each statement's part u_s of the error of the weighted rate; shape [S]."""
    apart = counts.events - counts.rates * counts.trials
    return np.asarray((apart / counts.trials.sum(axis=0)) @ weights)


def kitagawa(new: GridCounts, old: GridCounts) -> Split:
    """Split the change of the pooled rate into the parts of the rates and of the mix of conditions (Kitagawa 1955).

    ``sum_c w_c dp_c`` and ``sum_c p_c dw_c`` with the means of both windows' shares and rates.

    Parameters
    ----------
    new, old
        Counts over the same conditions, each with trials in both.

    Raises
    ------
    ValueError
        For a condition without trials: its rate is unknown.

    Examples
    --------
    No condition's rate has changed, and CTO is now asked more often: .278 becomes .424 by the mix alone.

    >>> rates, before, after = np.array([0.07, 0.15, 0.33, 0.56]), np.full(4, 250.0), np.array([100.0, 100, 200, 600])
    >>> split = kitagawa(*(GridCounts(events=(rates * n)[None, :], trials=n[None, :]) for n in (after, before)))
    >>> round(split.drift, 12), round(split.mix, 4)
    (0.0, 0.1465)
    """
    if not ((new.trials.sum(axis=0) > 0) & (old.trials.sum(axis=0) > 0)).all():
        raise ValueError("a condition has no trials in one of the windows")
    drift = (new.shares + old.shares) / 2 @ (new.rates - old.rates)
    mix = (new.rates + old.rates) / 2 @ (new.shares - old.shares)
    return Split(drift=float(drift), mix=float(mix))
