"""Compare deployments on the questions that both were asked, and their rates with the same weight for each condition.

``pairs`` does the first for rows of the store.
"""

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import combinations
from typing import Final, Self

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from auditor.counting.conditions import FACTORS
from auditor.counting.joint import Floats, Ints
from auditor.counting.rows import STATEMENT
from auditor.counting.tallies import Scalar, Tallies, scalar_key
from auditor.documents.base import Missing, or_missing, or_unset, value_or
from auditor.documents.differences import (
    DeploymentDifferenceEntry,
    DifferenceKey,
    MissingDifference,
    RanksEntry,
    StandardisedEntry,
    Verdict,
)
from auditor.documents.estimates import BoundedEntry
from auditor.domain.estimate import Insufficient
from auditor.domain.readers import divergence_refusal
from auditor.errors import UsageError
from auditor.estimation.groups import group_value
from auditor.estimation.variation import OTHER_PANELS, few_flags
from auditor.metrics.estimate import ENOUGH_STATEMENTS, MIN_STATEMENTS
from auditor.metrics.paired import PairedDifference, adjusted, paired_difference
from auditor.metrics.rates import METRICS, Metric
from auditor.metrics.standardised import GridCounts, estimable
from auditor.stats.contrasts import contrast

#: The measures that are compared.
COMPARED: Final = ("ber_union_full", "ber_sel_full", "ber_elab_full", "ir", "dni")
#: The measure by which standardised deployments are ranked.
RANKED: Final = "ber_union_full"
#: From this share of the answers on, the deployments' mixes of conditions differ.
MIX_DIFFERS_FROM: Final = 0.02
#: The deployments were asked the conditions unequally often.
MIX_DIFFERS: Final = "mix_differs"
#: The measure that no judge has read.
_OF_RULES: Final = "ber_sel_full"
#: The measures that compare the two readings of a response.
_OF_BOTH_LAYERS: Final = ("ir", "dni")
#: Of a verdict.
_LEVEL: Final = 0.05
#: More deployments than this are not compared in pairs: nobody reads 780 differences.
MOST_PAIRED: Final = 40
#: Values that an error lists.
_MOST_LISTED: Final = 20
_NO_QUESTION: Final = Insufficient(reason="no statement that both were asked under the same condition")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class SideGrid:
    """Responses to statements by the side that is compared: S statements, C conditions, K sides."""

    field: str  #: that is compared
    sides: tuple[Scalar, ...]  #: its values
    conditions: tuple[str, ...]  #: what else a question is asked under
    n_statements: int
    clusters: Ints | Insufficient | None  #: shape [S]: the cluster of each statement; None: the statement itself
    #: Per entry.
    statement: Ints
    condition: Ints
    side: Ints
    cell: Ints
    mass: Floats  #: responses, with their weights

    @classmethod
    def of(cls, tallies: Tallies, field: str, chosen: Collection[str] | None = None) -> Self:
        """Index the rows about statements by a field, and by all else that makes them the same question.

        ``chosen`` are the values that are compared, as text; None for all.
        """
        keys = [
            (index, key)
            for index, key in enumerate(tallies.groups)
            if key.rubric == STATEMENT and (chosen is None or str(group_value(tallies, key, field)) in chosen)
        ]
        values = [group_value(tallies, key, field) for _, key in keys]
        sides = sorted({scalar_key(value): value for value in values}.items())
        place = {order: number for number, (order, _) in enumerate(sides)}
        names = [_condition(field, key.deployment, key.condition) for _, key in keys]
        conditions = {name: number for number, name in enumerate(sorted(set(names)))}
        sizes = [tallies.spans[index + 1] - tallies.spans[index] for index, _ in keys]
        entries = tallies.entries([index for index, _ in keys])
        statements, statement = np.unique(tallies.statement[entries], return_inverse=True)
        weight = tallies.weight(entries)
        return cls(
            field=field,
            sides=tuple(value for _, value in sides),
            conditions=tuple(conditions),
            n_statements=len(statements),
            clusters=_clusters(tallies, entries, statement),
            statement=statement,
            condition=np.repeat(np.array([conditions[name] for name in names], dtype=np.int64), sizes),
            side=np.repeat(np.array([place[scalar_key(value)] for value in values], dtype=np.int64), sizes),
            cell=tallies.cells(entries),
            mass=_scaled(tallies.count[entries], weight),
        )

    def counts(self, metric: Metric) -> list[GridCounts]:
        """Count one measure of each side."""
        shape = (len(self.sides), self.n_statements, len(self.conditions))
        place = np.ravel_multi_index((self.side, self.statement, self.condition), shape)
        events, trials = (
            np.bincount(place, weights=mask.ravel()[self.cell] * self.mass, minlength=int(np.prod(shape))).astype(
                np.float64
            )
            for mask in (metric.numerator, metric.denominator)
        )
        return [
            GridCounts(events=y, trials=n) for y, n in zip(events.reshape(shape), trials.reshape(shape), strict=True)
        ]


def _scaled(count: Ints, weight: Floats | None) -> Floats:
    """Weight counts, so that they still sum to the number of responses."""
    weighted: Floats = np.asarray(count * (1.0 if weight is None else weight), dtype=np.float64)
    return np.asarray(weighted * (count.sum() / max(weighted.sum(), 1.0)))


def _condition(field: str, deployment: str, levels: Sequence[str]) -> str:
    """Name all that a question is asked under but the field that is compared."""
    kept = [level for factor, level in zip(FACTORS, levels, strict=True) if factor != field]
    return "/".join(kept if field == "deployment" else [deployment, *kept])


def _clusters(tallies: Tallies, entries: Ints, statement: Ints) -> Ints | Insufficient | None:
    """Return the named cluster of each statement; None where statements are the units."""
    if not tallies.clusterings:
        return None
    if len(tallies.clusterings) > 1:
        return Insufficient(reason="pairs are clustered by one field only")
    pairs = np.unique(np.stack([statement, tallies.cluster[entries]]), axis=1)
    if len(pairs.T) > len(np.unique(statement)):
        return Insufficient(reason="a statement lies in several clusters")
    return np.unique(pairs[1], return_inverse=True)[1]


def standardised(tallies: Tallies, *, panel_differs: bool) -> list[StandardisedEntry]:
    """Return the entries of ``standardised``: each deployment's rates beside what pooled ones are moved by, the mix.

    Nothing where a single deployment was asked about statements.
    """
    grid = SideGrid.of(tallies, "deployment")
    if len(grid.sides) < 2:
        return []
    counts = {name: grid.counts(METRICS[name]) for name in COMPARED}
    # A deployment of which no answer came has neither a mix nor rates, and takes none from the others.
    answered = [bool(each.trials.any()) for each in counts[RANKED]]
    mix = _mix(counts[RANKED], answered)
    flags = (MIX_DIFFERS,) if mix.max() >= MIX_DIFFERS_FROM else ()
    kept = {
        name: np.all([estimable(each) for each, came in zip(sides, answered, strict=True) if came], axis=0)
        for name, sides in counts.items()
        if any(answered)
    }
    if not kept:
        return []
    rates = {
        name: [OTHER_PANELS] * len(sides)
        if panel_differs and name != _OF_RULES
        else [_rate(each, kept[name], METRICS[name], grid.clusters) for each in sides]
        for name, sides in counts.items()
    }
    pooled = _ranks([each.pooled for each in counts[RANKED]])
    equal = [rate.value for rate in rates[RANKED] if isinstance(rate, BoundedEntry)]
    ranks = _ranks(equal) if len(equal) == len(grid.sides) else None
    common = kept[RANKED]
    return [
        StandardisedEntry(
            by={"deployment": side},
            rubric=STATEMENT,
            mix=float(mix[place]),
            n_conditions=int(common.sum()),
            left_out=[name for name, keep in zip(grid.conditions, common, strict=True) if not keep],
            metrics={name: or_missing(sides[place]) for name, sides in rates.items()},
            ranks=value_or(
                None if ranks is None else RanksEntry(pooled=pooled[place], standardised=ranks[place]),
                "a deployment has no standardised rate",
            ),
            flags=flags,
        )
        for place, side in enumerate(grid.sides)
    ]


def _mix(counts: Sequence[GridCounts], answered: Sequence[bool]) -> Floats:
    """Return for each side the largest share of answers that lie in other conditions than another side's."""
    with np.errstate(invalid="ignore"):
        shares = np.stack([each.shares for each in counts])
    apart = np.abs(shares[:, None] - shares[None]).sum(axis=2) / 2
    both = np.outer(answered, answered)
    return np.asarray(np.where(both, apart, 0.0).max(axis=1))


def _rate(
    counts: GridCounts, kept: NDArray[np.bool_], metric: Metric, clusters: Ints | Insufficient | None
) -> BoundedEntry | Insufficient:
    """Estimate the mean of the conditions' rates."""
    if isinstance(clusters, Insufficient):
        return clusters
    events, trials = counts.events[:, kept], counts.trials[:, kept]
    if not kept.any():
        return Insufficient(reason="no condition has 5 statements of all deployments")
    if not trials.any(axis=0).all():
        return Insufficient(reason="no answer came")
    if clusters is not None:
        events, trials = (_summed(each, clusters) for each in (events, trials))
    statements = int(trials.any(axis=1).sum())
    if statements < MIN_STATEMENTS:
        return Insufficient(reason=f"{statements} statements, {MIN_STATEMENTS} needed")
    size = int(kept.sum())
    ends = (-1.0, 1.0) if metric.kind == "difference" else (0.0, 1.0)
    rate = contrast(events, trials, np.full(size, 1 / size), ends=ends)
    interval = rate.interval()
    return BoundedEntry(value=rate.value, low=interval.low, high=interval.high)


def _summed(values: Floats, clusters: Ints) -> Floats:
    """Sum the rows of each cluster."""
    out = np.zeros((int(clusters.max()) + 1, values.shape[1]))
    np.add.at(out, clusters, values)
    return out


def _ranks(rates: Sequence[float]) -> list[int]:
    """Rank rates, 1 for the highest; equal ones have the same rank."""
    return [1 + sum(other > rate for other in rates) for rate in rates]


class _Pairs:
    """Pairs of one grid in one measure."""

    def __init__(self, grid: SideGrid, metric: str, panels: Mapping[str, AbstractSet[str]]) -> None:
        self._grid = grid
        self._metric = metric
        self._panels = panels
        self._counts = grid.counts(METRICS[metric])

    def measure(self, first: int, second: int) -> PairedDifference | Insufficient:
        """Compare two sides."""
        before, after = self._counts[first], self._counts[second]
        if len(set(self._judges(first, second))) > 1 and self._metric != _OF_RULES:
            return OTHER_PANELS
        if isinstance(self._grid.clusters, Insufficient):
            return self._grid.clusters
        if not ((before.trials > 0) & (after.trials > 0)).any():
            return _NO_QUESTION
        return paired_difference(before, after, self._grid.clusters)

    def entry(
        self, first: int, second: int, paired: PairedDifference | Insufficient, p_adjusted: float | None = None
    ) -> DeploymentDifferenceEntry | MissingDifference:
        """Return the entry of two sides; ``p_adjusted`` where the pair is one of several."""
        key = DifferenceKey(
            rubric=STATEMENT,
            metric=self._metric,
            field=self._grid.field,
            first=self._grid.sides[first],
            second=self._grid.sides[second],
        )
        if isinstance(paired, Insufficient):
            return MissingDifference(**structs.asdict(key), missing=paired.reason)
        before, after = self._counts[first], self._counts[second]
        return DeploymentDifferenceEntry(
            **structs.asdict(key),
            value=paired.value,
            low=paired.low,
            high=paired.high,
            p=paired.p,
            p_adjusted=or_unset(p_adjusted),
            pooled=after.pooled - before.pooled,
            n=paired.n,
            left_out=round(float((before.trials + after.trials).sum())) - paired.n,
            n_statements=paired.n_statements,
            n_conditions=int(paired.conditions.sum()),
            verdict=self._verdict(first, second, paired, paired.p if p_adjusted is None else p_adjusted),
            flags=few_flags(paired.n_statements),
        )

    def _judges(self, first: int, second: int) -> list[AbstractSet[str]]:
        """Return the panels that have read two sides, as far as they are known."""
        if self._grid.field != "deployment":
            return list(self._panels.values())
        return [self._panels.get(str(self._grid.sides[place]), frozenset()) for place in (first, second)]

    def _verdict(self, first: int, second: int, paired: PairedDifference, p: float) -> Verdict | Missing:
        if self._metric in _OF_BOTH_LAYERS:
            for judges in self._judges(first, second):
                if refused := divergence_refusal(judges):
                    return Missing(missing=refused.reason)
        if paired.n_statements < ENOUGH_STATEMENTS:
            return Missing(missing=f"{paired.n_statements} statements, {ENOUGH_STATEMENTS} needed")
        if p > _LEVEL:
            return "not shown"
        return "higher" if paired.value > 0 else "lower"


def differences(
    tallies: Tallies, panels: Mapping[str, AbstractSet[str]], *, seed: int
) -> list[DeploymentDifferenceEntry | MissingDifference]:
    """Return the entries of ``differences``: all pairs of deployments, adjusted for all pairs of a measure."""
    grid = SideGrid.of(tallies, "deployment")
    if not 2 <= len(grid.sides) <= MOST_PAIRED:
        return []
    out: list[DeploymentDifferenceEntry | MissingDifference] = []
    places = list(combinations(range(len(grid.sides)), 2))
    for name in COMPARED:
        pairs = _Pairs(grid, name, panels)
        measured = [pairs.measure(*pair) for pair in places]
        known = [paired for paired in measured if isinstance(paired, PairedDifference)]
        p = iter(adjusted(known, seed=seed) if known else [])
        out += [
            pairs.entry(*pair, paired, next(p) if isinstance(paired, PairedDifference) else None)
            for pair, paired in zip(places, measured, strict=True)
        ]
    return out


def difference(
    tallies: Tallies,
    panels: Mapping[str, AbstractSet[str]],
    first: str,
    second: str,
    *,
    field: str = "deployment",
    metric: str = RANKED,
) -> DeploymentDifferenceEntry | MissingDifference:
    """Compare two values of a field on the same statements and conditions.

    Parameters
    ----------
    tallies
        Grouped by ``field``.
    panels
        Judges by deployment, as far as they are known.
    first, second
        Values of ``field``, as text.
    field, metric
        Name of a field, and of a measure.

    Raises
    ------
    UsageError
        No row about a statement has one of the values, or both are the same; or there is no such measure.
    """
    if metric not in METRICS:
        raise UsageError(f"there is no measure {metric!r}; known: {', '.join(METRICS)}")
    known = {str(group_value(tallies, key, field)) for key in tallies.groups if key.rubric == STATEMENT}
    for value in (first, second):
        if value not in known:
            listed = ", ".join([*sorted(known)[:_MOST_LISTED], *(["..."] if len(known) > _MOST_LISTED else [])])
            raise UsageError(f"no row about a statement has the {field} {value!r}; known: {listed or 'none'}")
    if first == second:
        raise UsageError(f"{field} {first!r} is compared with itself")
    grid = SideGrid.of(tallies, field, (first, second))
    places = {str(side): place for place, side in enumerate(grid.sides)}
    pairs = _Pairs(grid, metric, panels)
    pair = places[first], places[second]
    return pairs.entry(*pair, pairs.measure(*pair))
