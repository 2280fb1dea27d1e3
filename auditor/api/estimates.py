"""Serve ``GET /api/estimates``: the stored rows that the series and the console also show."""

from typing import Any

from aiohttp import web

from auditor.api.context import ENGINE
from auditor.api.requests import known_filters
from auditor.store.engine import transaction
from auditor.store.estimates import FILTERS, EstimateRow, newest_as_of, read_estimates
from auditor.store.queue import ESTIMATE, ask_for

_ALWAYS = ("origin", "rubric", "condition", "window", "metric")
_WHERE_KNOWN = (
    "deployment", "layer", "base", "value", "low", "high", "n_statements", "n_eligible", "n_effective",
    "coverage", "method", "missing",
)  # fmt: skip


def routes() -> list[web.RouteDef]:
    """List the routes."""
    return [web.get("/api/estimates", _estimates), web.post("/api/estimates", _ask)]


async def _ask(request: web.Request) -> web.Response:
    """Request new estimates now; one of the auditor processes makes them."""
    known_filters(request, ())
    async with transaction(request.app[ENGINE]) as connection:
        asked = await ask_for(connection, ESTIMATE, "estimate:asked")
    return web.json_response({"asked": asked}, status=202)


async def _estimates(request: web.Request) -> web.Response:
    wanted = known_filters(request, FILTERS)
    async with transaction(request.app[ENGINE]) as connection:
        as_of = await newest_as_of(connection)
        rows = await read_estimates(connection, **wanted)
    return web.json_response(
        {"as_of": as_of.isoformat() if as_of else None, "estimates": [estimate_json(row) for row in rows]}
    )


def estimate_json(row: EstimateRow) -> dict[str, Any]:
    """Return a row as JSON. Unknown values are left out; ``missing`` has the reason."""
    known = {name: value for name in _WHERE_KNOWN if (value := getattr(row, name)) is not None}
    return {
        **{name: getattr(row, name) for name in _ALWAYS},
        **known,
        **row.detail,
        "n": row.n,
        "flags": list(row.flags),
        "since": row.since.isoformat(),
        "as_of": row.as_of.isoformat(),
        "coder": row.coder,
        "seed": row.seed,
    }
