"""The words of ``peers.json``: what was found, as plain JSON values."""

from dataclasses import asdict
from typing import Final

from auditor.analysis.document import Json, missing
from auditor.domain.estimate import Insufficient
from auditor.peers.comparison import Comparison
from auditor.peers.description import LengthEffect, Mean
from auditor.stats.differences import Difference, t_interval
from auditor.stats.equivalence import Equivalence

#: The paper's words for its test (Relative Bias A.4.3), by whether it shows equivalence.
CONCLUSIONS: Final = {True: "Not Relatively Biased (Equivalent)", False: "Potentially Relatively Biased"}

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
        "paired": _paired_json(found),
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


def _difference_json(difference: Difference) -> Entry:
    return {"diff": difference.value, "se": difference.se, "df": difference.df}


def _published_json(test: Equivalence | Insufficient) -> Entry:
    if isinstance(test, Insufficient):
        return {"equivalent": missing(test), "conclusion": missing(test)}
    # The paper's rule: equivalent where both one-sided tests reject, potentially biased everywhere else.
    equivalent = test.verdict == "equivalent"
    return {**_tests_json(test), "equivalent": equivalent, "conclusion": CONCLUSIONS[equivalent]}


def _paired_json(found: Comparison) -> Entry:
    if isinstance(found.paired, Insufficient):
        return missing(found.paired)
    out = {**_difference_json(found.paired), **asdict(t_interval(found.paired))}
    test = found.paired_test
    if isinstance(test, Insufficient):
        return out | missing(test)
    return {**out, **_tests_json(test), "p_different": test.p_different}


def _tests_json(test: Equivalence) -> Entry:
    return {"t_lower": test.t_lower, "t_upper": test.t_upper, "p_lower": test.p_lower, "p_upper": test.p_upper}
