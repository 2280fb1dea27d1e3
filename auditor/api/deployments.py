"""Serve ``GET /api/deployments``: progress and headline estimates of each deployment."""

from typing import Any

from aiohttp import web

from auditor.api.context import CLOCK, CONFIG, ENGINE
from auditor.api.estimates import estimate_json
from auditor.api.overview import DeploymentOverview, OriginOverview, read_overview
from auditor.store.engine import transaction


def routes() -> list[web.RouteDef]:
    """List the routes."""
    return [web.get("/api/deployments", _deployments)]


async def _deployments(request: web.Request) -> web.Response:
    app = request.app
    async with transaction(app[ENGINE]) as connection:
        overview = await read_overview(connection, app[CONFIG](), app[CLOCK]())
    return web.json_response(
        {
            "as_of": overview.as_of.isoformat() if overview.as_of else None,
            "window": overview.window,
            "deployments": [_standing(standing) for standing in overview.standings],
        }
    )


def _standing(standing: DeploymentOverview) -> dict[str, Any]:
    declared = standing.deployment
    about = {name: getattr(declared, name) for name in ("model", "vendor", "weights")} if declared else {}
    return {
        "name": standing.name,
        "configured": declared is not None,
        **{name: value for name, value in about.items() if value is not None},
        "routes": list(standing.routes),
        "planned": standing.progress.planned,
        "answered": standing.progress.answered,
        "origins": {part.origin: _part(part) for part in standing.parts},
        "estimates": [estimate_json(row) for row in standing.headlines],
        "reasons": list(standing.reasons),
        "next": standing.next_command,
    }


def _part(part: OriginOverview) -> dict[str, Any]:
    last = part.seen.last_at
    return {
        "stored": part.seen.stored,
        "complete": part.seen.complete,
        "with_content": part.seen.with_content,
        "coded": part.read.coded,
        "uncoded": part.read.uncoded,
        "waiting": part.waiting,
        "last_at": last.isoformat() if last else None,
    }
