"""Compare the arms of a route's trial: rates, differences to the control and tokens, with intervals.

Units are compared as they were assigned, whether or not their requests could get the instruction. The clusters of the
audit are the units. An arm that was stopped is compared with the control until then.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from msgspec import UNSET
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.counting.joint import Floats, JointTable
from auditor.counting.stored import Row, tallies_of
from auditor.documents.base import Missing, or_missing
from auditor.documents.estimates import EstimateEntry, FlaggedEntry, estimate_entry
from auditor.domain.estimate import Insufficient
from auditor.estimation.groups import Estimator, Group
from auditor.metrics.estimate import ENOUGH_STATEMENTS, FEW_CLUSTERS, MIN_STATEMENTS
from auditor.metrics.rates import METRICS, Metric
from auditor.stats.contrasts import contrast
from auditor.stats.intervals import t_quantile
from auditor.store.estimates import EstimateRow
from auditor.store.trials import ArmStop, TrialSpan, count_trial, read_stops
from auditor.trials.assignment import CONTROL, STOPPED, UNASSIGNED
from auditor.trials.document import TOKENS, ArmStopEntry, TrialArmEntry, TrialEntry

_NOT_CODED: Final = Insufficient(reason="no coded answer")


@dataclass(frozen=True, kw_only=True, slots=True)
class TrialCounts:
    """The counts of one trial by one coder, as ``auditor.store.trials.count_trial`` reads them."""

    trial: str
    route: str
    coder: str
    rubric: str
    rows: Sequence[Row]
    stops: Sequence[ArmStop] = ()
    until_stop: Mapping[str, Sequence[Row]] = field(default_factory=dict)  #: the rows until then, by stopped arm


async def read_counts(
    connection: AsyncConnection, coder: str, rubric: str, trial: str, route: str, span: TrialSpan | None = None
) -> TrialCounts:
    """Read the counts of a trial; of an arm that was stopped also those up to then."""
    span = span or TrialSpan()
    stops = [stop for stop in await read_stops(connection, [trial]) if span.as_of is None or stop.at <= span.as_of]
    until_stop = {
        stop.arm: await count_trial(connection, coder, trial, replace(span, until=min(stop.at, span.until or stop.at)))
        for stop in stops
        if not stop.dry_run
    }
    return TrialCounts(
        trial=trial, route=route, coder=coder, rubric=rubric, rows=await count_trial(connection, coder, trial, span),
        stops=stops, until_stop=until_stop,
    )  # fmt: skip


def compare_arms(counts: TrialCounts, *, seed: int) -> TrialEntry:
    """Compare the arms of a trial with the control; ``seed`` is that of the bounds of rare rates."""
    treated = {row["arm"] for row in counts.rows} - {CONTROL, UNASSIGNED}
    names = [CONTROL, *sorted(treated | {stop.arm for stop in counts.stops})]
    whole = _Sample(counts.rows, seed)
    arms = []
    for name in names:
        sample = _Sample(counts.until_stop[name], seed) if name in counts.until_stop else whole
        stops = [_stop_entry(stop) for stop in counts.stops if stop.arm == name]
        untouched = _total((row["untouched"], row["n"]) for row in counts.rows if row["arm"] == name)
        untouched.pop(None, None)
        arms.append(sample.entry(name, untouched, stops))
    return TrialEntry(
        trial=counts.trial,
        route=counts.route,
        coder=counts.coder,
        rubric=counts.rubric,
        n_unassigned=sum(row["n"] for row in counts.rows if row["arm"] == UNASSIGNED),
        arms=arms,
    )


def _total(pairs: Iterable[tuple[Any, int]]) -> Counter[Any]:
    total: Counter[Any] = Counter()
    for key, n in pairs:
        total[key] += n
    return total


def _stop_entry(stop: ArmStop) -> ArmStopEntry:
    return ArmStopEntry(at=stop.at.isoformat(), by=stop.by, because=stop.because, dry_run=stop.dry_run)


class _Sample:
    """Rows in which each arm may be compared with the control."""

    def __init__(self, rows: Iterable[Row], seed: int) -> None:
        self._rows = [row for row in rows if row["arm"] != UNASSIGNED and row["untouched"] != STOPPED]
        self._tallies = tallies_of(self._rows, extra=("arm",))
        groups: list[Group] = []
        if self._tallies.groups:
            groups = Estimator(self._tallies, seed=seed, panel_differs=False).groups(("arm",))
        self._groups = {str(group.by["arm"]): group for group in groups}
        self._units = {cluster: place for place, cluster in enumerate(sorted({row["cluster"] for row in self._rows}))}

    def entry(self, arm: str, untouched: Mapping[str, int], stops: Sequence[ArmStopEntry]) -> TrialArmEntry:
        """Return the entry of an arm."""
        arm_rows = [row for row in self._rows if row["arm"] == arm]
        group = self._groups.get(arm)
        metrics = dict.fromkeys(METRICS, _NOT_CODED) if group is None else group.metrics
        is_control = arm == CONTROL
        return TrialArmEntry(
            arm=arm,
            n=sum(row["n"] for row in arm_rows),
            n_units=len({row["cluster"] for row in arm_rows}),
            untouched=untouched,
            coverage=or_missing(_NOT_CODED if group is None else group.coverage),
            metrics={name: estimate_entry(estimate) for name, estimate in metrics.items()},
            differences={} if is_control else {name: self._difference(m, arm) for name, m in METRICS.items()},
            tokens={kind: _mean([self._tokens(kind, arm)]) for kind in TOKENS},
            token_differences={}
            if is_control
            else {kind: _mean([self._tokens(kind, arm), self._tokens(kind, CONTROL)]) for kind in TOKENS},
            stops=stops or UNSET,
        )

    def _difference(self, metric: Metric, arm: str) -> FlaggedEntry | Missing:
        """Return the arm's value of a measure less the control's."""
        for name in (arm, CONTROL):
            group = self._groups.get(name)
            estimate = _NOT_CODED if group is None else group.metrics[metric.name]
            if isinstance(estimate, Insufficient):
                return Missing(missing=f"{name}: {estimate.reason}")
        sides = [self._table(name) for name in (arm, CONTROL)]
        y, n = (
            np.stack([side.by_cluster(mask) for side in sides], axis=1)
            for mask in (metric.numerator, metric.denominator)
        )
        ends = (-1.0, 1.0) if metric.kind == "difference" else (0.0, 1.0)
        difference = contrast(y, n, np.array([1.0, -1.0]), ends=ends)
        # Most of the variance is that of the side with fewer units, so it has the degrees of freedom.
        fewest = int(np.count_nonzero(n, axis=0).min())
        interval = replace(difference, n_clusters=fewest).interval()
        return FlaggedEntry(value=difference.value, low=interval.low, high=interval.high, flags=_flags(fewest))

    def _table(self, arm: str) -> JointTable:
        """Return the joint table of an arm over the units of all arms."""
        tallies = self._tallies
        place = tallies.extra.index("arm")
        profiles = [index for index, key in enumerate(tallies.groups) if key.extra[place] == arm]
        entries = tallies.entries(profiles)
        return JointTable(
            cluster=tallies.cluster[entries],
            cell=tallies.cells(entries),
            count=tallies.count[entries],
            n_clusters=tallies.n_clusters,
            weight=1 / tallies.inclusion[entries],
        )

    def _tokens(self, kind: str, arm: str) -> tuple[Floats, Floats]:
        """Return the sums of tokens and the numbers of requests by unit, both weighted."""
        y, n = np.zeros(len(self._units)), np.zeros(len(self._units))
        for row in self._rows:
            if row["arm"] == arm:
                unit = self._units[row["cluster"]]
                y[unit] += row[kind] / row["inclusion"]
                n[unit] += row[f"n_{kind}"] / row["inclusion"]
        return y, n


def _mean(sides: Sequence[tuple[Floats, Floats]]) -> FlaggedEntry | Missing:
    """Return the mean of the first side, less that of the second if there is one; the variance is that over units."""
    fewest = min(int(np.count_nonzero(n)) for _, n in sides)
    if fewest < MIN_STATEMENTS:
        return Missing(missing=f"{fewest} users or conversations with known tokens, {MIN_STATEMENTS} needed")
    means = [float(y.sum() / n.sum()) for y, n in sides]
    signs = (1, -1)
    errors = sum(sign * (y - mean * n) / n.sum() for sign, mean, (y, n) in zip(signs, means, sides, strict=False))
    value = sum(sign * mean for sign, mean in zip(signs, means, strict=False))
    half = t_quantile(0.95, fewest - 1) * float(np.sqrt(fewest / (fewest - 1) * (np.asarray(errors) ** 2).sum()))
    return FlaggedEntry(value=value, low=value - half, high=value + half, flags=_flags(fewest))


def _flags(units: int) -> list[str]:
    return [FEW_CLUSTERS] if units < ENOUGH_STATEMENTS else []


def trial_rows(entry: TrialEntry, template: EstimateRow) -> Iterator[EstimateRow]:
    """Yield the rows of a trial in a snapshot; ``template`` has what they have in common."""
    for arm in entry.arms:
        base_row = replace(template, detail={"route": entry.route, "arm": arm.arm, "trial": entry.trial}, n=arm.n)
        base_row = replace(base_row, n_statements=arm.n_units)
        for series, entries in (("arm_rate", arm.metrics), ("arm_difference", arm.differences)):
            for name, each in entries.items():
                metric = METRICS[name]
                row = replace(base_row, metric=series, layer=metric.layer, base=metric.base)
                yield _known(replace(row, detail={**base_row.detail, "measure": name}), each)
        for series, counted in (("arm_tokens", arm.tokens), ("arm_tokens_difference", arm.token_differences)):
            for kind, value in counted.items():
                yield _known(replace(base_row, metric=series, detail={**base_row.detail, "kind": kind}), value)
        reasons = {"": arm.n, **arm.untouched}
        for reason, n in reasons.items():
            yield replace(
                base_row, metric="arm_requests", detail={**base_row.detail, "untouched": reason}, value=float(n), n=n
            )


def _known(row: EstimateRow, entry: FlaggedEntry | EstimateEntry | Missing) -> EstimateRow:
    if isinstance(entry, Missing):
        return replace(row, missing=entry.missing)
    known = replace(row, value=entry.value, low=entry.low, high=entry.high, flags=tuple(entry.flags))
    if isinstance(entry, EstimateEntry):
        return replace(known, n=entry.n, n_statements=entry.n_statements, method=entry.method)
    return replace(known, method="cluster_linearised")
