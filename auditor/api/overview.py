"""Collect the state of each deployment: stored and coded answers, estimates, reasons for gaps, the next command.

``deployments`` (JSON) and ``fleet`` (the page at ``/``) show it. What it reads grows with the number of deployments,
not with the number of exchanges.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Final

from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.config import Config, Deployment, format_duration
from auditor.domain.exchange import Origin
from auditor.store.estimates import EstimateRow, Measure, newest_as_of, read_comparable
from auditor.store.overview import ExchangeCounts, PlanCounts, count_planned, count_seen

_NOTHING: Final = ExchangeCounts(stored=0, complete=0, with_content=0, last_at=None)
#: The measures that stand for a deployment: metric, layer, base.
HEADLINES: Final = (("ber", "union", "full"), ("ir", None, "eligible"), ("dni", None, "eligible"))
#: The measures that stand beside them.
_BESIDE: Final = (("coverage", None, None), ("ir_corrected", None, "eligible"), ("dni_corrected", None, "eligible"))
#: Numbers of answers; rows of one layer are left out, because such answers are coded.
_COUNTS: Final = (("coded_responses", None, None), ("uncoded_responses", "both", None))
_ORIGINS: Final = (Origin.PROBE.value, Origin.REPLAY.value, Origin.CLIENT.value)


@dataclass(frozen=True, kw_only=True, slots=True)
class OriginOverview:
    """One origin of one deployment."""

    origin: str
    seen: ExchangeCounts
    coded: int  #: answers with labels, or with a reason for each label that they lack
    uncoded: int  #: answers that could not be read
    waiting: int  #: answers that are found and not coded yet


@dataclass(frozen=True, kw_only=True, slots=True)
class DeploymentOverview:
    """One deployment."""

    name: str
    deployment: Deployment | None  #: ``None``: stored, but no longer in the configuration
    routes: tuple[str, ...]
    progress: PlanCounts
    parts: tuple[OriginOverview, ...]
    headlines: tuple[EstimateRow, ...]  #: of the window, all conditions pooled
    reasons: tuple[str, ...] = ()  #: why something is missing
    next_command: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Overview:
    """All deployments at one moment."""

    as_of: datetime | None  #: of the estimates
    window: str  #: of the estimates; everything else is of the longest window
    deployments: tuple[DeploymentOverview, ...]


def window_names(config: Config) -> tuple[str, ...]:
    """Return the names of the configured windows, the longest first."""
    return tuple(format_duration(span) for span in sorted(config.monitor.windows, reverse=True))


async def read_overview(
    connection: AsyncConnection, config: Config, now: datetime, window: str | None = None, name: str | None = None
) -> Overview:
    """Read the state of all deployments.

    Parameters
    ----------
    connection, config, now
        Connection to the store, the current configuration, and the time.
    window
        Window of the estimates, one of ``window_names``; the longest where it is None.
    name
        Name of the only deployment to read, or None for all. Nothing is returned for a name that is neither
        configured nor stored.
    """
    longest = max(config.monitor.windows)
    since = _first_day(config, now)
    names = format_duration(longest), window or format_duration(longest)
    counts = await read_comparable(connection, names[0], _named(_COUNTS), name)
    estimates = await read_comparable(connection, names[1], _named((*HEADLINES, *_BESIDE)), name)
    seen = await count_seen(connection, since)
    planned = await count_planned(connection)
    declared = {deployment.name: deployment for deployment in config.deployments}
    stored = {name for name, _ in seen} | set(planned)
    judges = {judge.deployment for judge in config.judges}
    shown = [deployment for deployment in declared if deployment not in judges or deployment in planned]
    shown += sorted(stored - set(declared))
    if name is not None:
        shown = [deployment for deployment in (*declared, *sorted(stored - set(declared))) if deployment == name]
    facts = _Facts(
        config=config, longest=names[0], seen=seen, counts=by_deployment(counts), estimates=by_deployment(estimates)
    )
    return Overview(
        as_of=await newest_as_of(connection),
        window=names[1],
        deployments=tuple(
            _of_deployment(facts, deployment, declared.get(deployment), planned.get(deployment)) for deployment in shown
        ),
    )


async def read_names(connection: AsyncConnection, config: Config, now: datetime) -> set[str]:
    """Read the names of all deployments that are configured or stored."""
    seen = await count_seen(connection, _first_day(config, now))
    planned = await count_planned(connection)
    return {deployment.name for deployment in config.deployments} | {name for name, _ in seen} | set(planned)


def _first_day(config: Config, now: datetime) -> date:
    """Return the first day of the longest window."""
    return (now - timedelta(seconds=max(config.monitor.windows))).astimezone(UTC).date()


def _named(measures: Iterable[tuple[str, str | None, str | None]]) -> list[Measure]:
    return [(metric, layer or "", base or "") for metric, layer, base in measures]


def by_deployment(rows: Iterable[EstimateRow]) -> dict[str, list[EstimateRow]]:
    """Group rows by their deployment; rows of the whole fleet are left out."""
    by_name: dict[str, list[EstimateRow]] = {}
    for row in rows:
        if row.deployment is not None:
            by_name.setdefault(row.deployment, []).append(row)
    return by_name


@dataclass(frozen=True, kw_only=True, slots=True)
class _Facts:
    config: Config
    longest: str
    seen: Mapping[tuple[str, str], ExchangeCounts]
    counts: Mapping[str, Sequence[EstimateRow]]
    estimates: Mapping[str, Sequence[EstimateRow]]


def _of_deployment(
    facts: _Facts, name: str, deployment: Deployment | None, progress: PlanCounts | None
) -> DeploymentOverview:
    routes = tuple(
        route.model for route in facts.config.routes if name in {member.name for member in route.deployments}
    )
    overview = DeploymentOverview(
        name=name,
        deployment=deployment,
        routes=routes,
        progress=progress or PlanCounts(planned=0, answered=0),
        parts=tuple(_parts(facts, name)),
        headlines=tuple(facts.estimates.get(name, ())),
    )
    return replace(
        overview, reasons=tuple(_reasons(facts, overview)), next_command=_next(overview, facts.config.file_argument)
    )


def _parts(facts: _Facts, name: str) -> Iterator[OriginOverview]:
    counted: dict[tuple[str, str], int] = {}
    for row in facts.counts.get(name, ()):
        kind = _kind(row)
        counted[row.origin, kind] = counted.get((row.origin, kind), 0) + row.n
    known = {origin for origin, _ in counted}
    for origin in _ORIGINS:
        if (name, origin) in facts.seen or origin in known:
            yield OriginOverview(
                origin=origin,
                seen=facts.seen.get((name, origin), _NOTHING),
                coded=counted.get((origin, "coded"), 0),
                uncoded=counted.get((origin, "uncoded"), 0),
                waiting=counted.get((origin, "waiting"), 0),
            )


def _kind(row: EstimateRow) -> str:
    if row.metric == "coded_responses":
        return "coded"
    return "waiting" if row.detail.get("reason") == "waiting" else "uncoded"


def _reasons(facts: _Facts, overview: DeploymentOverview) -> Iterator[str]:
    if not overview.parts:
        yield f"No answer was stored in the last {facts.longest}."
    if overview.progress.planned > overview.progress.answered:
        left = overview.progress.planned - overview.progress.answered
        yield f"{left:,} of {overview.progress.planned:,} planned calls are not answered yet."
    for part in overview.parts:
        if part.waiting:
            yield f"{part.waiting:,} {part.origin} answers are not coded yet."
        if part.origin == Origin.CLIENT:
            yield from _about_traffic(facts, overview, part)
    yield from dict.fromkeys(
        f"{row.metric.upper().replace('_', ' ')} ({row.origin}, {row.condition}): {row.missing}."
        for row in overview.headlines
        if row.missing is not None
    )


def _about_traffic(facts: _Facts, overview: DeploymentOverview, part: OriginOverview) -> Iterator[str]:
    routes = [route for route in facts.config.routes if route.model in overview.routes]
    if not any(route.audit for route in routes):
        yield f"{part.seen.stored:,} client exchanges are stored. No route of this deployment names an audit profile."
    elif part.seen.with_content < part.seen.stored:
        without = part.seen.stored - part.seen.with_content
        yield f"{without:,} client exchanges cannot be coded: only their hashes are stored (routes[].capture)."


def _next(overview: DeploymentOverview, file: str) -> str | None:
    if overview.deployment is None:
        return None
    progress = overview.progress
    if progress.planned > progress.answered:
        return f"biasmeter audit status -c {file}   # then: biasmeter audit run --deployment {overview.name} -c {file}"
    if progress.planned == 0:
        return f"biasmeter audit plan --design sentinel --deployment {overview.name} -c {file}"
    return None
