"""Serve ``GET /api/estimates``: the stored rows that the series and the console also show."""

from typing import Any, Final

from aiohttp import web

from auditor.api.context import ENGINE
from auditor.api.operations import get, post
from auditor.api.requests import known_filters
from auditor.documents.deployments import EstimatesBody, EstimatesRequestedBody
from auditor.domain.keys import KeyRole
from auditor.store.engine import transaction
from auditor.store.estimates import FILTERS, EstimateRow, newest_as_of, read_estimates
from auditor.store.queue import ESTIMATE, ask_for

_ALWAYS = ("origin", "rubric", "condition", "window", "metric")
_WHERE_KNOWN = (
    "deployment", "layer", "base", "value", "low", "high", "n_statements", "n_eligible", "n_effective",
    "coverage", "method", "missing",
)  # fmt: skip


@get("/api/estimates", "The rows of the newest snapshot", filters=dict.fromkeys(FILTERS, str))
async def _list(request: web.Request) -> EstimatesBody:
    wanted = known_filters(request, FILTERS)
    async with transaction(request.app[ENGINE]) as connection:
        as_of = await newest_as_of(connection)
        rows = await read_estimates(connection, **wanted)
    return EstimatesBody(as_of=as_of.isoformat() if as_of else None, estimates=[estimate_json(row) for row in rows])


@post("/api/estimates", "Ask for new estimates now", role=KeyRole.REVIEWER, statuses=(202,))
async def _request(request: web.Request) -> EstimatesRequestedBody:
    """Request new estimates; one of the auditor processes makes them."""
    async with transaction(request.app[ENGINE]) as connection:
        return EstimatesRequestedBody(asked=await ask_for(connection, ESTIMATE, "estimate:asked"))


OPERATIONS: Final = (_list, _request)


def estimate_json(row: EstimateRow) -> dict[str, Any]:
    """Return a row as the API shows it. Unknown values are left out; ``missing`` has the reason.

    It has the keys of ``EstimateRowEntry``, and those of the row's detail.
    """
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
