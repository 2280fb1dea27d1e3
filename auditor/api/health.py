"""Serve ``/health`` and ``/api/health``: the data's way from spool to estimates, storage, and the configuration."""

import asyncio
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import urlencode

import httpx2
import yaml
from aiohttp import web
from msgspec import UNSET, UnsetType, convert
from msgspec.structs import asdict

from auditor.access import gateway_access
from auditor.api.addresses import uncoded_filters
from auditor.api.context import CLOCK, CONFIG, ENGINE
from auditor.api.operations import get
from auditor.api.pages import render_page
from auditor.api.requests import known_filters
from auditor.config import Config, format_duration
from auditor.documents.service import (
    GatewayHealthEntry,
    HealthBody,
    JudgeCallsEntry,
    QueueSizeEntry,
    RetentionEntry,
    StorageEntry,
    TableSizeEntry,
    UncodedEntry,
)
from auditor.domain.exchange import Origin
from auditor.errors import UsageError
from auditor.jobs.estimate import WAITING
from auditor.report.judges import LAYERS
from auditor.report.wording import join_words
from auditor.store.engine import transaction
from auditor.store.estimates import EstimateRow, newest_as_of, read_estimates
from auditor.store.expiry import find_expiry
from auditor.store.overview import ExchangeCounts, count_seen
from auditor.store.queue import queue_sizes
from auditor.store.sizes import read_sizes

#: Seconds that the gateway may take to answer.
_PATIENCE: Final = 2.0
_SERIES: Final = re.compile(r"^(biasmeter_[a-z_]+)(?:\{([^}]*)\})? (\S+)$", re.MULTILINE)
#: The one in C, where there is one: a configuration of 200 deployments takes the other a quarter of a second.
_DUMPER: Final = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
#: An oldest record in the spool of this age, in seconds, means that the shipper does not get on.
_LATE: Final = 60.0
#: How far back calls of judges are counted, to the beginning of a day, and the share of failures that is a problem.
_JUDGED: Final = timedelta(days=1)
_MOST_FAILED: Final = 0.05
#: ``biasmeter_deployment_state`` of a deployment that gets no requests.
_OPEN: Final = 2
_STATES: Final = {0: "gets requests", 1: "is tried again", _OPEN: "gets no requests, because the last ones failed"}


def routes() -> list[web.RouteDef]:
    """List the routes of the pages."""
    return [web.get("/health", _page)]


@get("/api/health", "Spool, jobs, judges, storage, and the configuration without secrets")
async def _show(request: web.Request) -> HealthBody:
    return await _read(request)


OPERATIONS: Final = (_show,)


async def _page(request: web.Request) -> web.Response:
    known_filters(request, ())
    health = await _read(request)
    written = yaml.dump(health.configuration, Dumper=_DUMPER, sort_keys=False)
    return render_page(request, "health.html.j2", **asdict(health), states=_STATES, layers=LAYERS, written=written)


async def _read(request: web.Request) -> HealthBody:
    config, now = request.app[CONFIG](), request.app[CLOCK]()
    gateway, (jobs, judges, store) = await asyncio.gather(ask_gateway(config), _read_store(request, config, now))
    return HealthBody(
        gateway=gateway,
        jobs=jobs,
        judges=judges,
        store=store,
        problems=list(_problems(gateway, jobs, judges, store)),
        config_hash=config.config_hash,
        configuration=config.model_dump(mode="json"),
    )


async def _read_store(
    request: web.Request, config: Config, now: datetime
) -> tuple[list[QueueSizeEntry], list[JudgeCallsEntry], StorageEntry]:
    longest = format_duration(max(config.monitor.windows))
    async with transaction(request.app[ENGINE]) as connection:
        expiry = await find_expiry(connection, config.retention.content, config.retention.facts)
        sizes = await read_sizes(connection)
        queues = await queue_sizes(connection)
        as_of = await newest_as_of(connection)
        uncoded = await read_estimates(connection, metric="uncoded_responses", window=longest)
        seen = await count_seen(connection, (now - _JUDGED).astimezone(UTC).date())
    store = StorageEntry(
        bytes=sum(table.bytes for table in sizes),
        tables=[convert(table, TableSizeEntry, from_attributes=True) for table in sizes],
        retention=RetentionEntry(
            content=format_duration(config.retention.content),
            facts=format_duration(config.retention.facts),
            content_from=expiry.bounds.content.isoformat(),
            facts_from=expiry.bounds.facts.isoformat(),
            held=[str(held) for held in expiry.held],
        ),
        estimates_as_of=as_of.isoformat() if as_of else None,
        window=longest,
        uncoded=_uncoded(uncoded),
    )
    jobs = [QueueSizeEntry(queue=queue, state=state, n=n) for (queue, state), n in sorted(queues.items())]
    return jobs, list(_judges(config, seen)), store


def _uncoded(rows: Sequence[EstimateRow]) -> list[UncodedEntry]:
    """Add up the answers without a label by layer and reason, each with the address of its answers.

    Answers that wait for coding have no list.
    """
    counts: Counter[tuple[str, str]] = Counter()
    row_of: dict[tuple[str, str], EstimateRow] = {}
    for row in rows:
        key = (row.layer or "both", str(row.detail.get("reason")))
        counts[key] += row.n
        row_of[key] = row
    return [
        UncodedEntry(
            layer=layer,
            reason=reason,
            n=counts[layer, reason],
            answers=None if reason == WAITING else _answers_without_label(row),
        )
        for (layer, reason), row in sorted(row_of.items())
    ]


def _answers_without_label(row: EstimateRow) -> str:
    """Return the address of the answers of all deployments that lack a label for the row's reason."""
    time = {"from": row.since.isoformat(), "as_of": row.as_of.isoformat()}
    return "/answers?" + urlencode({**uncoded_filters(row), **time})


def _judges(config: Config, seen: Mapping[tuple[str, str], ExchangeCounts]) -> Iterator[JudgeCallsEntry]:
    """Yield how many calls of judges each deployment got since yesterday, and how many have no complete answer."""
    names: dict[str, list[str]] = {}
    for judge in config.judges:
        if judge.deployment is not None:
            names.setdefault(judge.deployment, []).append(judge.name)
    for deployment, judges in names.items():
        calls = seen.get((deployment, Origin.JUDGE.value))
        stored, complete = (calls.stored, calls.complete) if calls else (0, 0)
        yield JudgeCallsEntry(judges=judges, deployment=deployment, calls=stored, failed=stored - complete)


async def ask_gateway(config: Config) -> GatewayHealthEntry:
    """Read the gateway's spool, shipper and capture from its series; ``error`` says why they are unknown."""
    try:
        access = gateway_access(config)
    except UsageError as error:
        return GatewayHealthEntry(error=str(error))
    url = access.url.removesuffix("/v1") + "/metrics"
    try:
        async with httpx2.AsyncClient(timeout=_PATIENCE, trust_env=False) as client:
            answer = await client.get(url)
            answer.raise_for_status()
    except httpx2.HTTPError as error:
        why = f"the gateway does not answer: {type(error).__name__} {error}".strip()
        return GatewayHealthEntry(url=access.url, error=why)
    return _read_series(access.url, answer.text)


def _read_series(url: str, text: str) -> GatewayHealthEntry:
    spool_bytes: float | UnsetType = UNSET
    spool_oldest_seconds: float | UnsetType = UNSET
    capture: dict[str, int] = {}
    deployments: dict[str, int] = {}
    for name, labels, value in _SERIES.findall(text):
        about = dict(re.findall(r'([a-z_]+)="([^"]*)"', labels))
        match name:
            case "biasmeter_spool_bytes":
                spool_bytes = float(value)
            case "biasmeter_spool_oldest_seconds":
                spool_oldest_seconds = float(value)
            case "biasmeter_capture_total":
                capture[about["outcome"]] = int(float(value))
            case "biasmeter_deployment_state":
                deployments[about["deployment"]] = int(float(value))
    return GatewayHealthEntry(
        url=url,
        spool_bytes=spool_bytes,
        spool_oldest_seconds=spool_oldest_seconds,
        capture=capture,
        deployments=deployments,
    )


def _problems(
    gateway: GatewayHealthEntry,
    jobs: Sequence[QueueSizeEntry],
    judges: Sequence[JudgeCallsEntry],
    store: StorageEntry,
) -> Iterator[str]:
    """Say in a sentence each what needs somebody's attention."""
    if gateway.error:
        yield f"The gateway's state is unknown: {gateway.error}."
    if gateway.spool_oldest_seconds and gateway.spool_oldest_seconds > _LATE:
        yield (
            f"The oldest record has waited {gateway.spool_oldest_seconds:.0f} s in the spool: the shipper or "
            "PostgreSQL does not get on. Applications are not affected."
        )
    dropped = sum(n for outcome, n in (gateway.capture or {}).items() if outcome.startswith("dropped"))
    if dropped:
        yield f"{dropped:,} copies were dropped since the gateway's start, because the spool was full or failed."
    closed = [name for name, state in (gateway.deployments or {}).items() if state == _OPEN]
    if closed:
        yield f"The gateway sends nothing to {join_words(closed)}: the last requests failed."
    failed = sum(size.n for size in jobs if size.state in {"exception", "failed"})
    if failed:
        yield f"{failed:,} jobs failed; the auditor's log has the reasons."
    for calls in judges:
        if calls.failed > _MOST_FAILED * calls.calls:
            share = f"{calls.failed:,} of {calls.calls:,}"
            yield f"{share} calls of judges to {calls.deployment} failed since yesterday."
    for held in store.retention.held:
        yield f"Retention waits for somebody: {held}."
    unread = sum(uncoded.n for uncoded in store.uncoded if uncoded.reason in {"judge_refused", "failed"})
    if unread:
        yield f"Judges could not read {unread:,} answers: see the table of answers without a label."
