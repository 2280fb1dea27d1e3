"""One target against its peers: the paper's Welch test, and the paired one that a verdict is read from.

Relative Bias section 3.5 and A.4.3. Values are questions by deployments, the target first; NaN is no value.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from auditor.domain.estimate import Insufficient
from auditor.peers.deviation import judge_deviation, mean_present
from auditor.stats.differences import Difference, paired, welch
from auditor.stats.equivalence import Equivalence, Verdict, tost
from auditor.stats.intervals import Floats

#: Under this many peers their spread is too uncertain to be a margin for a verdict.
ENOUGH_PEERS: Final = 5
#: The standard deviation of a normal sample in units of its median absolute deviation.
_MAD_TO_SD: Final = 1.482602218505602


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """How a comparison is decided."""

    k: float = 2.81  #: the margin in standard deviations of the peers' means
    alpha: float = 0.05  #: level of each one-sided test
    margin: float | None = None  #: declared, in units of the scores; None takes it from the peers
    robust: bool = False  #: where it is taken from the peers: by their median absolute deviation


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """What is found of one target in one instrument."""

    n_target: int  #: the target's values
    n_baseline: int  #: its peers' values
    n_questions: int  #: questions that the target and a peer have a value for
    n_peers: int  #: peers with a value
    mean_target: float
    mean_baseline: float  #: over all peers' values together
    margin: float | Insufficient  #: delta: declared, or k times the spread of the peers' means
    published: Difference  #: pooled, as the paper has it
    published_test: Equivalence | Insufficient
    paired: Difference | Insufficient  #: question by question
    paired_test: Equivalence | Insufficient
    verdict: Verdict | Insufficient  #: of the paired test, where there are peers enough for one


def compare(values: Floats, rule: Rule, *, enough_peers: int = ENOUGH_PEERS) -> Comparison | Insufficient:
    """Compare the first deployment with the others.

    Parameters
    ----------
    values
        Shape [N, 1 + P]: scores or deviations, the target first.
    rule
        Margin and level.
    enough_peers
        Peers that a verdict needs where no margin is declared.

    Returns
    -------
    Comparison or Insufficient
        Nothing can be compared with fewer than 2 peers, or fewer than 2 values of the target.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.normal([5, 2.1, 2.0, 2.2, 1.9, 2.0], 0.5, size=(50, 6))
    >>> compare(scores, Rule()).verdict
    'different'
    >>> compare(scores[:, :5], Rule()).verdict
    Insufficient(reason='with fewer than 5 peers a verdict needs a declared margin')
    """
    target = _present(values[:, 0])
    peers = values[:, 1:][:, (~np.isnan(values[:, 1:])).any(axis=0)]
    if peers.shape[1] < 2:
        return Insufficient(reason="fewer than 2 peers have values")
    if len(target) < 2:
        return Insufficient(reason="the target has values on fewer than 2 questions")
    baseline = _present(peers)
    margin = rule.margin if rule.margin is not None else margin_of(peers, rule)
    published = welch(target, baseline)
    differences = judge_deviation(values)
    by_question = (
        paired(differences) if len(differences) > 1 else Insufficient(reason="fewer than 2 questions in common")
    )
    paired_test = equivalence_of(by_question, margin, rule.alpha)
    few = rule.margin is None and peers.shape[1] < enough_peers
    return Comparison(
        n_target=len(target),
        n_baseline=len(baseline),
        n_questions=len(differences),
        n_peers=peers.shape[1],
        mean_target=float(target.mean()),
        mean_baseline=float(baseline.mean()),
        margin=margin,
        published=published,
        published_test=equivalence_of(published, margin, rule.alpha),
        paired=by_question,
        paired_test=paired_test,
        verdict=_verdict(paired_test, enough_peers if few else None),
    )


def margin_of(peers: Floats, rule: Rule) -> float | Insufficient:
    """Take the margin from the peers, [N, P], as the rule says."""
    return (robust_margin if rule.robust else spread_margin)(peers, rule.k)


def spread_margin(peers: Floats, k: float) -> float | Insufficient:
    """Take the margin from the peers: ``k`` standard deviations (ddof 1) of their means (Eq. 5).

    >>> spread_margin(np.array([[1.0, 2.0, 3.0]]), 2.0)
    2.0
    """
    return _positive(k * float(mean_present(peers, 0).std(ddof=1)), peers)


def robust_margin(peers: Floats, k: float) -> float | Insufficient:
    """Take the margin from the median absolute deviation of the peers' means, which one extreme peer cannot widen.

    >>> margin = robust_margin(np.array([[1.0, 2.0, 3.0, 4.0, 90.0]]), 1.0)
    >>> round(margin, 4)
    1.4826
    """
    means = mean_present(peers, 0)
    return _positive(k * _MAD_TO_SD * float(np.median(np.abs(means - np.median(means)))), peers)


def too_few(needed: int) -> Insufficient:
    """Say why peers make no margin for a verdict."""
    return Insufficient(reason=f"with fewer than {needed} peers a verdict needs a declared margin")


def _positive(margin: float, peers: Floats) -> float | Insufficient:
    # Means of equal values may differ in the last bit.
    rounding = 1e-12 * float(np.abs(_present(peers)).max())
    return margin if margin > rounding else Insufficient(reason="the peers' means do not differ")


def equivalence_of(
    difference: Difference | Insufficient, margin: float | Insufficient, alpha: float
) -> Equivalence | Insufficient:
    """Test a difference against a margin, where both are there and the values vary."""
    if isinstance(difference, Insufficient):
        return difference
    if isinstance(margin, Insufficient):
        return margin
    if difference.se == 0:
        return Insufficient(reason="the values do not vary")
    return tost(difference.value, difference.se, difference.df, margin, alpha)


def _verdict(test: Equivalence | Insufficient, needed: int | None) -> Verdict | Insufficient:
    if needed is not None:
        return too_few(needed)
    return test if isinstance(test, Insufficient) else test.verdict


def _present(values: Floats) -> Floats:
    return values[~np.isnan(values)]
