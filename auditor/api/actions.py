"""Serve what findings do to routes, as JSON."""

from aiohttp import web

from auditor.api.context import ENGINE
from auditor.api.requests import known_filters
from auditor.jobs.actions import action_json
from auditor.store.actions import read_actions
from auditor.store.engine import transaction


def routes() -> list[web.RouteDef]:
    """List the routes."""
    return [web.get("/api/actions", _all)]


async def _all(request: web.Request) -> web.Response:
    known_filters(request, ())
    async with transaction(request.app[ENGINE]) as connection:
        found = await read_actions(connection)
    return web.json_response({"actions": [action_json(one) for one in reversed(found)]})
