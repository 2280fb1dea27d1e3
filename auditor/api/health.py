"""Serve ``/health`` and ``/api/health``: the data's way from spool to estimates, storage, and the configuration."""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any, Final

import httpx2
import yaml
from aiohttp import web

from auditor.access import gateway_access
from auditor.api.context import CLOCK, CONFIG, ENGINE
from auditor.api.pages import render_page
from auditor.api.requests import known_filters
from auditor.config import Config, format_duration
from auditor.errors import UsageError
from auditor.jobs.retention import bounds_of
from auditor.store.engine import transaction
from auditor.store.estimates import newest_as_of, read_estimates
from auditor.store.queue import queue_sizes
from auditor.store.sizes import read_sizes

#: Seconds that the gateway may take to answer.
_PATIENCE: Final = 2.0
_SERIES: Final = re.compile(r"^(biasmeter_[a-z_]+)(?:\{([^}]*)\})? (\S+)$", re.MULTILINE)
_HIDDEN: Final = "hidden"
#: An oldest record in the spool of this age, in seconds, means that the shipper does not get on.
_LATE: Final = 60.0


def routes() -> list[web.RouteDef]:
    """List the routes."""
    return [web.get("/health", _page), web.get("/api/health", _json)]


async def _json(request: web.Request) -> web.Response:
    known_filters(request, ())
    return web.json_response(await _read(request))


async def _page(request: web.Request) -> web.Response:
    known_filters(request, ())
    health = await _read(request)
    return render_page(
        request, "health.html.j2", **health, written=yaml.safe_dump(health["configuration"], sort_keys=False)
    )


async def _read(request: web.Request) -> dict[str, Any]:
    config, now = request.app[CONFIG](), request.app[CLOCK]()
    gateway, (store, jobs) = await asyncio.gather(ask_gateway(config), _read_store(request, config, now))
    return {
        "gateway": gateway,
        "jobs": jobs,
        "store": store,
        "problems": _problems(gateway, jobs, store),
        "config_hash": config.config_hash,
        "configuration": _public(config),
    }


async def _read_store(
    request: web.Request, config: Config, now: datetime
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    bounds = bounds_of(config, now)
    async with transaction(request.app[ENGINE]) as connection:
        sizes = await read_sizes(connection)
        queues = await queue_sizes(connection)
        as_of = await newest_as_of(connection)
        longest = format_duration(max(config.monitor.windows))
        uncoded = await read_estimates(connection, metric="uncoded_responses", window=longest)
    reasons: dict[tuple[str, str], int] = {}
    for row in uncoded:
        key = (row.layer or "both", str(row.detail.get("reason")))
        reasons[key] = reasons.get(key, 0) + row.n
    store = {
        "bytes": sum(one.bytes for one in sizes),
        "tables": [asdict(one) for one in sizes],
        "retention": {
            "content": format_duration(config.retention.content),
            "facts": format_duration(config.retention.facts),
            "content_from": bounds.content.isoformat(),
            "facts_from": bounds.facts.isoformat(),
        },
        "estimates_as_of": as_of.isoformat() if as_of else None,
        "window": longest,
        "uncoded": [{"layer": layer, "reason": reason, "n": n} for (layer, reason), n in sorted(reasons.items())],
    }
    jobs = [{"queue": queue, "state": state, "n": n} for (queue, state), n in sorted(queues.items())]
    return store, jobs


async def ask_gateway(config: Config) -> dict[str, Any]:
    """Read the gateway's spool, shipper and capture from its series; ``error`` says why they are unknown."""
    try:
        access = gateway_access(config)
    except UsageError as error:
        return {"error": str(error)}
    url = access.url.removesuffix("/v1") + "/metrics"
    try:
        async with httpx2.AsyncClient(timeout=_PATIENCE, trust_env=False) as client:
            answer = await client.get(url)
            answer.raise_for_status()
    except httpx2.HTTPError as error:
        return {"url": access.url, "error": f"the gateway does not answer: {type(error).__name__} {error}".strip()}
    found: dict[str, Any] = {"url": access.url, "capture": {}, "deployments": {}}
    for name, labels, value in _SERIES.findall(answer.text):
        about = dict(re.findall(r'([a-z_]+)="([^"]*)"', labels))
        match name:
            case "biasmeter_spool_bytes" | "biasmeter_spool_oldest_seconds":
                found[name.removeprefix("biasmeter_")] = float(value)
            case "biasmeter_capture_total":
                found["capture"][about["outcome"]] = int(float(value))
            case "biasmeter_deployment_state":
                found["deployments"][about["deployment"]] = int(float(value))
    return found


def _problems(gateway: Mapping[str, Any], jobs: list[dict[str, Any]], store: Mapping[str, Any]) -> list[str]:
    """Say in a sentence each what needs somebody's attention."""
    found = []
    if "error" in gateway:
        found.append(f"The gateway's state is unknown: {gateway['error']}.")
    if gateway.get("spool_oldest_seconds", 0.0) > _LATE:
        found.append(
            f"The oldest record has waited {gateway['spool_oldest_seconds']:.0f} s in the spool: the shipper or "
            "PostgreSQL does not get on. Applications are not affected."
        )
    dropped = sum(n for outcome, n in gateway.get("capture", {}).items() if outcome.startswith("dropped"))
    if dropped:
        found.append(
            f"{dropped:,} copies were dropped since the gateway's start, because the spool was full or failed."
        )
    failed = sum(one["n"] for one in jobs if one["state"] in {"exception", "failed"})
    if failed:
        found.append(f"{failed:,} jobs failed; the auditor's log has the reasons.")
    unread = sum(one["n"] for one in store["uncoded"] if one["reason"] in {"judge_refused", "failed"})
    if unread:
        found.append(f"Judges could not read {unread:,} answers: see the table of answers without a label.")
    return found


def _public(config: Config) -> dict[str, Any]:
    """Return the configuration as it holds, with its defaults, without secrets and header values."""
    shown: dict[str, Any] = config.model_dump(mode="json")
    for section in (*shown["deployments"], *shown["judges"]):
        if section.get("headers"):
            section["headers"] = dict.fromkeys(section["headers"], _HIDDEN)
    return shown
