"""Serve ``GET /api/exchanges`` and ``GET /api/exchanges/{id}``: stored requests and responses."""

from typing import Any

from aiohttp import web

from auditor.api.context import ENGINE
from auditor.api.requests import ApiError, optional_id, optional_limit, required_id
from auditor.store.engine import transaction
from auditor.store.exchanges import MAX_PAGE, StoredExchange, read_exchange, read_page

_DEFAULT_PAGE = 100
_TIMINGS = ("total_us", "upstream_us", "first_byte_us")


def routes() -> list[web.RouteDef]:
    """List the routes."""
    return [web.get("/api/exchanges", _page), web.get("/api/exchanges/{id}", _one)]


async def _page(request: web.Request) -> web.Response:
    limit = optional_limit(request.query.get("limit"), usual=_DEFAULT_PAGE, most=MAX_PAGE)
    after = optional_id(request.query.get("after"), "after")
    async with transaction(request.app[ENGINE]) as connection:
        page = await read_page(connection, limit, after)
    lines = [
        {
            "id": str(line.id),
            "at": line.at.isoformat(),
            "origin": line.origin,
            "route": line.route,
            "deployment": line.deployment,
            "status": line.status,
            "complete": line.complete,
        }
        for line in page
    ]
    return web.json_response({"exchanges": lines, "next": str(page[-1].id) if len(page) == limit else None})


async def _one(request: web.Request) -> web.Response:
    exchange_id = required_id(request)
    async with transaction(request.app[ENGINE]) as connection:
        found = await read_exchange(connection, exchange_id)
    if found is None:
        raise ApiError(404, "No stored exchange has this id.", "exchange_not_found", "id")
    return web.json_response(_shown(found))


def _shown(stored: StoredExchange) -> dict[str, Any]:
    facts = stored.facts
    names = (
        "origin", "endpoint", "route", "deployment", "model", "status", "outcome", "stream", "attempts", "capture",
        "inclusion", "config_hash", "request_id", "key_id", "ref", "tags", "error_type", "finish_reason",
        "request_bytes", "response_bytes", "truncated", "redacted",
    )  # fmt: skip
    tokens = {"prompt_tokens": facts["prompt_tokens"], "completion_tokens": facts["completion_tokens"]}
    return {
        "id": str(facts["id"]),
        "at": facts["at"].isoformat(),
        "complete": facts["outcome"] == "complete",
        **{name: facts[name] for name in names},
        "parent": str(facts["parent"]) if facts["parent"] else None,
        "usage": None if None in tokens.values() and set(tokens.values()) == {None} else tokens,
        "timings": {name: facts[name] for name in _TIMINGS},
        "request_sha256": _hex(facts["request_hash"]),
        "response_sha256": _hex(facts["response_hash"]),
        "request": _text(stored.request),
        "response": _text(stored.response),
    }


def _hex(digest: bytes | None) -> str | None:
    return digest.hex() if digest is not None else None


def _text(body: bytes | None) -> str | None:
    return body.decode("utf-8", "replace") if body is not None else None
