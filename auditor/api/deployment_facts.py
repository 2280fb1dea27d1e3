"""Read everything that the page of one deployment shows: of one origin's answers, over one window."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final

from aiohttp import web
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.api.cells import find_row
from auditor.api.charts import ReferenceDays
from auditor.api.context import CLOCK, CONFIG, ENGINE
from auditor.api.deployments import check_window
from auditor.api.overview import DeploymentOverview, read_overview, window_names
from auditor.api.requests import ApiError, known_filters
from auditor.config import Config
from auditor.domain.estimate import Estimate, Insufficient
from auditor.domain.exchange import Origin
from auditor.estimation.days import DayEstimate, estimate_days, estimate_rows
from auditor.estimation.drift import reference_days
from auditor.estimation.snapshots import ALL
from auditor.store.answers import CodedSelection, count_labels
from auditor.store.engine import transaction
from auditor.store.estimates import EstimateRow, read_estimates
from auditor.store.findings import Finding, read_findings
from auditor.store.references import StoredReference, read_references
from auditor.store.tallies import read_days

#: Whose answers a page can show; the first that a deployment has is shown unless another is asked for.
ORIGINS: Final = (Origin.PROBE.value, Origin.REPLAY.value, Origin.CLIENT.value)
FILTERS: Final = ("origin", "window", "audit")
_SIGNALS: Final = frozenset({"drift_alarm", "drift_evidence", "peer_verdict", "peer_deviation"})


@dataclass(frozen=True, kw_only=True, slots=True)
class ChosenAnswers:
    """What is shown: one origin's answers in one window; of client traffic those that one audit profile reads."""

    origin: str
    window: str
    audit: str

    def of(self, rows: Iterable[EstimateRow], window: str) -> list[EstimateRow]:
        """Return the chosen rows of a window."""
        chosen = [row for row in rows if (row.origin, row.window) == (self.origin, window) and row.rubric != "peers"]
        return [row for row in chosen if self.origin != Origin.CLIENT or row.condition == self.audit]

    def pooled(self, rows: Iterable[EstimateRow]) -> list[EstimateRow]:
        """Return the rows of all conditions together."""
        return [row for row in rows if row.condition == (self.audit or ALL)]


@dataclass(frozen=True, kw_only=True, slots=True)
class DeploymentFacts:
    """Everything that is read for the page and its JSON."""

    overview: DeploymentOverview
    as_of: datetime | None
    choice: ChosenAnswers
    rows: Sequence[EstimateRow]  #: of the chosen window
    longest: Sequence[EstimateRow]  #: of the longest window, which alone has conditions and reasons
    signals: Sequence[EstimateRow]
    audits: Sequence[str]
    labels: Mapping[tuple[str, str], int]
    days: Sequence[DayEstimate]
    reference: ReferenceDays | None
    referred: Estimate | Insufficient | None  #: the rate over the reference
    references: Sequence[StoredReference]
    findings: Sequence[Finding]


async def read_facts(request: web.Request) -> DeploymentFacts:
    """Read the facts of the deployment in the path.

    Raises
    ------
    ApiError
        400 for a wrong filter, 404 for a deployment that is neither configured nor stored.
    """
    app, name = request.app, request.match_info["name"]
    config, now = app[CONFIG](), app[CLOCK]()
    filters = known_filters(request, FILTERS)
    window = check_window(filters.get("window"), config)
    if filters.get("origin", ORIGINS[0]) not in ORIGINS:
        raise ApiError(400, f"origin must be one of {', '.join(ORIGINS)}.", "invalid_value", "origin")
    async with transaction(app[ENGINE]) as connection:
        overview = await read_overview(connection, config, now, window, name)
        if not overview.deployments:
            raise ApiError(404, "No deployment has this name.", "deployment_not_found", "name")
        stored = await read_estimates(connection, deployment=name)
        audits = sorted({row.condition for row in stored if row.origin == Origin.CLIENT and row.metric == "coverage"})
        choice = _choose(filters, window, stored, audits)
        rows, longest = choice.of(stored, window), choice.of(stored, window_names(config)[0])
        labels = await _labels(connection, find_row(choice.pooled(rows), "coverage", None, None))
        pooled = find_row(choice.pooled(longest), "ber", "union", "full")
        over_time = await _over_time(connection, pooled, config, now)
        findings = await read_findings(connection, deployment=name)
    days, referred = await asyncio.to_thread(over_time.estimate, config.seed)
    return DeploymentFacts(
        overview=overview.deployments[0],
        as_of=overview.as_of,
        choice=choice,
        rows=rows,
        longest=longest,
        signals=[row for row in stored if row.metric in _SIGNALS],
        audits=audits,
        labels=labels,
        days=days,
        reference=over_time.reference,
        referred=referred,
        references=over_time.references,
        findings=findings,
    )


def _choose(
    filters: Mapping[str, str], window: str, stored: Sequence[EstimateRow], audits: Sequence[str]
) -> ChosenAnswers:
    known = {row.origin for row in stored if row.metric == "coverage"}
    origin = filters.get("origin") or next((name for name in ORIGINS if name in known), ORIGINS[0])
    audit = filters.get("audit") or (audits[0] if audits else "")
    return ChosenAnswers(origin=origin, window=window, audit=audit if origin == Origin.CLIENT else "")


async def _labels(connection: AsyncConnection, row: EstimateRow | None) -> Mapping[tuple[str, str], int]:
    """Count the labels of the answers that a row of the whole rests on."""
    if row is None or row.deployment is None:
        return {}
    equal = {"deployment": row.deployment, "origin": row.origin, "coder": row.coder}
    return await count_labels(connection, (), CodedSelection(equal=equal, since=row.since, as_of=row.as_of))


@dataclass(frozen=True, kw_only=True, slots=True)
class _OverTime:
    """The counts of days, of the reference, and all references."""

    days: Sequence[Mapping[str, Any]] = ()
    references: Sequence[StoredReference] = ()
    reference: ReferenceDays | None = None
    referred: Sequence[Mapping[str, Any]] = ()

    def estimate(self, seed: int) -> tuple[list[DayEstimate], Estimate | Insufficient | None]:
        """Estimate each day, and the reference as a whole."""
        return estimate_days(self.days, seed), estimate_rows(self.referred, seed) if self.referred else None


async def _over_time(
    connection: AsyncConnection, pooled: EstimateRow | None, config: Config, now: datetime
) -> _OverTime:
    if pooled is None or pooled.value is None or pooled.deployment is None:
        return _OverTime()
    coder, name, origin = pooled.coder, pooled.deployment, pooled.origin
    days = await read_days(connection, coder, name, origin, pooled.since, now)
    if origin != Origin.PROBE:
        return _OverTime(days=days)
    references = await read_references(connection, coder, name)
    reference = _reference_days(references, config)
    if reference is None:
        return _OverTime(days=days, references=references)
    ends = midnight(reference.since), midnight(reference.until + timedelta(days=1))
    referred = await read_days(connection, coder, name, origin, *ends)
    return _OverTime(days=days, references=references, reference=reference, referred=referred)


def _reference_days(references: Sequence[StoredReference], config: Config) -> ReferenceDays | None:
    """Return the days of the reference in force; None while it lacks days."""
    if not references or references[0].until is None:
        return None
    until = references[0].until
    since = max(references[0].since, until - timedelta(days=reference_days(config) - 1))
    return ReferenceDays(since=since, until=until, rate=None)


def midnight(day: date) -> datetime:
    """Return the start of a day (UTC)."""
    return datetime.combine(day, time(), UTC)
