"""A verdict that may be watched: questions one after the other, until their evidence suffices.

The order is drawn once, whatever is found: were it the file's, an ordered pack would decide what is seen first. Every
stretch of it holds each theme in about its share of the pack, as questions of one theme resemble each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from auditor.domain.estimate import Insufficient
from auditor.peers.comparison import ENOUGH_PEERS, Rule, margin_of, too_few
from auditor.peers.deviation import judge_deviation
from auditor.peers.vectors import Indices
from auditor.stats.equivalence import Verdict
from auditor.stats.intervals import Floats, Interval
from auditor.stats.sequential import SequentialTOST, read_sequence

#: Share of the questions that make the margin where none is declared; they take no part in the test.
CALIBRATION: Final = 0.25
#: Of the order. No option: an order that is chosen after the verdict was seen voids its promise.
_SEED: Final = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """What was known after so many questions."""

    n: int
    mean: float
    bounds: Interval | Insufficient  #: of the mean, asymptotic, at all times at once


@dataclass(frozen=True, kw_only=True, slots=True)
class Watched:
    """Questions taken one by one."""

    test: SequentialTOST  #: after the last
    path: tuple[Point, ...]  #: a point a question
    read: Verdict  #: of the asymptotic sequence, the first it came to
    read_after: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Sequential:
    """A sequential verdict, and how its margin came about."""

    watched: Watched
    n_calibration: int  #: questions that made the margin; 0 where it was declared


def question_order(themes: Sequence[str | None], seed: int = _SEED) -> Indices:
    """Draw an order of questions that holds every theme in its share throughout.

    Parameters
    ----------
    themes
        Of each question; None is a theme like any other.
    seed
        Of the draw.

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
        own = np.array([each == theme for each in themes])
        n = int(own.sum())
        keys[own] = (rng.permutation(n) + rng.random(n)) / n
    return np.argsort(keys, kind="stable")


def watch(differences: Floats, margin: float, bound: float, alpha: float) -> Watched:
    """Look after every question.

    Parameters
    ----------
    differences
        Shape [n], in [-bound, bound], in the order of the questions.
    margin, bound, alpha
        As ``SequentialTOST`` takes them.
    """
    test, path = SequentialTOST(margin=margin, bound=bound, alpha=alpha), []
    read: Verdict = "inconclusive"
    read_after = None
    for difference in differences.tolist():
        test.update(difference)
        bounds = test.sequence()
        path.append(Point(n=test.n, mean=test.mean, bounds=bounds))
        if read_after is None and isinstance(bounds, Interval):
            read = read_sequence(bounds, margin)
            read_after = None if read == "inconclusive" else test.n
    return Watched(test=test, path=tuple(path), read=read, read_after=read_after)


def sequential_verdict(values: Floats, bound: float, rule: Rule) -> Sequential | Insufficient:
    """Compare the first deployment with the others, question by question.

    Parameters
    ----------
    values
        Shape [N, 1 + P], the target first, in the order of the questions; NaN is no value.
    bound
        How far two values can lie apart.
    rule
        A declared margin is for all questions. Else the first ``CALIBRATION`` of them make it, and are not tested.

    Returns
    -------
    Sequential or Insufficient
        Nothing without a margin below the bound, or without questions to test.
    """
    there = values[~np.isnan(values[:, 0]) & ~np.isnan(values[:, 1:]).all(axis=1)]
    n_calibration = 0 if rule.margin is not None else int(np.ceil(CALIBRATION * len(there)))
    margin = rule.margin if rule.margin is not None else _calibrated(there[:n_calibration, 1:], rule)
    differences = judge_deviation(there[n_calibration:])
    if not len(differences):
        return Insufficient(reason="no questions are left to test")
    if isinstance(margin, Insufficient):
        return margin
    if margin >= bound:
        return Insufficient(reason="no difference can exceed the margin")
    return Sequential(watched=watch(differences, margin, bound, rule.alpha), n_calibration=n_calibration)


def _calibrated(peers: Floats, rule: Rule) -> float | Insufficient:
    present = peers[:, (~np.isnan(peers)).any(axis=0)]
    return too_few(ENOUGH_PEERS) if present.shape[1] < ENOUGH_PEERS else margin_of(present, rule)
