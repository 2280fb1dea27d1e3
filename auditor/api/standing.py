"""How each deployment stands: what is stored and read of it, what is shown, and if nothing, why and what to do.

Read by ``deployments`` (JSON) and ``status`` (the page at ``/``).
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
from auditor.store.overview import Progress, Read, Seen, count_planned, count_read, count_seen

_NOTHING: Final = Seen(stored=0, complete=0, with_content=0, last_at=None)
#: The measures that stand for a deployment: metric, layer, base.
HEADLINES: Final = (("ber", "union", "full"), ("ir", None, "eligible"), ("dni", None, "eligible"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """One origin of one deployment. ``waiting``: found, and not coded yet."""

    origin: str
    seen: Seen
    read: Read
    waiting: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """One deployment."""

    name: str
    deployment: Deployment | None  #: ``None``: stored, and no longer in the configuration
    routes: tuple[str, ...]
    progress: Progress
    parts: tuple[Part, ...]
    headlines: tuple[EstimateRow, ...]  #: of the longest window, all conditions pooled
    reasons: tuple[str, ...] = ()  #: why something is not shown
    next_command: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Overview:
    """All deployments at one moment."""

    as_of: datetime | None  #: of the estimates
    window: str
    standings: tuple[Standing, ...]


async def read_overview(connection: AsyncConnection, config: Config, now: datetime) -> Overview:
    """Read how all deployments stand."""
    longest = max(config.monitor.windows)
    since = (now - timedelta(seconds=longest)).astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    window = format_duration(longest)
    estimates = await read_estimates(connection, window=window)
    seen = await count_seen(connection, day_bounds(since.date())[0])
    planned = await count_planned(connection)
    # Those that the newest snapshot was made with: a coder that has read nothing yet is in no row.
    coders = tuple(sorted({row.coder for row in estimates}))
    read = await count_read(connection, coders, since)
    declared = {one.name: one for one in config.deployments}
    stored = {name for name, _ in seen} | set(planned)
    judges = {judge.deployment for judge in config.judges}
    names = [name for name in declared if name not in judges or name in planned]
    names += sorted(stored - set(declared))
    facts = _Facts(config=config, window=window, seen=seen, read=read, estimates=estimates)
    standings = tuple(_standing(facts, name, declared.get(name), planned.get(name)) for name in names)
    return Overview(as_of=await newest_as_of(connection), window=window, standings=standings)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Facts:
    config: Config
    window: str
    seen: Mapping[tuple[str, str], Seen]
    read: Mapping[tuple[str, str], Read]
    estimates: Sequence[EstimateRow]

    def rows(self, deployment: str) -> list[EstimateRow]:
        return [row for row in self.estimates if row.deployment == deployment]


def _standing(facts: _Facts, name: str, deployment: Deployment | None, progress: Progress | None) -> Standing:
    rows = facts.rows(name)
    parts = tuple(_parts(facts, name, rows))
    shown = tuple(_headlines(rows))
    routes = tuple(
        route.model for route in facts.config.routes if name in {member.name for member in route.deployments}
    )
    told = Standing(
        name=name,
        deployment=deployment,
        routes=routes,
        progress=progress or Progress(planned=0, answered=0),
        parts=parts,
        headlines=shown,
    )
    return replace(told, reasons=tuple(_reasons(facts, told)), next_command=_next(told))


def _parts(facts: _Facts, name: str, rows: Iterable[EstimateRow]) -> Iterator[Part]:
    waiting: dict[str, int] = {}
    for row in rows:
        if row.metric == "uncoded_responses" and row.detail.get("reason") == "waiting":
            waiting[row.origin] = waiting.get(row.origin, 0) + row.n
    for origin in (Origin.PROBE, Origin.REPLAY, Origin.CLIENT):
        key = (name, origin.value)
        if key in facts.seen or key in facts.read:
            yield Part(
                origin=origin.value,
                seen=facts.seen.get(key, _NOTHING),
                read=facts.read.get(key, Read(coded=0, uncoded=0)),
                waiting=waiting.get(origin.value, 0),
            )


def _headlines(rows: Iterable[EstimateRow]) -> Iterator[EstimateRow]:
    """Give what is shown of a deployment: probes first; traffic under each audit's name."""
    for row in rows:
        pooled = row.condition == "all" or row.origin == Origin.CLIENT
        if pooled and ((row.metric, row.layer, row.base) in HEADLINES or row.metric == "coverage"):
            yield row


def _reasons(facts: _Facts, standing: Standing) -> Iterator[str]:
    if not standing.parts:
        yield f"No answer of the last {facts.window} is stored."
    if standing.progress.planned > standing.progress.answered:
        left = standing.progress.planned - standing.progress.answered
        yield f"{left:,} of {standing.progress.planned:,} planned calls have no answer yet."
    for part in standing.parts:
        if part.waiting:
            yield f"{part.waiting:,} {part.origin} answers wait to be coded."
        if part.origin == Origin.CLIENT:
            yield from _about_traffic(facts, standing, part)
    yield from dict.fromkeys(
        f"{row.metric.upper()} ({row.origin}, {row.condition}): {row.missing}."
        for row in standing.headlines
        if row.missing is not None
    )


def _about_traffic(facts: _Facts, standing: Standing, part: Part) -> Iterator[str]:
    routes = [route for route in facts.config.routes if route.model in standing.routes]
    if not any(route.audit for route in routes):
        yield f"Client exchanges stored: {part.seen.stored:,}. No route of this deployment names an audit."
    elif part.seen.with_content < part.seen.stored:
        without = part.seen.stored - part.seen.with_content
        yield f"Client exchanges that cannot be read: {without:,}. Only hashes of them are kept (routes[].capture)."


def _next(standing: Standing) -> str | None:
    if standing.deployment is None:
        return None
    progress = standing.progress
    if progress.planned > progress.answered:
        return f"tiltmeter audit status -c FILE   # then: tiltmeter audit run --deployment {standing.name} -c FILE"
    if progress.planned == 0:
        return f"tiltmeter audit plan --design sentinel --deployment {standing.name} -c FILE"
    return None
