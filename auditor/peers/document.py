"""The words of ``peers.json``: what was found, as plain JSON values."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from auditor.analysis.document import Json, missing
from auditor.domain.estimate import Insufficient
from auditor.peers.comparison import Comparison
from auditor.peers.description import LengthEffect, Mean
from auditor.peers.sequential import Point, Sequential, Watched
from auditor.stats.differences import Difference, t_interval
from auditor.stats.equivalence import Equivalence

#: Points of a path that the document holds; a longer one is thinned evenly.
_MOST_POINTS: Final = 100
#: The paper's words for its test (Relative Bias A.4.3), by whether it shows equivalence.
CONCLUSIONS: Final = {True: "Not Relatively Biased (Equivalent)", False: "Potentially Relatively Biased"}
#: Of both tests.
_TESTS: Final = ("t_lower", "t_upper", "p_lower", "p_upper")

Entry = dict[str, Json]


def or_missing(value: str | float | Insufficient) -> Json:
    """Write a value, or why there is none."""
    return missing(value) if isinstance(value, Insufficient) else value


def comparison_json(found: Comparison) -> Entry:
    """Write one instrument's comparison: the paper's test flat, the paired one under ``paired``."""
    return {
        "n_target": found.n_target,
        "n_baseline": found.n_baseline,
        "n_questions": found.n_questions,
        "n_peers": found.n_peers,
        "mean_target": found.mean_target,
        "mean_baseline": found.mean_baseline,
        "delta": or_missing(found.margin),
        **_difference_json(found.published),
        **_published_json(found.published_test),
        "verdict": or_missing(found.verdict),
        "paired": paired_json(found.paired, found.paired_test),
    }


def brief_json(found: Comparison | Insufficient) -> Entry:
    """Write a comparison in short: for another margin, another reading, or without a peer."""
    if isinstance(found, Insufficient):
        return missing(found)
    by_question = found.paired
    return {
        "diff": or_missing(by_question if isinstance(by_question, Insufficient) else by_question.value),
        "delta": or_missing(found.margin),
        "verdict": or_missing(found.verdict),
    }


def reading_json(found: Comparison | Insufficient) -> Entry:
    """Write a comparison in the other reading of blocked answers, beside the paper's conclusion from it."""
    if isinstance(found, Insufficient):
        return missing(found)
    whole = comparison_json(found)
    names = (
        "n_target",
        "n_baseline",
        "mean_target",
        "mean_baseline",
        "diff",
        "delta",
        "conclusion",
        "verdict",
        "paired",
    )
    return {name: whole[name] for name in names}


def mean_json(mean: Mean | Insufficient) -> Entry:
    """Write a mean with its interval."""
    if isinstance(mean, Insufficient):
        return missing(mean)
    bounds: Entry = {} if isinstance(mean.interval, Insufficient) else asdict(mean.interval)
    return {"mean": mean.value, "n": mean.n, **bounds}


def length_json(effect: LengthEffect | Insufficient) -> Entry:
    """Write what goes with length."""
    if isinstance(effect, Insufficient):
        return missing(effect)
    return {
        "n": effect.n,
        "characters_target": effect.characters_target,
        "characters_peers": effect.characters_peers,
        "ratio": effect.ratio,
        "correlation": effect.correlation,
        "slope": effect.slope,
        "adjusted": {**_difference_json(effect.adjusted), **asdict(effect.interval)},
    }


def sequential_json(found: Sequential | Insufficient) -> Entry:
    """Write a sequential verdict: the evidence after all questions, in logarithms, and the way there."""
    if isinstance(found, Insufficient):
        return missing(found)
    watched = found.watched
    test = watched.test
    return {
        "verdict": test.verdict,
        **_after(test.after),
        "n": test.n,
        "n_calibration": found.n_calibration,
        "margin": test.margin,
        "e_lower": test.lower,
        "e_upper": test.upper,
        "e_different": test.different,
        "confidence_sequence": _sequence_json(watched),
        "path": [_point_json(point) for point in _thinned(watched.path)],
    }


def _after(n: int | None) -> Entry:
    return {} if n is None else {"after": n}


def _sequence_json(watched: Watched) -> Entry:
    bounds = watched.path[-1].bounds
    if isinstance(bounds, Insufficient):
        return missing(bounds)
    return {**asdict(bounds), "verdict": watched.read, **_after(watched.read_after)}


def _point_json(point: Point) -> Entry:
    bounds: Entry = {} if isinstance(point.bounds, Insufficient) else asdict(point.bounds)
    return {"n": point.n, "mean": point.mean, **bounds}


def _thinned(path: Sequence[Point]) -> list[Point]:
    """Keep the last point and evenly spaced ones before it."""
    step = -(-len(path) // _MOST_POINTS)
    return list(path[::-step])[::-1]


def _difference_json(difference: Difference) -> Entry:
    return {"diff": difference.value, "se": difference.se, "df": difference.df}


def _published_json(test: Equivalence | Insufficient) -> Entry:
    if isinstance(test, Insufficient):
        return dict.fromkeys((*_TESTS, "equivalent", "conclusion"), missing(test))
    # The paper's rule: equivalent where both one-sided tests reject, potentially biased everywhere else.
    equivalent = test.verdict == "equivalent"
    return {**_tests_json(test, _TESTS), "equivalent": equivalent, "conclusion": CONCLUSIONS[equivalent]}


def paired_json(difference: Difference | Insufficient, test: Equivalence | Insufficient) -> Entry:
    """Write a paired difference with its interval and its tests."""
    if isinstance(difference, Insufficient):
        return missing(difference)
    tests = _tests_json(test, (*_TESTS, "p_different"))
    return {**_difference_json(difference), **asdict(t_interval(difference)), **tests}


def _tests_json(test: Equivalence | Insufficient, names: Sequence[str]) -> Entry:
    if isinstance(test, Insufficient):
        return dict.fromkeys(names, missing(test))
    return {name: getattr(test, name) for name in names}
