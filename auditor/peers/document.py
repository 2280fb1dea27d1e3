"""Make the entries of ``peers.json``: what a comparison found, each deployment's values, and the effect of length."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import scipy
from msgspec import structs

from auditor.documents.base import Missing, or_missing
from auditor.documents.peers import (
    AdjustedDifferenceEntry,
    BriefEntry,
    LengthEntry,
    PairedTestEntry,
    PeerMeanEntry,
    ReadingEntry,
)
from auditor.domain.estimate import Insufficient
from auditor.peers.comparison import PeerComparison
from auditor.peers.score_table import HIGHEST, LOWEST
from auditor.stats.differences import Difference, Equivalence, mean_present, paired, t_interval
from auditor.stats.intervals import Floats

#: The paper's words for its test (Relative Bias A.4.3), by whether it shows equivalence.
CONCLUSIONS: Final = {True: "Not Relatively Biased (Equivalent)", False: "Potentially Relatively Biased"}
_TESTS: Final = ("t_lower", "t_upper", "p_lower", "p_upper")


def comparison_fields(comparison: PeerComparison) -> dict[str, Any]:
    """Return the fields of a comparison that an ``InstrumentEntry`` and a ``ReadingEntry`` share."""
    return {
        "n_target": comparison.n_target,
        "n_baseline": comparison.n_baseline,
        "mean_target": comparison.mean_target,
        "mean_baseline": comparison.mean_baseline,
        "diff": comparison.published.value,
        "delta": or_missing(comparison.margin),
        "conclusion": or_missing(_conclusion(comparison.published_test)),
        "verdict": or_missing(comparison.verdict),
        "paired": paired_entry(comparison.paired, comparison.paired_test),
    }


def published_fields(comparison: PeerComparison) -> dict[str, Any]:
    """Return the fields of the paper's Welch test that an ``InstrumentEntry`` has beside the shared ones."""
    test = comparison.published_test
    return {
        "n_questions": comparison.n_questions,
        "n_peers": comparison.n_peers,
        "se": comparison.published.se,
        "df": comparison.published.df,
        "equivalent": Missing(missing=test.reason) if isinstance(test, Insufficient) else _is_equivalent(test),
        **_test_fields(test, _TESTS),
    }


def brief_entry(comparison: PeerComparison | Insufficient) -> BriefEntry | Missing:
    """Return a comparison in short: for another margin, another reading, or without a peer."""
    if isinstance(comparison, Insufficient):
        return Missing(missing=comparison.reason)
    by_question = comparison.paired
    return BriefEntry(
        diff=or_missing(by_question if isinstance(by_question, Insufficient) else by_question.value),
        delta=or_missing(comparison.margin),
        verdict=or_missing(comparison.verdict),
    )


def reading_entry(comparison: PeerComparison | Insufficient) -> ReadingEntry | Missing:
    """Return a comparison in the other reading of blocked answers."""
    if isinstance(comparison, Insufficient):
        return Missing(missing=comparison.reason)
    return ReadingEntry(**comparison_fields(comparison))


def paired_entry(difference: Difference | Insufficient, test: Equivalence | Insufficient) -> PairedTestEntry | Missing:
    """Return a paired difference with its interval and its tests."""
    if isinstance(difference, Insufficient):
        return Missing(missing=difference.reason)
    interval = t_interval(difference)
    return PairedTestEntry(
        diff=difference.value,
        se=difference.se,
        df=difference.df,
        low=interval.low,
        high=interval.high,
        **_test_fields(test, (*_TESTS, "p_different")),
    )


def _is_equivalent(test: Equivalence) -> bool:
    # The paper's rule: equivalent where both one-sided tests reject, potentially biased everywhere else.
    return test.verdict == "equivalent"


def _conclusion(test: Equivalence | Insufficient) -> str | Insufficient:
    return test if isinstance(test, Insufficient) else CONCLUSIONS[_is_equivalent(test)]


def _test_fields(test: Equivalence | Insufficient, names: Sequence[str]) -> dict[str, Any]:
    if isinstance(test, Insufficient):
        return dict.fromkeys(names, Missing(missing=test.reason))
    return {name: getattr(test, name) for name in names}


#: Bins of a histogram of distances; a histogram of scores has one bin per whole score.
_BINS: Final = 24
#: The fewest questions for a regression line.
_FEWEST: Final = 4


def mean_of(values: Floats) -> PeerMeanEntry | Missing:
    """Compute the mean of a deployment's values with its 95 % interval; NaN is left out.

    >>> mean_of(np.array([1.0, np.nan, 3.0])).mean
    2.0
    """
    there = values[~np.isnan(values)]
    if not len(there):
        return Missing(missing="no values")
    entry = PeerMeanEntry(mean=float(there.mean()), n=len(there))
    if len(there) < 2:
        return entry
    interval = t_interval(paired(there))
    return structs.replace(entry, low=interval.low, high=interval.high)


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
    """Count a deployment's values between the edges; NaN is left out."""
    return [int(each) for each in np.histogram(values[~np.isnan(values)], bins)[0]]


def quartiles(values: Floats) -> list[float]:
    """Return minimum, quartiles and maximum of a deployment's values; an empty list if there are none."""
    there = values[~np.isnan(values)]
    return [float(each) for each in np.quantile(there, [0, 0.25, 0.5, 0.75, 1])] if len(there) else []


def length_effect(values: Floats, lengths: Floats) -> LengthEntry | Missing:
    """Fit a line through the paired differences over the log ratio of lengths.

    Length is a covariate, not a correction: if a deployment deviates by short answers, adjusting for length removes the
    effect that was found.

    Parameters
    ----------
    values, lengths
        Shape [N, 1 + P], the target first: scores, and characters of the answers (positive, NaN where unknown).

    Returns
    -------
    LengthEntry or Missing
        ``ratio`` is the typical length of the target's answers in units of its peers', by geometric mean;
        ``correlation`` is of difference and log length ratio; ``slope`` is the change of the difference when the
        target's answer is e times as long. Nothing where lengths are not known, or do not vary.

    Examples
    --------
    A difference of 2 at equal length and one more for each unit of log length.

    >>> ratio = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    >>> values = np.stack([2 + ratio, 0 * ratio, 0 * ratio], axis=1)
    >>> lengths = np.stack([np.exp(ratio) * 100, 0 * ratio + 100, 0 * ratio + 100], axis=1)
    >>> effect = length_effect(values, lengths)
    >>> round(effect.adjusted.diff, 9), round(effect.slope, 9)
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
        return Missing(missing=f"fewer than {_FEWEST} questions with the texts of the target and a peer")
    x, y = ratio[used], differences[used]
    if np.ptp(x) < 1e-9 or np.ptp(y) < 1e-12:
        return Missing(missing="the lengths or the differences do not vary")
    line = scipy.stats.linregress(x, y)
    adjusted = Difference(value=float(line.intercept), se=float(line.intercept_stderr), df=float(n - 2))
    interval = t_interval(adjusted)
    return LengthEntry(
        n=n,
        characters_target=float(known[used, 0].mean()),
        characters_peers=float(mean_present(known[used, 1:], 1).mean()),
        ratio=float(np.exp(x.mean())),
        correlation=float(line.rvalue),
        slope=float(line.slope),
        adjusted=AdjustedDifferenceEntry(
            diff=adjusted.value, se=adjusted.se, df=adjusted.df, low=interval.low, high=interval.high
        ),
    )
