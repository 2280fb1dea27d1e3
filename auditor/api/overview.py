"""Collect the state of each deployment: stored and coded answers, estimates, reasons for gaps, the next command.

``deployments`` (JSON) and ``status`` (the page at ``/``) show it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.config import Config, Deployment, format_duration
from auditor.domain.exchange import Origin
from auditor.domain.ids import day_bounds
from auditor.store.estimates import EstimateRow, newest_as_of, read_estimates
from auditor.store.overview import CodingCounts, ExchangeCounts, PlanCounts, count_planned, count_read, count_seen

_NOTHING: Final = ExchangeCounts(stored=0, complete=0, with_content=0, last_at=None)
#: The measures that stand for a deployment: metric, layer, base.
HEADLINES: Final = (("ber", "union", "full"), ("ir", None, "eligible"), ("dni", None, "eligible"))

#: The measures that stand beside them.
_BESIDE: Final = frozenset({"coverage", "ir_corrected", "dni_corrected"})


@dataclass(frozen=True, kw_only=True, slots=True)
class OriginOverview:
    """One origin of one deployment. ``waiting``: answers that are found and not coded yet."""

    origin: str
    seen: ExchangeCounts
    read: CodingCounts
    waiting: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class DeploymentOverview:
    """One deployment."""

    name: str
    deployment: Deployment | None  #: ``None``: stored, but no longer in the configuration
    routes: tuple[str, ...]
    progress: PlanCounts
    parts: tuple[OriginOverview, ...]
    headlines: tuple[EstimateRow, ...]  #: of the longest window, all conditions pooled
    reasons: tuple[str, ...] = ()  #: why something is missing
    next_command: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Overview:
    """All deployments at one moment."""

    as_of: datetime | None  #: of the estimates
    window: str
    standings: tuple[DeploymentOverview, ...]


async def read_overview(connection: AsyncConnection, config: Config, now: datetime) -> Overview:
    """Read the state of all deployments."""
    longest = max(config.monitor.windows)
    since = (now - timedelta(seconds=longest)).astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    window = format_duration(longest)
    estimates = await read_estimates(connection, window=window)
    seen = await count_seen(connection, day_bounds(since.date())[0])
    planned = await count_planned(connection)
    # The coders of the newest snapshot. A coder that has coded nothing yet is in no row.
    coders = tuple(sorted({row.coder for row in estimates}))
    read = await count_read(connection, coders, since)
    declared = {one.name: one for one in config.deployments}
    stored = {name for name, _ in seen} | set(planned)
    judges = {judge.deployment for judge in config.judges}
    names = [name for name in declared if name not in judges or name in planned]
    names += sorted(stored - set(declared))
    facts = _Facts(config=config, window=window, seen=seen, read=read, estimates=estimates)
    standings = tuple(_deployment_overview(facts, name, declared.get(name), planned.get(name)) for name in names)
    return Overview(as_of=await newest_as_of(connection), window=window, standings=standings)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Facts:
    config: Config
    window: str
    seen: Mapping[tuple[str, str], ExchangeCounts]
    read: Mapping[tuple[str, str], CodingCounts]
    estimates: Sequence[EstimateRow]

    def rows(self, deployment: str) -> list[EstimateRow]:
        return [row for row in self.estimates if row.deployment == deployment]


def _deployment_overview(
    facts: _Facts, name: str, deployment: Deployment | None, progress: PlanCounts | None
) -> DeploymentOverview:
    rows = facts.rows(name)
    parts = tuple(_parts(facts, name, rows))
    shown = tuple(_headlines(rows))
    routes = tuple(
        route.model for route in facts.config.routes if name in {member.name for member in route.deployments}
    )
    overview = DeploymentOverview(
        name=name,
        deployment=deployment,
        routes=routes,
        progress=progress or PlanCounts(planned=0, answered=0),
        parts=parts,
        headlines=shown,
    )
    return replace(overview, reasons=tuple(_reasons(facts, overview)), next_command=_next(overview))


def _parts(facts: _Facts, name: str, rows: Iterable[EstimateRow]) -> Iterator[OriginOverview]:
    waiting: dict[str, int] = {}
    for row in rows:
        if row.metric == "uncoded_responses" and row.detail.get("reason") == "waiting":
            waiting[row.origin] = waiting.get(row.origin, 0) + row.n
    for origin in (Origin.PROBE, Origin.REPLAY, Origin.CLIENT):
        key = (name, origin.value)
        if key in facts.seen or key in facts.read:
            yield OriginOverview(
                origin=origin.value,
                seen=facts.seen.get(key, _NOTHING),
                read=facts.read.get(key, CodingCounts(coded=0, uncoded=0)),
                waiting=waiting.get(origin.value, 0),
            )


def _headlines(rows: Iterable[EstimateRow]) -> Iterator[EstimateRow]:
    """Yield the rows shown for a deployment: its probes, and its traffic by audit profile."""
    for row in rows:
        pooled = row.condition == "all" or row.origin == Origin.CLIENT
        if pooled and ((row.metric, row.layer, row.base) in HEADLINES or row.metric in _BESIDE):
            yield row


def _reasons(facts: _Facts, standing: DeploymentOverview) -> Iterator[str]:
    if not standing.parts:
        yield f"No answer was stored in the last {facts.window}."
    if standing.progress.planned > standing.progress.answered:
        left = standing.progress.planned - standing.progress.answered
        yield f"{left:,} of {standing.progress.planned:,} planned calls are not answered yet."
    for part in standing.parts:
        if part.waiting:
            yield f"{part.waiting:,} {part.origin} answers are not coded yet."
        if part.origin == Origin.CLIENT:
            yield from _about_traffic(facts, standing, part)
    yield from dict.fromkeys(
        f"{row.metric.upper().replace('_', ' ')} ({row.origin}, {row.condition}): {row.missing}."
        for row in standing.headlines
        if row.missing is not None
    )


def _about_traffic(facts: _Facts, standing: DeploymentOverview, part: OriginOverview) -> Iterator[str]:
    routes = [route for route in facts.config.routes if route.model in standing.routes]
    if not any(route.audit for route in routes):
        yield f"{part.seen.stored:,} client exchanges are stored. No route of this deployment names an audit profile."
    elif part.seen.with_content < part.seen.stored:
        without = part.seen.stored - part.seen.with_content
        yield f"{without:,} client exchanges cannot be coded: only their hashes are stored (routes[].capture)."


def _next(standing: DeploymentOverview) -> str | None:
    if standing.deployment is None:
        return None
    progress = standing.progress
    if progress.planned > progress.answered:
        return f"biasmeter audit status -c FILE   # then: biasmeter audit run --deployment {standing.name} -c FILE"
    if progress.planned == 0:
        return f"biasmeter audit plan --design sentinel --deployment {standing.name} -c FILE"
    return None
