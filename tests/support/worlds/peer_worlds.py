"""Deployments whose true difference from their peers is known, and what comes of watching them question by question."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import special

from auditor.peers.sequential import question_order, watch

QUESTIONS = 400
ALPHA = 0.05
#: Questions before the tests that are meant for one look are looked at: any fewer would be unfair to them.
PATIENCE = 10
SCORES, DISTANCES = 9.0, 2.0

Draw = Callable[[np.random.Generator, float], np.ndarray]


@dataclass(frozen=True, kw_only=True)
class World:
    """A true difference, and the differences by question that come of it."""

    draw: Draw  #: of a generator and the true difference: [QUESTIONS]
    difference: float
    margin: float
    bound: float = SCORES


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The first verdicts, each with the questions until it, None where there is none."""

    bets: tuple[str, int | None]
    sequence: tuple[str, int | None]
    naive_equivalent: bool  #: the paired tests, looked at after every question, called it so at least once
    naive_different: bool
    naive_after: int | None


def peeked(world: World, seed: int) -> Outcome:
    """Watch one pack of questions."""
    differences = world.draw(np.random.default_rng([30, seed]), world.difference)
    found = watch(differences, world.margin, world.bound, ALPHA)
    equivalent, different = naive_verdicts(differences, world.margin)
    first = np.flatnonzero(equivalent | different)
    return Outcome(
        bets=(found.test.verdict, found.test.after),
        sequence=(found.read, found.read_after),
        naive_equivalent=bool(equivalent.any()),
        naive_different=bool(different.any()),
        naive_after=int(first[0]) + 1 if len(first) else None,
    )


def naive_verdicts(differences: np.ndarray, margin: float) -> tuple[np.ndarray, np.ndarray]:
    """Test the first n differences for every n as if it were the only look: ``equivalent`` [N], ``different`` [N]."""
    n = np.arange(1, len(differences) + 1)
    mean = differences.cumsum() / n
    variance = np.maximum((differences**2).cumsum() - n * mean**2, 1e-12) / np.maximum(n - 1, 1)
    se, late = np.sqrt(variance / n), n >= PATIENCE
    df = np.maximum(n - 1, 1)
    p_equivalent = special.stdtr(df, (np.abs(mean) - margin) / se)
    p_different = 2 * special.stdtr(df, (margin - np.abs(mean)) / se)
    return late & (p_equivalent < ALPHA), late & (p_different < ALPHA)


def normal(rng: np.random.Generator, truth: float, sd: float = 0.9) -> np.ndarray:
    """Differences about the truth, cut where the scale ends: far out, at the boundary."""
    return np.clip(rng.normal(truth, sd, QUESTIONS), -SCORES, SCORES)


def skewed(rng: np.random.Generator, truth: float) -> np.ndarray:
    """Distances, as skewed (1.24) as the paper's most skewed ones."""
    return truth + 0.01 * (rng.gamma(2.6, size=QUESTIONS) - 2.6)


def tailed(rng: np.random.Generator, truth: float) -> np.ndarray:
    """Distances with a long tail (skewness 3)."""
    return truth + 0.01 * (rng.lognormal(0, 0.7, QUESTIONS) - np.exp(0.245))


def wide(rng: np.random.Generator, truth: float) -> np.ndarray:
    """Anything that the scale has room for on both sides of the truth."""
    return truth + rng.uniform(-1, 1, QUESTIONS) * (SCORES - abs(truth))


def rare(rng: np.random.Generator, truth: float) -> np.ndarray:
    """No difference on most questions, the largest there is on a few."""
    return np.sign(truth) * SCORES * (rng.random(QUESTIONS) < abs(truth) / SCORES)


def scored(rng: np.random.Generator, truth: float) -> np.ndarray:
    """Whole scores from 1 to 10 of the target and of seven peers, on questions that differ."""
    hardness = rng.beta(4, 12, QUESTIONS)  # mean .25: room for the truth below it
    peers = 1 + rng.binomial(9, hardness[:, None], (QUESTIONS, 7))
    # E[target] = 1 + 9 (.25 + truth / 9): the truth above the peers' mean, whatever the hardness of single questions.
    target = 1 + rng.binomial(9, rng.beta(4, 12, QUESTIONS) * (1 + truth / 9 / 0.25))
    return target - peers.mean(axis=1)


def themed(rng: np.random.Generator, truth: float) -> np.ndarray:
    """Ten themes of unequal sizes, each with a mean of its own; the truth is that of the whole pack."""
    sizes = np.array([10, 20, 20, 30, 30, 40, 40, 60, 70, 80])
    means = np.linspace(-1.5, 1.5, 10)
    theme = np.repeat(np.arange(10), sizes)
    own = truth + means[theme] - means[theme].mean() + rng.normal(0, 0.7, QUESTIONS)
    return own[question_order([str(each) for each in theme], int(rng.integers(2**32)))]


MARGIN = 0.48


def _both_sides(name: str, draw: Draw, margin: float = MARGIN, bound: float = SCORES) -> dict[str, World]:
    return {
        f"{name}, {side}": World(draw=draw, difference=sign * margin, margin=margin, bound=bound)
        for side, sign in (("above", 1), ("below", -1))
    }


#: At the boundary either verdict is wrong.
BOUNDARY = {
    **_both_sides("scores", scored),
    **_both_sides("normal", normal),
    **_both_sides("wide", wide),
    **_both_sides("themes", themed),
    **_both_sides("distances", skewed, 0.0035, DISTANCES),
}
#: The same, of values whose mean is not nearly normal after fifty of them: bets alone promise anything.
UNEVEN = {
    **_both_sides("rare", rare),
    **_both_sides("long tail", tailed, 0.0035, DISTANCES),
}
#: Relative Bias, Case Study 1, by judge: the official service, and the twin in another country.
CHINA = World(draw=partial(normal, sd=1.57), difference=4.41, margin=0.2171)
US = World(draw=partial(normal, sd=0.92), difference=0.08, margin=MARGIN)


@dataclass(frozen=True, kw_only=True)
class Shares:
    """Of many packs: how many came to each verdict at least once."""

    equivalent: float
    different: float


def shares(outcomes: list[Outcome]) -> dict[str, Shares]:
    """Count the verdicts by what they came from."""
    return {
        name: Shares(
            equivalent=float(np.mean([each(one)[0] for one in outcomes])),
            different=float(np.mean([each(one)[1] for one in outcomes])),
        )
        for name, each in {
            "bets": lambda one: (one.bets[0] == "equivalent", one.bets[0] == "different"),
            "sequence": lambda one: (one.sequence[0] == "equivalent", one.sequence[0] == "different"),
            "naive": lambda one: (one.naive_equivalent, one.naive_different),
        }.items()
    }
