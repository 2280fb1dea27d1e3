"""Build metric families from stored estimates: names, labels and help texts of the series; unknown values are absent.

A measure of ``METRICS`` brings its own series. A rate of which only the bounds are reliable has series of its bounds
and none of its value. If there were more series than the budget, cells are left out first, then levels of single
factors, the baseline, and exposures; series of drift, peers and judges come last. One series counts what is left out.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector, CollectorRegistry
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine
from typing_extensions import override

from auditor.documents.base import Missing
from auditor.errors import StoreUnavailable
from auditor.estimation.snapshots import AT_BASELINE, CATEGORY
from auditor.export.series import Series, SeriesFamily, row_families
from auditor.metrics.estimate import BOUNDS_ONLY
from auditor.store.actions import StoredAction, read_actions
from auditor.store.engine import transaction
from auditor.store.estimates import EstimateRow, newest_as_of, read_estimates
from auditor.store.exposures import ExposureRow, latest_exposures, newest_exposure
from auditor.store.findings import Finding, read_silenced
from auditor.store.queue import CODE, COUNT, ESTIMATE, FIND, queue_sizes

#: Series of estimates. The gateway's and those that rules record, for 200 deployments that applications and probes ask,
#: stay within what is left of the product's 50,000.
BUDGET: Final = 33_000

#: Labels whose values stand in a row's detail.
_IN_DETAIL: Final = frozenset(
    {
        *("over", "factor", "reason", "judge", "other", "domain", "method", "verdict", "detector", "level"),
        *("route", "arm", "kind", "untouched"),
    }
)

#: Measures whose exposure is exported; the document of the replay has the others.
_EXPOSED_METRICS: Final = ("ber_union_full", "ber_sel_full", "ber_elab_full", "ir", "dni")
_EXPOSURE_LABELS: Final = ("deployment", "origin", "route", "task", "rubric", "metric", "replay")

_EXPOSURE_ENDS: Final = SeriesFamily(
    name="biasmeter_exposure",
    help="Lowest and highest score that the same questions were made to give in the latest replay, and by which side.",
    labels=(*_EXPOSURE_LABELS, "bound", "side"),
)
_EXPOSURE_RANGE: Final = SeriesFamily(
    name="biasmeter_exposure_range",
    help="Highest less lowest score over the sides of the latest replay; its interval minds the selection.",
    labels=_EXPOSURE_LABELS,
)

#: Replays are shown before conditions are.
_EXPOSED: Final = 2


def estimate_families(
    rows: Iterable[EstimateRow], exposures: Sequence[ExposureRow] = (), budget: int = BUDGET
) -> Iterator[GaugeMetricFamily]:
    """Yield the families of a snapshot and of the replays' exposures, with at most ``budget`` series."""
    families = row_families()
    # Categories would be as many series as all conditions, and are for reading, not for watching.
    shown = [row for row in rows if row.metric in families and not row.condition.startswith(f"{CATEGORY}=")]
    # Sorting is stable: within a rank the snapshot's order stays, so the same rows always show the same series.
    ordered: list[EstimateRow | ExposureRow] = sorted([*shown, *exposures], key=lambda row: _rank(row, families))
    series: Series = {}
    omitted = 0
    for row in ordered:
        entries = _exposure_series(row) if isinstance(row, ExposureRow) else _series(row, families[row.metric])
        new = [key for key in entries if key not in series]
        if len(series) + len(new) > budget:
            omitted += len(new)
            continue
        for key, value in entries.items():
            # Counts of several rubrics add up; everything else has one row.
            series[key] = series.get(key, 0.0) + value if row.metric == "uncoded_responses" else value
    yield from _families(families, series)
    yield GaugeMetricFamily(
        "biasmeter_series_omitted",
        "Series of estimates that are left out because the series budget is used up.",
        value=omitted,
    )
    yield _timestamps(shown)
    yield _exposure_timestamps(exposures)


def _rank(row: EstimateRow | ExposureRow, families: Mapping[str, SeriesFamily]) -> int:
    """Return how early a row is shown: rows without a condition, whole audits, replays, baseline, levels, cells."""
    if isinstance(row, ExposureRow):
        return _EXPOSED
    if "condition" not in families[row.metric].labels:
        return 0
    if row.condition.count("/") == 3:
        return 5
    if "=" in row.condition:
        return 4
    return 3 if row.condition == AT_BASELINE else 1


def _series(row: EstimateRow, family: SeriesFamily) -> Series:
    if row.missing is not None or not family.shows(row):
        return {}
    entries = family.series(_labels(row, family), None if BOUNDS_ONLY in row.flags else row.value, row.low, row.high)
    if family.counts is not None:
        entries[family.counts.name, _labels(row, family.counts)] = row.n
    return entries


def _labels(row: EstimateRow, family: SeriesFamily) -> tuple[str, ...]:
    return tuple(_label(row, name) for name in family.labels)


def _label(row: EstimateRow, name: str) -> str:
    if name == "metric":  # of what is watched: the row's own is the family's
        return str(row.detail["measure"])
    if name in _IN_DETAIL:
        return str(row.detail[name])
    return str(getattr(row, name) or "")


def _families(families: Mapping[str, SeriesFamily], series: Series) -> Iterator[GaugeMetricFamily]:
    made: dict[str, GaugeMetricFamily] = {}
    counts = [family.counts for family in families.values() if family.counts is not None]
    for family in (*families.values(), *counts, _EXPOSURE_ENDS, _EXPOSURE_RANGE):
        names = (family.name, f"{family.name}_low", f"{family.name}_high") if family.bounds else (family.name,)
        for name, side in zip(names, ("", " Lower bound, 95 %.", " Upper bound, 95 %."), strict=False):
            made[name] = GaugeMetricFamily(name, family.help + side, labels=family.labels)
    for (name, labels), value in series.items():
        made[name].add_metric(labels, value)
    yield from made.values()


def _timestamps(rows: Sequence[EstimateRow]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(
        "biasmeter_estimate_timestamp_seconds",
        "End of the windows that estimates cover.",
        labels=("deployment", "origin"),
    )
    ends = {(row.deployment, row.origin): row.as_of for row in rows if row.deployment is not None}
    for (deployment, origin), as_of in ends.items():
        family.add_metric((deployment or "", origin), as_of.timestamp())
    return family


def job_family(sizes: Mapping[tuple[str, str], int]) -> GaugeMetricFamily:
    """Return the family of the jobs in the queues; an empty queue has the value 0."""
    family = GaugeMetricFamily("biasmeter_jobs", "Jobs by queue and state.", labels=("queue", "state"))
    for queue in (FIND, CODE, COUNT, ESTIMATE):
        for state in ("queued", "picked"):
            family.add_metric((queue, state), sizes.get((queue, state), 0))
    return family


def _exposure_series(row: ExposureRow) -> Series:
    """Return the series of one measure of one replay; none where it is not exported or has no value."""
    if row.metric not in _EXPOSED_METRICS or isinstance(entry := row.entry, Missing):
        return {}
    group = (row.deployment, row.origin, row.route or "", row.task or "", row.rubric, row.metric, row.replay_id)
    entries = _EXPOSURE_RANGE.series(group, entry.range.value, entry.range.low, entry.range.high)
    for bound, end in (("lowest", entry.lowest), ("highest", entry.highest)):
        value = None if BOUNDS_ONLY in end.flags else end.value
        entries |= _EXPOSURE_ENDS.series((*group, bound, end.side), value, end.low, end.high)
    return entries


def _exposure_timestamps(rows: Iterable[ExposureRow]) -> GaugeMetricFamily:
    """Return the family with the time of the newest replay of each group."""
    family = GaugeMetricFamily(
        "biasmeter_exposure_timestamp_seconds",
        "Time of the latest replay whose exposures are shown.",
        labels=("deployment", "origin", "route"),
    )
    moments: dict[tuple[str, str, str], float] = {}
    for row in rows:
        key = (row.deployment, row.origin, row.route or "")
        moments[key] = max(row.concluded_at.timestamp(), moments.get(key, 0.0))
    for key, moment in moments.items():
        family.add_metric(key, moment)
    return family


log = logging.getLogger(__name__)

#: Seconds between two reads of the store.
EVERY: Final = 5.0


class _Families(Collector):
    """Returns families that already exist."""

    def __init__(self, families: Iterable[GaugeMetricFamily]) -> None:
        self._families = list(families)

    @override
    def collect(self) -> Iterator[GaugeMetricFamily]:
        yield from self._families


def render(families: Iterable[GaugeMetricFamily]) -> bytes:
    """Return families in the Prometheus text format, without those that have no series."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Families(family for family in families if family.samples))
    return generate_latest(registry)


def silence_family(findings: Iterable[Finding]) -> GaugeMetricFamily:
    """Build the series of the levels whose alerts people have silenced for now."""
    family = GaugeMetricFamily(
        "biasmeter_drift_silenced",
        "1 for a level whose finding somebody has silenced; its alert waits.",
        labels=["deployment", "metric", "level"],
    )
    for labels in sorted({(finding.deployment, finding.metric, finding.level) for finding in findings}):
        family.add_metric(labels, 1.0)
    return family


def action_family(actions: Iterable[StoredAction]) -> GaugeMetricFamily:
    """Build the series of the actions of findings that are in force."""
    family = GaugeMetricFamily(
        "biasmeter_route_action",
        "1 while a finding acts on a route; a dry run changes nothing.",
        labels=["route", "deployment", "action", "dry_run"],
    )
    for labels in sorted(
        {(action.route, action.deployment, action.kind, str(action.dry_run).lower()) for action in actions}
    ):
        family.add_metric(labels, 1.0)
    return family


class EstimateExposition:
    """The newest snapshot in the Prometheus text format."""

    def __init__(self, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._clock = clock
        self._as_of: tuple[datetime | None, datetime | None] = None, None
        self._estimates = b""
        self._now = b""

    @property
    def text(self) -> bytes:
        """All series of the newest snapshot."""
        return self._estimates + self._now

    async def refresh(self, engine: AsyncEngine) -> None:
        """Read the newest snapshot from the store, and render it if it is new.

        Raises
        ------
        StoreUnavailable
            The store does not answer. The text of the last snapshot stays, with its time.
        """
        rows: list[EstimateRow] = []
        exposures: list[ExposureRow] = []
        async with transaction(engine) as connection:
            now = self._clock()
            silenced = silence_family(await read_silenced(connection, now))
            acting = action_family(action for action in await read_actions(connection, now) if action.ended_at is None)
            self._now = render([job_family(await queue_sizes(connection)), silenced, acting])
            as_of = await newest_as_of(connection), await newest_exposure(connection)
            changed = as_of != self._as_of
            if changed:
                rows = await read_estimates(connection)
                exposures = await latest_exposures(connection)
        if changed:
            self._estimates = await asyncio.to_thread(lambda: render(estimate_families(rows, exposures)))
            self._as_of = as_of

    async def follow(self, engine: AsyncEngine) -> None:
        """Refresh every few seconds, until cancelled."""
        complaint = ""
        while True:
            try:
                await self.refresh(engine)
                complaint = ""
            except StoreUnavailable as error:
                log.debug("%s", error)
            except SQLAlchemyError as error:  # the tables of another release, while one is installed
                message = " ".join(str(error).split())
                if message != complaint:
                    log.warning("series wait: %s", message)
                complaint = message
            await asyncio.sleep(EVERY)
