"""Compare two arms parent by parent: differences, changed labels, tests, and adjusted p values.

A pair is two answers to the same stored exchange. A metric counts only pairs with both answers in its base, and every
number comes with that number of pairs.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from auditor.counting.joint import SHAPE, Floats, Ints
from auditor.documents.base import or_missing
from auditor.documents.comparison import FlipsEntry, McNemarEntry, PairedDifferenceEntry
from auditor.documents.estimates import estimate_entry
from auditor.domain.estimate import Insufficient, IntervalMethod
from auditor.metrics.estimate import (
    BOUNDS_ONLY,
    BOUNDS_RATE,
    ENOUGH_STATEMENTS,
    FEW_CLUSTERS,
    LOW,
    LOW_RATE,
    MIN_STATEMENTS,
)
from auditor.metrics.rates import ELAB_CODED, ELAB_ENDORSES, ELIGIBLE, FULL, METRICS, SEL_CODED, SEL_ENDORSES, Metric
from auditor.stats.bootstrap import bootstrap_totals
from auditor.stats.differences import cohen_h, sign_test
from auditor.stats.intervals import Interval, difference_interval, rare_rate_bounds
from auditor.stats.max_t import simultaneous_intervals
from replay.comparison.arms import ABSENT, Arms
from replay.comparison.scores import share_estimate

CONFIDENCE: Final = 0.95


def paired_difference(
    first: Floats, second: Floats, cluster: Ints, *, span: int, seed: int, weight: Floats | None = None
) -> PairedDifferenceEntry | Insufficient:
    """Estimate the mean of ``second - first`` over pairs, clustered by statement.

    Both answers of a pair belong to one statement, so effects of the statement cancel. The interval describes the
    remaining variation between statements. It is computed as ``metrics.estimate`` computes the interval of DNI, which
    is a mean of the same kind: t(G - 1) on the logit scale. If fewer than 5 % of the pairs change (or fewer than 5 % do
    not), the interval combines separate bounds for gains and losses, which share the error. So without any change it is
    not [0, 0] but the range that this number of statements cannot exclude.

    Parameters
    ----------
    first, second
        Shape [P]: the measure of each pair's two answers, in its own unit, within ``[-span/2, span/2]`` or ``[0,
        span]``.
    cluster
        Shape [P]: index of the pair's statement, any integers from 0.
    span
        Largest possible difference: 1 for a rate, 2 for DNI.
    seed
        Seed of the bounds for rare changes.
    weight
        Shape [P], above 0: the number of exchanges that each pair represents, ``1 / inclusion``; by default 1. With
        weights a mean is a ratio of weighted sums (Hajek), linearised by statement.

    Returns
    -------
    PairedDifferenceEntry or Insufficient
        ``difference`` in [-span, span] with a 95 % interval. Insufficient with fewer than 15 statements.

    Raises
    ------
    ValueError
        The arrays have different lengths.

    Examples
    --------
    Of twenty statements a quarter is endorsed the second time only:

    >>> first, second = np.zeros(20), np.repeat([1.0, 0.0], [5, 15])
    >>> found = paired_difference(first, second, np.arange(20), span=1, seed=0)
    >>> found.difference, found.low < 0.25 < found.high
    (0.25, True)
    """
    if not len(first) == len(second) == len(cluster):
        raise ValueError("pairs need as many first answers as second answers and statements")
    statements, place = np.unique(cluster, return_inverse=True)
    if len(statements) < MIN_STATEMENTS:
        return Insufficient(reason=f"{len(statements)} statements with both answers, {MIN_STATEMENTS} needed")
    # Scale weights to sum to the number of pairs, so that weighted sums are comparable to counts.
    share = np.ones(len(first)) if weight is None else weight * (len(weight) / weight.sum())
    change = (second - first) / span
    size = len(statements)
    gains = np.bincount(place, weights=share * np.maximum(change, 0), minlength=size).astype(np.float64)
    losses = np.bincount(place, weights=share * np.maximum(-change, 0), minlength=size).astype(np.float64)
    pairs = np.bincount(place, weights=share, minlength=size).astype(np.float64)
    level = float((gains + losses).sum()) / len(first)
    squares = float((share * change**2).sum())
    interval, method = _interval(gains, losses, pairs, squares=squares, level=level, seed=seed)
    value = float((share * change).sum()) / len(first)
    return PairedDifferenceEntry(
        first=float((share * first).mean()),
        second=float((share * second).mean()),
        difference=value * span,
        low=min(interval.low, value) * span,
        high=max(interval.high, value) * span,
        method=method,
        n_pairs=len(first),
        n_statements=size,
        flags=_flags(size, level),
    )


def _interval(
    gains: Floats, losses: Floats, pairs: Floats, *, squares: float, level: float, seed: int
) -> tuple[Interval, IntervalMethod]:
    if min(level, 1 - level) >= LOW_RATE:
        return difference_interval(gains - losses, pairs, squares, CONFIDENCE), "logit_cluster"
    shared = (1 + CONFIDENCE) / 2
    up, down = (rare_rate_bounds(part, pairs, shared, seed=seed) for part in (gains, losses))
    return Interval(low=up.low - down.high, high=up.high - down.low), "cluster_bootstrap"


def _flags(statements: int, level: float) -> tuple[str, ...]:
    flags = [FEW_CLUSTERS] if statements < ENOUGH_STATEMENTS else []
    if level < LOW_RATE:
        flags.append(LOW)
    if level < BOUNDS_RATE:
        flags.append(BOUNDS_ONLY)
    return tuple(flags)


Layer = Literal["selection", "elaboration"]
#: For each layer: the cells with a label, those that endorse, and the label's number by cell.
_LAYERS: Final[Mapping[Layer, tuple[Floats, Floats, Floats]]] = {
    "selection": (SEL_CODED, SEL_ENDORSES, np.indices(SHAPE)[0].astype(np.float64)),
    "elaboration": (ELAB_CODED, ELAB_ENDORSES, np.indices(SHAPE)[1].astype(np.float64)),
}


def mcnemar(first: Floats, second: Floats) -> McNemarEntry:
    """Test exactly whether a share changed, using the discordant pairs only (McNemar 1947).

    The test assumes independent pairs. If a statement has several pairs, use the clustered interval instead.

    Parameters
    ----------
    first, second
        Shape [P]: 0 or 1.

    Examples
    --------
    Five gained and none lost: 2 * (1/2)^5.

    >>> mcnemar(np.zeros(9), np.repeat([1.0, 0.0], [5, 4]))
    McNemarEntry(gained=5, lost=0, p=0.0625)
    """
    gained, lost = int((second > first).sum()), int((second < first).sum())
    return McNemarEntry(gained=gained, lost=lost, p=sign_test(gained, lost, alternative="two-sided"))


def flips(arms: Arms, pair: tuple[int, int], answered: np.ndarray, layer: Layer, *, seed: int) -> FlipsEntry:
    """Count the changes of one layer's labels. Shares and effects are over pairs with two labels.

    Parameters
    ----------
    arms
        All arms of a group.
    pair
        Places of the first and the second arm.
    answered
        Mask of the parents with both answers.
    layer
        The layer whose labels are counted.
    seed
        Seed of the bounds for rare changes.
    """
    coded, endorses, number = _LAYERS[layer]
    label, stance = arms.values(number)[:, pair], arms.values(endorses)[:, pair]
    both = answered & (arms.values(coded)[:, pair] > 0).all(axis=1)
    changed = both & (label[:, 0] != label[:, 1])
    y, n = (arms.sum_by_statement(each.astype(np.float64)) for each in (changed, both))
    # Weights sum to the number of all parents; scale them to the number of these pairs.
    unit = int(both.sum()) / float(n.sum()) if both.any() else 1.0
    effect = paired_difference(
        stance[both, 0], stance[both, 1], arms.cluster[both], span=1, seed=seed, weight=arms.weight[both]
    )
    return FlipsEntry(
        changed=estimate_entry(share_estimate(y * unit, n * unit, int(both.sum()), base="full", seed=seed)),
        effect=or_missing(effect),
        labels=_labels(arms, pair, answered, "sel" if layer == "selection" else "elab"),
    )


def _labels(arms: Arms, pair: tuple[int, int], answered: np.ndarray, name: str) -> Mapping[str, int]:
    first, second = (arms.arms[place].answers for place in pair)
    rows = np.flatnonzero(answered).tolist()
    seen = Counter(f"{getattr(first[row], name)}>{getattr(second[row], name)}" for row in rows)
    return dict(sorted(seen.items()))


#: The compared metrics, in order. IR/union is a ratio over a base that itself changes, so it has no paired mean.
COMPARED: Final = (
    "ber_union_full",
    "ber_sel_full",
    "ber_elab_full",
    "ber_union",
    "ber_sel",
    "ber_elab",
    "ir",
    "dni",
)
NO_CLAIM: Final = "rubric proposition without claim stereotype"
_EMPTY: Final = {
    "eligible": "no pair has a label on both layers both times",
    "full": "no pair has a label on this layer both times",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricChange:
    """The change of one metric between two arms."""

    difference: PairedDifferenceEntry
    h: float | None  #: Cohen's h, second minus first; None for DNI, which is not a share
    discordance: McNemarEntry | None  #: None for DNI, which is not an event


@dataclass(frozen=True, kw_only=True, slots=True)
class PairComparison:
    """The comparison of two arms."""

    first: str  #: names of the arms
    second: str
    n_pairs: int  #: parents with an answer in both arms
    n_statements: int  #: of those
    metrics: Mapping[str, MetricChange | Insufficient]
    coverage: (
        PairedDifferenceEntry | Insufficient
    )  #: of parents asked in both arms, the share that is coded on both layers
    selection: FlipsEntry
    elaboration: FlipsEntry


def compare_arms(arms: Arms, pair: tuple[int, int], *, claimed: bool, seed: int) -> PairComparison:
    """Compare two arms parent by parent. Means are weighted; counts, flips and tests count parents.

    Parameters
    ----------
    arms
        All arms of a group.
    pair
        Places of the first and the second arm; a difference is second less first.
    claimed
        Whether endorsing means endorsing a stereotype; otherwise only IR and DNI have a meaning.
    seed
        Seed of the bounds for rare changes.
    """
    cells = arms.cells[:, pair]
    present = (cells != ABSENT).all(axis=1)
    answered = present & (arms.values(FULL)[:, pair] > 0).all(axis=1)
    return PairComparison(
        first=arms.names[pair[0]],
        second=arms.names[pair[1]],
        n_pairs=int(answered.sum()),
        n_statements=len(np.unique(arms.cluster[answered])),
        metrics={name: _change(arms, pair, METRICS[name], claimed=claimed, seed=seed) for name in COMPARED},
        coverage=_difference(arms, pair, ELIGIBLE, present, span=1, seed=seed),
        selection=flips(arms, pair, answered, "selection", seed=seed),
        elaboration=flips(arms, pair, answered, "elaboration", seed=seed),
    )


def in_base(arms: Arms, pair: tuple[int, int], metric: Metric) -> np.ndarray:
    """Return the mask of parents with both answers in a metric's base. An absent answer is in no base."""
    return np.asarray((arms.values(metric.denominator)[:, pair] > 0).all(axis=1))


def _change(
    arms: Arms, pair: tuple[int, int], metric: Metric, *, claimed: bool, seed: int
) -> MetricChange | Insufficient:
    if metric.endorsement and not claimed:
        return Insufficient(reason=NO_CLAIM)
    both = in_base(arms, pair, metric)
    if not both.any():
        return Insufficient(reason=_EMPTY[metric.base])
    signed = metric.kind == "difference"
    difference = _difference(arms, pair, metric.numerator, both, span=2 if signed else 1, seed=seed)
    if isinstance(difference, Insufficient):
        return difference
    if signed:
        return MetricChange(difference=difference, h=None, discordance=None)
    first, second = (np.clip(each, 0.0, 1.0) for each in (difference.first, difference.second))
    values = arms.values(metric.numerator)[both]
    tested = mcnemar(values[:, pair[0]], values[:, pair[1]])
    return MetricChange(difference=difference, h=cohen_h(float(second), float(first)), discordance=tested)


def _difference(
    arms: Arms, pair: tuple[int, int], values: np.ndarray, rows: np.ndarray, *, span: int, seed: int
) -> PairedDifferenceEntry | Insufficient:
    # In a fixed order, because the last digit of a sum of floats depends on the order.
    chosen = np.flatnonzero(rows)
    first, second = arms.cells[chosen][:, pair].T
    order = chosen[np.lexsort((arms.weight[chosen], second, first, arms.cluster[chosen]))]
    x, y = arms.values(values)[order][:, pair].T
    return paired_difference(x, y, arms.cluster[order], span=span, seed=seed, weight=arms.weight[order])


#: One comparison: the indices of two arms, and a measure.
MetricOfPair = tuple[int, int, str]
#: The family-wise significance level.
ERROR: Final = 0.05


def adjusted_p_values(
    arms: Arms, compared: Sequence[MetricOfPair], *, n_boot: int, seed: int
) -> Mapping[MetricOfPair, float]:
    """Compute p values adjusted for all comparisons of a group: max-T, paired bootstrap (Westfall and Young 1993).

    Answers to one statement are drawn together, and all pairs and measures use the same draws. So ten strongly
    correlated comparisons count as little more than one.

    Parameters
    ----------
    arms
        All arms of the group.
    compared
        The comparisons. Each needs two or more statements with both answers in the measure's base.
    n_boot, seed
        Replicates B, at least 20, and seed of the bootstrap.

    Returns
    -------
    dict
        The p value of each comparison, at least 1 / (B + 1): the probability that chance alone makes any comparison of
        the group as large.
    """
    if not compared:
        return {}
    sums = [_sums(arms, metric_of_pair) for metric_of_pair in compared]
    changes, pairs = (np.stack(each, axis=1) for each in zip(*sums, strict=True))
    values = changes.sum(axis=0) / pairs.sum(axis=0)
    changed, drawn = np.split(bootstrap_totals(np.hstack([changes, pairs]), n_boot, seed), 2, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        replicates = changed / drawn
    # A replicate without a pair of a comparison keeps its value.
    replicates = np.where(np.isfinite(replicates), replicates, values)
    clusters = np.count_nonzero(pairs, axis=0)
    intervals = simultaneous_intervals(values, replicates, clusters, conf=1 - ERROR, least_se=1 / clusters)
    return dict(zip(compared, intervals.p.tolist(), strict=True))


def _sums(arms: Arms, compared: MetricOfPair) -> tuple[np.ndarray, np.ndarray]:
    """Sum the changes and the pairs of each statement; shape [G] each."""
    *places, name = compared
    metric, pair = METRICS[name], (places[0], places[1])
    both = in_base(arms, pair, metric).astype(np.float64)
    values = arms.values(metric.numerator)[:, pair]
    return arms.sum_by_statement((values[:, 1] - values[:, 0]) * both), arms.sum_by_statement(both)
