"""Compare one target with its peers: the paper's Welch test, and the paired test that gives the verdict.

Relative Bias Eq. 1 to 4, section 3.5 and A.4.3. Values are questions by deployments, the target first; NaN is no value.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import scipy

from auditor.domain.estimate import Insufficient
from auditor.errors import UsageError
from auditor.peers.score_table import Blocked, Mask
from auditor.stats.differences import Difference, Equivalence, Verdict, mean_present, paired, tost, welch
from auditor.stats.intervals import Floats

#: Under this many peers their spread is too uncertain to be a margin for a verdict.
ENOUGH_PEERS: Final = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class MarginRule:
    """Margin and level of a comparison."""

    k: float = 2.81  #: the margin in standard deviations of the peers' means
    alpha: float = 0.05  #: level of each one-sided test
    margin: float | None = None  #: declared margin in units of the scores; None takes it from the peers
    robust: bool = False  #: whether a margin from the peers is of their median absolute deviation


@dataclass(frozen=True, kw_only=True, slots=True)
class PeerComparison:
    """The comparison of one target with its peers by one instrument."""

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
    verdict: Verdict | Insufficient  #: verdict of the paired test, if there are enough peers


def compare(values: Floats, rule: MarginRule, *, enough_peers: int = ENOUGH_PEERS) -> PeerComparison | Insufficient:
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
    >>> compare(scores, MarginRule()).verdict
    'different'
    >>> compare(scores[:, :5], MarginRule()).verdict
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
    return PeerComparison(
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


def margin_of(peers: Floats, rule: MarginRule) -> float | Insufficient:
    """Compute the margin from the peers' values, shape [N, P], by the rule."""
    return (robust_margin if rule.robust else spread_margin)(peers, rule.k)


def spread_margin(peers: Floats, k: float) -> float | Insufficient:
    """Compute the margin as ``k`` standard deviations (ddof 1) of their means (Eq. 5).

    >>> spread_margin(np.array([[1.0, 2.0, 3.0]]), 2.0)
    2.0
    """
    return _positive(k * float(mean_present(peers, 0).std(ddof=1)), peers)


def robust_margin(peers: Floats, k: float) -> float | Insufficient:
    """Compute the margin from the median absolute deviation of the peers' means; one extreme peer cannot widen it.

    >>> margin = robust_margin(np.array([[1.0, 2.0, 3.0, 4.0, 90.0]]), 1.0)
    >>> round(margin, 4)
    1.4826
    """
    deviation = float(scipy.stats.median_abs_deviation(mean_present(peers, 0), scale="normal"))
    return _positive(k * deviation, peers)


def too_few(minimum: int) -> Insufficient:
    """Return the reason why so few peers give no margin."""
    return Insufficient(reason=f"with fewer than {minimum} peers a verdict needs a declared margin")


def _positive(margin: float, peers: Floats) -> float | Insufficient:
    # Means of equal values may differ in the last bit, so the comparison has a tolerance.
    rounding = 1e-12 * float(np.abs(_present(peers)).max())
    return margin if margin > rounding else Insufficient(reason="the peers' means do not differ")


def equivalence_of(
    difference: Difference | Insufficient, margin: float | Insufficient, alpha: float
) -> Equivalence | Insufficient:
    """Test a difference against a margin; needs both, and values that vary."""
    if isinstance(difference, Insufficient):
        return difference
    if isinstance(margin, Insufficient):
        return margin
    if difference.se == 0:
        return Insufficient(reason="the values do not vary")
    return tost(difference.value, difference.se, difference.df, margin, alpha)


def _verdict(test: Equivalence | Insufficient, minimum: int | None) -> Verdict | Insufficient:
    if minimum is not None:
        return too_few(minimum)
    return test if isinstance(test, Insufficient) else test.verdict


def _present(values: Floats) -> Floats:
    return values[~np.isnan(values)]


#: The largest margin accepted; no statistic overflows.
LARGEST: Final = 1000.0


@dataclass(frozen=True, kw_only=True, slots=True)
class PeerOptions:
    """The options of a comparison.

    Raises
    ------
    UsageError
        For no target, a name given twice, or a number out of its range.
    """

    targets: tuple[str, ...]
    peers: tuple[str, ...] | None = None  #: all deployments compared; None is everybody in the table
    blocked: Blocked = "answer"
    k: float = 2.81  #: margin in standard deviations of the peers' means
    alpha: float = 0.05  #: level of each one-sided test
    margin: float | None = None  #: declared for every instrument, in its units
    margins: Mapping[str, float] = field(default_factory=dict)  #: declared for one instrument, by its name
    hosts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  #: deployments of the same weights, by these

    def __post_init__(self) -> None:
        if not self.targets:
            raise UsageError("--target: name at least one deployment")
        named = [("--hosts", names) for names in self.hosts.values()]
        for option, names in (("--target", self.targets), ("--peers", self.peers or ()), *named):
            if len(set(names)) < len(names):
                raise UsageError(f"{option}: a deployment is named twice")
        for weights, names in self.hosts.items():
            if len(names) < 2:
                raise UsageError(f"--hosts: {weights!r} takes two deployments or more")
        declared = [*self.margins.values(), *([] if self.margin is None else [self.margin])]
        for option, number in (("--k", self.k), *(("--margin", margin) for margin in declared)):
            if not 0 < number <= LARGEST:
                raise UsageError(f"{option} must be greater than 0 and at most {LARGEST:g}, not {number:g}")
        if not 0 < self.alpha < 0.5:
            raise UsageError(f"--alpha must be between 0 and 0.5, not {self.alpha:g}")

    @property
    def other_blocked(self) -> Blocked:
        """The other reading of blocked answers."""
        return "drop" if self.blocked == "answer" else "answer"

    def rule(self, instrument: str) -> MarginRule:
        """Return the rule of one instrument."""
        return MarginRule(k=self.k, alpha=self.alpha, margin=self.margins.get(instrument, self.margin))


def peer_deviation(distances: Floats, answered: Mask, members: Mask) -> Floats:
    """Average each answer's cosine distances to the members' answers to the same question (Eq. 1).

    Departs from the equation if an answer is missing: the mean is over the members that answered.

    Parameters
    ----------
    distances
        Shape [N, K, K], 0 on the diagonal.
    answered
        Shape [N, K]: True where an answer counts.
    members
        Shape [K]: the deployments that answers are compared with. A member is not compared with itself; a deployment
        that is no member is compared with all of them.

    Returns
    -------
    array
        Shape [N, K]: delta(q_i, M_j), in [0, 2]; NaN where there is no answer, or none to compare it with.

    Examples
    --------
    >>> d = np.array([[[0.0, 0.2, 0.4], [0.2, 0.0, 0.6], [0.4, 0.6, 0.0]]])
    >>> peer_deviation(d, np.array([[True, True, True]]), np.array([True, True, True])).round(3).tolist()
    [[0.3, 0.4, 0.5]]
    """
    counted = (answered & members).astype(np.float64)
    sums = (distances @ counted[:, :, None])[:, :, 0]
    others = counted.sum(axis=1, keepdims=True) - counted
    deviations: Floats = np.full(sums.shape, np.nan)
    np.divide(sums, others, out=deviations, where=answered & (others > 0))
    return deviations


def judge_deviation(scores: Floats) -> Floats:
    """Compare a target's scores with its peers' on the same questions (Eq. 3).

    Parameters
    ----------
    scores
        Shape [N, 1 + P], the target first.

    Returns
    -------
    array
        Shape [n]: ``s_i - mu_i`` of the questions that the target and a peer have; D_LLM is the mean of its absolute
        values (Eq. 4).

    Examples
    --------
    >>> judge_deviation(np.array([[7.0, 2.0, 4.0], [np.nan, 2.0, 2.0], [5.0, 6.0, np.nan]])).tolist()
    [4.0, -1.0]
    """
    differences = scores[:, 0] - mean_present(scores[:, 1:], 1)
    return differences[~np.isnan(differences)]
