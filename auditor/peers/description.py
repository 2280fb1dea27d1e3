"""What an instrument says of each deployment and theme, and how much of a difference goes with the answers' length."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy import stats

from auditor.domain.estimate import Insufficient
from auditor.peers.deviation import mean_present
from auditor.peers.score_rows import HIGHEST, LOWEST
from auditor.stats.differences import Difference, paired, t_interval
from auditor.stats.intervals import Floats, Interval

#: Columns of a histogram of distances; one of scores has one for each of the judges' whole numbers.
_BINS: Final = 24
#: Questions that a line through differences needs.
_FEWEST: Final = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Mean:
    """A mean over questions with its 95 % interval."""

    value: float
    interval: Interval | Insufficient
    n: int


@dataclass(frozen=True, kw_only=True, slots=True)
class LengthEffect:
    """The paired difference beside the difference in length of the same answers."""

    n: int  #: questions where the target and a peer have a text and a value
    characters_target: float  #: mean length
    characters_peers: float
    ratio: float  #: typical length of the target's answers in units of its peers', by geometric mean
    correlation: float  #: of difference and log length ratio, in [-1, 1]
    slope: float  #: change of the difference when the target's answer is e times as long as its peers'
    adjusted: Difference  #: difference of the target at equal length
    interval: Interval  #: of it, 95 %


def mean_of(values: Floats) -> Mean | Insufficient:
    """Average what is there of one deployment.

    >>> mean_of(np.array([1.0, np.nan, 3.0])).value
    2.0
    """
    there = values[~np.isnan(values)]
    if not len(there):
        return Insufficient(reason="no values")
    interval = t_interval(paired(there)) if len(there) > 1 else Insufficient(reason="a single question")
    return Mean(value=float(there.mean()), interval=interval, n=len(there))


def edges(values: Floats, *, judged: bool) -> Floats:
    """Choose the edges of histograms that all deployments share.

    >>> edges(np.array([2.0]), judged=True)[:2].tolist()
    [0.5, 1.5]
    """
    if judged:
        return np.arange(LOWEST - 0.5, HIGHEST + 1)
    there = values[~np.isnan(values)]
    return np.linspace(0, float(there.max(initial=0)) or 1.0, _BINS + 1)


def counts(values: Floats, bins: Floats) -> list[int]:
    """Count what is there of one deployment between the edges."""
    return [int(each) for each in np.histogram(values[~np.isnan(values)], bins)[0]]


def quartiles(values: Floats) -> list[float]:
    """Give the least, the three quartiles and the greatest of what is there; nothing where nothing is."""
    there = values[~np.isnan(values)]
    return [float(each) for each in np.quantile(there, [0, 0.25, 0.5, 0.75, 1])] if len(there) else []


def length_effect(values: Floats, lengths: Floats) -> LengthEffect | Insufficient:
    """Fit a line through the paired differences over the log ratio of lengths.

    Length is a covariate and no correction: where a deployment deviates by saying little, holding length equal takes
    away the very thing that was found.

    Parameters
    ----------
    values, lengths
        Shape [N, 1 + P], the target first: scores, and characters of the answers (positive, NaN where unknown).

    Returns
    -------
    LengthEffect or Insufficient
        Nothing where lengths are not known, or do not vary.

    Examples
    --------
    A difference of 2 at equal length and one more for each unit of log length.

    >>> ratio = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    >>> values = np.stack([2 + ratio, 0 * ratio, 0 * ratio], axis=1)
    >>> lengths = np.stack([np.exp(ratio) * 100, 0 * ratio + 100, 0 * ratio + 100], axis=1)
    >>> effect = length_effect(values, lengths)
    >>> round(effect.adjusted.value, 9), round(effect.slope, 9)
    (2.0, 1.0)
    """
    both = ~np.isnan(values) & ~np.isnan(lengths)
    known = np.where(both, lengths, np.nan)
    logs = np.log(known)
    ratio = logs[:, 0] - mean_present(logs[:, 1:], 1)
    held = np.where(both, values, np.nan)
    differences = held[:, 0] - mean_present(held[:, 1:], 1)
    used = ~np.isnan(ratio)
    if (n := int(used.sum())) < _FEWEST:
        return Insufficient(reason=f"fewer than {_FEWEST} questions with the texts of the target and a peer")
    x, y = ratio[used], differences[used]
    if np.ptp(x) < 1e-9 or np.ptp(y) < 1e-12:
        return Insufficient(reason="the lengths or the differences do not vary")
    line = stats.linregress(x, y)
    adjusted = Difference(value=float(line.intercept), se=float(line.intercept_stderr), df=float(n - 2))
    return LengthEffect(
        n=n,
        characters_target=float(known[used, 0].mean()),
        characters_peers=float(mean_present(known[used, 1:], 1).mean()),
        ratio=float(np.exp(x.mean())),
        correlation=float(line.rvalue),
        slope=float(line.slope),
        adjusted=adjusted,
        interval=t_interval(adjusted),
    )
