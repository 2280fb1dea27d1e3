"""Compute a sequential verdict: after each question, whether the evidence suffices.

The order of the questions is random but fixed, so that the order of a file has no influence. Every part of it has each
theme in about its share of the pack, because questions of one theme resemble each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from msgspec import UNSET, structs

from auditor.documents.base import Missing
from auditor.documents.peers import ConfidenceSequenceEntry, PathPointEntry, SequentialEntry
from auditor.domain.estimate import Insufficient
from auditor.peers.comparison import ENOUGH_PEERS, MarginRule, judge_deviation, margin_of, too_few
from auditor.peers.vectors import Indices
from auditor.stats.differences import Verdict
from auditor.stats.intervals import Floats
from auditor.stats.sequential import SequentialTOST, read_sequence

#: Share of the questions that set the margin if none is declared; they are not tested.
CALIBRATION: Final = 0.25
#: Seed of the order. It is not an option: choosing an order after seeing the verdict would void the error rate.
_SEED: Final = 20
#: The most points of a path that the document holds; a longer path is thinned evenly.
_MOST_POINTS: Final = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Watched:
    """The results after every question; bounds are asymptotic and hold at all times at once."""

    test: SequentialTOST  #: state after the last question
    path: tuple[PathPointEntry, ...]  #: one point for each question
    read: Verdict  #: the first verdict of the asymptotic sequence
    read_after: int | None


def question_order(themes: Sequence[str | None], seed: int = _SEED) -> Indices:
    """Return a random order of questions in which every part has each theme in its share.

    Parameters
    ----------
    themes
        Theme of each question; None is a theme like any other.
    seed
        Seed of the draw.

    Returns
    -------
    array
        Shape [N]: places of the questions. A theme's j-th of n questions comes at a random place of the j-th n-th of
        the order.

    Examples
    --------
    >>> themes = ["a"] * 6 + ["b"] * 2
    >>> [themes[place] for place in question_order(themes)]
    ['a', 'a', 'b', 'a', 'a', 'b', 'a', 'a']
    """
    rng = np.random.default_rng(seed)
    keys = np.empty(len(themes))
    for theme in sorted(set(themes), key=lambda each: (each is not None, each)):
        of_theme = np.array([each == theme for each in themes])
        n = int(of_theme.sum())
        keys[of_theme] = (rng.permutation(n) + rng.random(n)) / n
    return np.argsort(keys, kind="stable")


def watch(differences: Floats, margin: float, bound: float, alpha: float) -> Watched:
    """Test after every question.

    Parameters
    ----------
    differences
        Shape [n], in [-bound, bound], in the order of the questions.
    margin, bound, alpha
        Parameters of ``SequentialTOST``.
    """
    test, path = SequentialTOST(margin=margin, bound=bound, alpha=alpha), []
    read: Verdict = "inconclusive"
    read_after = None
    for difference in differences.tolist():
        test.update(difference)
        bounds = test.sequence()
        point = PathPointEntry(n=test.n, mean=test.mean)
        if isinstance(bounds, Insufficient):
            path.append(point)
            continue
        path.append(structs.replace(point, low=bounds.low, high=bounds.high))
        if read_after is None:
            read = read_sequence(bounds, margin)
            read_after = None if read == "inconclusive" else test.n
    return Watched(test=test, path=tuple(path), read=read, read_after=read_after)


def sequential_verdict(values: Floats, bound: float, rule: MarginRule) -> SequentialEntry | Missing:
    """Compare the first deployment with the others, question by question.

    Parameters
    ----------
    values
        Shape [N, 1 + P], the target first, in the order of the questions; NaN is no value.
    bound
        The largest possible difference of two values.
    rule
        A declared margin is for all questions. Else the first ``CALIBRATION`` of them make it, and are not tested.

    Returns
    -------
    SequentialEntry or Missing
        Nothing without a margin below the bound, or without questions to test.
    """
    there = values[~np.isnan(values[:, 0]) & ~np.isnan(values[:, 1:]).all(axis=1)]
    n_calibration = 0 if rule.margin is not None else int(np.ceil(CALIBRATION * len(there)))
    margin = rule.margin if rule.margin is not None else _calibrated(there[:n_calibration, 1:], rule)
    differences = judge_deviation(there[n_calibration:])
    if not len(differences):
        return Missing(missing="no questions are left to test")
    if isinstance(margin, Insufficient):
        return Missing(missing=margin.reason)
    if margin >= bound:
        return Missing(missing="no difference can exceed the margin")
    watched = watch(differences, margin, bound, rule.alpha)
    test = watched.test
    return SequentialEntry(
        verdict=test.verdict,
        after=UNSET if test.after is None else test.after,
        n=test.n,
        n_calibration=n_calibration,
        margin=test.margin,
        e_lower=test.lower,
        e_upper=test.upper,
        e_different=test.different,
        confidence_sequence=_confidence_sequence(watched),
        path=_thin(watched.path),
    )


def _confidence_sequence(watched: Watched) -> ConfidenceSequenceEntry | Missing:
    bounds, after = watched.test.sequence(), watched.read_after
    if isinstance(bounds, Insufficient):
        return Missing(missing=bounds.reason)
    return ConfidenceSequenceEntry(
        low=bounds.low, high=bounds.high, verdict=watched.read, after=UNSET if after is None else after
    )


def _thin(path: Sequence[PathPointEntry]) -> list[PathPointEntry]:
    """Keep the last point and evenly spaced ones before it."""
    step = -(-len(path) // _MOST_POINTS)
    return list(path[::-step])[::-1]


def _calibrated(peers: Floats, rule: MarginRule) -> float | Insufficient:
    present = peers[:, (~np.isnan(peers)).any(axis=0)]
    return too_few(ENOUGH_PEERS) if present.shape[1] < ENOUGH_PEERS else margin_of(present, rule)
