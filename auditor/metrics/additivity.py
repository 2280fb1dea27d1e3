"""Compute whether the changes of two prompt factors add up (BiAxisAudit section VI-B).

With p the rate at the reference, p_a and p_b with one factor changed and p_ab with both, the joint change is p_ab - p,
the additive expectation (p_a - p) + (p_b - p), and the departure their difference: p_ab - p_a - p_b + p. All four
rates are needed. A design that varies one factor at a time lacks p_ab or one of the others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from auditor.counting.conditions import FACTORS, Levels
from auditor.counting.joint import Floats
from auditor.metrics.estimate import MIN_STATEMENTS
from auditor.stats.bootstrap import rate_replicates
from auditor.stats.max_t import Simultaneous, simultaneous_intervals

#: Weights of p, p_a, p_b and p_ab.
JOINT: Final = (-1.0, 0.0, 0.0, 1.0)
ADDITIVE: Final = (-2.0, 1.0, 1.0, 0.0)
DEPARTURE: Final = (1.0, -1.0, -1.0, 1.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Square:
    """Four conditions: the reference, one factor changed, the other changed, both changed."""

    factors: tuple[int, int]
    levels: tuple[str, str]  #: those that replace the reference's
    places: tuple[int, int, int, int]  #: places in the list of conditions


@dataclass(frozen=True, kw_only=True, slots=True)
class Contrasts:
    """Changes of the rates of P squares; the intervals of each hold together for all squares."""

    squares: Sequence[Square]
    joint: Simultaneous
    additive: Simultaneous
    departure: Simultaneous
    n: Floats  #: shape [P]: responses
    n_statements: Floats  #: shape [P]: of the condition that has fewest


def find_squares(conditions: Sequence[Levels], reference: Levels) -> list[Square]:
    """Find all pairs of changes from a reference that were asked one at a time and together.

    Examples
    --------
    >>> tones = [(task, "self", "none", tone) for task in ("BJ", "CTO") for tone in ("neutral", "skeptical")]
    >>> [(square.levels, square.places) for square in find_squares(tones, ("CTO", "self", "none", "neutral"))]
    [(('BJ', 'skeptical'), (2, 0, 3, 1))]
    """
    place = {condition: index for index, condition in enumerate(conditions)}
    squares = []
    for condition in conditions:
        changed = [factor for factor in range(len(FACTORS)) if condition[factor] != reference[factor]]
        if len(changed) != 2:
            continue
        first, second = changed
        corners = [reference, _with(reference, condition, first), _with(reference, condition, second), condition]
        if all(corner in place for corner in corners):
            a, b, c, d = (place[corner] for corner in corners)
            levels = condition[first], condition[second]
            squares.append(Square(factors=(first, second), levels=levels, places=(a, b, c, d)))
    order = {pair: index for index, pair in enumerate(combinations(range(len(FACTORS)), 2))}
    return sorted(squares, key=lambda square: order[square.factors])


def _with(reference: Levels, other: Levels, factor: int) -> Levels:
    """Return the reference with one level of another condition."""
    task, perspective, role, sentiment = (
        other[place] if place == factor else level for place, level in enumerate(reference)
    )
    return task, perspective, role, sentiment


def additivity_contrasts(
    squares: Sequence[Square], successes: Floats, trials: Floats, *, n_boot: int, seed: int
) -> Contrasts | None:
    """Compare joint changes with the sums of single ones, by the paired statement bootstrap and max-T.

    Parameters
    ----------
    squares
        Squares of conditions 0 to C - 1.
    successes, trials
        Shape [S, C]: by statement and condition.
    n_boot, seed
        Replicates, at least 20, and seed of the draws.

    Returns
    -------
    Contrasts or None
        Contrasts of the squares whose four conditions have ``MIN_STATEMENTS`` statements each; None if there is none.

    Examples
    --------
    One factor takes away half of .8, the other a quarter, and both together no more than the first alone.

    >>> square = Square(factors=(0, 2), levels=("BJ", "chef"), places=(0, 1, 2, 3))
    >>> y, n = np.tile([8.0, 4.0, 6.0, 4.0], (50, 1)), np.full((50, 4), 10.0)
    >>> out = additivity_contrasts([square], y, n, n_boot=50, seed=0)
    >>> [round(float(each.value[0]), 9) for each in (out.joint, out.additive, out.departure)]
    [-0.4, -0.6, 0.2]
    """
    statements = np.count_nonzero(trials, axis=0)
    kept = [square for square in squares if statements[list(square.places)].min() >= MIN_STATEMENTS]
    if not kept:
        return None
    used = sorted({place for square in kept for place in square.places})
    corners = np.array([[used.index(place) for place in square.places] for square in kept])
    rates, replicates = rate_replicates(successes[:, used], trials[:, used], n_boot=n_boot, seed=seed)
    fewest = statements[used][corners].min(axis=1)

    def changes(weights: Sequence[float]) -> Simultaneous:
        contrast = np.array(weights)
        return simultaneous_intervals(
            rates[corners] @ contrast, replicates[:, corners] @ contrast, fewest, least_se=1 / fewest
        )

    return Contrasts(
        squares=kept,
        joint=changes(JOINT),
        additive=changes(ADDITIVE),
        departure=changes(DEPARTURE),
        n=trials[:, used].sum(axis=0)[corners].sum(axis=1),
        n_statements=fewest.astype(np.float64),
    )
