"""Serve ``GET /api/deployments``: the state of each deployment, with its headline estimates, and what changed."""

from collections.abc import Sequence
from typing import Any

from aiohttp import web

from auditor.api.context import CLOCK, CONFIG, ENGINE
from auditor.api.estimates import estimate_json
from auditor.api.overview import DeploymentOverview, OriginOverview, by_deployment, read_overview, window_names
from auditor.api.requests import ApiError, known_filters
from auditor.api.signals import drift_state, peer_verdicts
from auditor.api.week import changes_of_week, week_window
from auditor.config import Config
from auditor.store.engine import transaction
from auditor.store.estimates import EstimateRow, read_signals


def routes() -> list[web.RouteDef]:
    """List the routes."""
    return [web.get("/api/deployments", _deployments)]


async def _deployments(request: web.Request) -> web.Response:
    config, now = request.app[CONFIG](), request.app[CLOCK]()
    window = check_window(known_filters(request, ("window",)).get("window"), config)
    async with transaction(request.app[ENGINE]) as connection:
        overview = await read_overview(connection, config, now, window)
        signals = await read_signals(connection, week_window(config))
        week = await changes_of_week(connection, week_window(config), signals, now)
    known = by_deployment(signals)
    return web.json_response(
        {
            "as_of": overview.as_of.isoformat() if overview.as_of else None,
            "window": overview.window,
            "deployments": [deployment_json(one, known.get(one.name, ())) for one in overview.deployments],
            "week": week.as_json(),
        }
    )


def check_window(given: str | None, config: Config) -> str:
    """Return the name of a window: the given one, or the longest.

    Raises
    ------
    ApiError
        400: no such window is configured.
    """
    names = window_names(config)
    if given is not None and given not in names:
        raise ApiError(400, f"window must be one of {', '.join(names)}.", "invalid_value", "window")
    return given or names[0]


def deployment_json(overview: DeploymentOverview, signals: Sequence[EstimateRow]) -> dict[str, Any]:
    """Return a deployment as JSON; ``signals`` are its rows about drift and peers."""
    declared = overview.deployment
    about = {name: getattr(declared, name) for name in ("model", "vendor", "weights")} if declared else {}
    drift, peers = drift_state(signals), peer_verdicts(signals)
    return {
        "name": overview.name,
        "configured": declared is not None,
        **{name: value for name, value in about.items() if value is not None},
        "routes": list(overview.routes),
        "planned": overview.progress.planned,
        "answered": overview.progress.answered,
        "origins": {part.origin: _part(part) for part in overview.parts},
        "estimates": [estimate_json(row) for row in overview.headlines],
        "drift": {"state": drift.text} if drift.text else {"missing": drift.reason},
        "peers": {"verdict": peers.text} if peers.text else {"missing": peers.reason},
        "reasons": list(overview.reasons),
        "next": overview.next_command,
    }


def _part(part: OriginOverview) -> dict[str, Any]:
    last = part.seen.last_at
    return {
        "stored": part.seen.stored,
        "complete": part.seen.complete,
        "with_content": part.seen.with_content,
        "coded": part.coded,
        "uncoded": part.uncoded,
        "waiting": part.waiting,
        "last_at": last.isoformat() if last else None,
    }
