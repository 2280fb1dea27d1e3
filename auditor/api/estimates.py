"""``GET /api/estimates``: the stored rows themselves, those that the series and the status page show."""

from typing import Any

from aiohttp import web

from auditor.api.errors import ApiError
from auditor.api.keys import ENGINE
from auditor.store.engine import reading
from auditor.store.estimates import FILTERS, EstimateRow, newest_as_of, read_estimates
from auditor.store.queue import ESTIMATE, ask_for

_ALWAYS = ("origin", "rubric", "condition", "window", "metric")
_WHERE_KNOWN = (
    "deployment", "layer", "base", "value", "low", "high", "n_statements", "n_eligible", "coverage", "method",
    "missing",
)  # fmt: skip


def routes() -> list[web.RouteDef]:
    """List the paths."""
    return [web.get("/api/estimates", _estimates), web.post("/api/estimates", _ask)]


async def _ask(request: web.Request) -> web.Response:
    """Have new estimates made now; some auditor process takes it up."""
    if "origin" in request.headers:
        # No page in a browser has any business here, and one of another site could ask without being seen.
        raise ApiError(403, "Ask for this from outside a browser.", "foreign_origin")
    async with reading(request.app[ENGINE]) as connection:
        asked = await ask_for(connection, ESTIMATE, "estimate:asked")
    return web.json_response({"asked": asked}, status=202)


async def _estimates(request: web.Request) -> web.Response:
    wanted = dict(request.query)
    unknown = sorted(set(wanted) - set(FILTERS))
    if unknown:
        names = ", ".join(FILTERS)
        raise ApiError(400, f"There is no filter {unknown[0]!r}; there are: {names}.", "invalid_value", unknown[0])
    async with reading(request.app[ENGINE]) as connection:
        as_of = await newest_as_of(connection)
        rows = await read_estimates(connection, **wanted)
    return web.json_response(
        {"as_of": as_of.isoformat() if as_of else None, "estimates": [estimate_json(row) for row in rows]}
    )


def estimate_json(row: EstimateRow) -> dict[str, Any]:
    """Write a row; what is unknown is absent, and ``missing`` says why."""
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
