"""Serve ``GET /api/exchanges`` and ``GET /api/exchanges/{id}``: stored requests and responses."""

from collections.abc import Mapping, Sequence
from typing import Any

from aiohttp import web

from auditor.api.context import ENGINE
from auditor.api.requests import ApiError, known_filters, optional_id, optional_limit, required_id
from auditor.api.reviews import review_json
from auditor.domain.exchange import Origin
from auditor.store.answers import read_codings
from auditor.store.engine import transaction
from auditor.store.exchanges import FILTERS, MAX_PAGE, StoredExchange, read_exchange, read_page
from auditor.store.reviews import read_reviews

_DEFAULT_PAGE = 100
_TIMINGS = ("total_us", "upstream_us", "first_byte_us")


def routes() -> list[web.RouteDef]:
    """List the routes."""
    return [web.get("/api/exchanges", _page), web.get("/api/exchanges/{id}", _one)]


async def _page(request: web.Request) -> web.Response:
    given = known_filters(request, (*FILTERS, "limit", "after"))
    limit = optional_limit(given.get("limit"), usual=_DEFAULT_PAGE, most=MAX_PAGE)
    after = optional_id(given.get("after"), "after")
    equal = {name: given[name] for name in FILTERS if name in given}
    if equal.get("origin", Origin.CLIENT) not in list(Origin):
        raise ApiError(400, f"origin must be one of {', '.join(Origin)}.", "invalid_value", "origin")
    async with transaction(request.app[ENGINE]) as connection:
        page = await read_page(connection, limit, after, **equal)
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
    known_filters(request, ())
    exchange_id = required_id(request)
    async with transaction(request.app[ENGINE]) as connection:
        found = await read_exchange(connection, exchange_id)
        if found is None:
            raise ApiError(404, "No stored exchange has this id.", "exchange_not_found", "id")
        codings = (await read_codings(connection, [exchange_id]))[exchange_id]
        labels = await read_reviews(connection, [exchange_id])
    read = {"codings": [_coding(*coding) for coding in codings], "labels": [review_json(one) for one in labels]}
    return web.json_response({**_shown(found), **read})


def _coding(coding: Mapping[str, Any], votes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    names = ("coder", "rubric", "sel", "sel_reason", "sel_via", "elab", "elab_reason", "uncoded")
    return {
        **{name: coding[name] for name in names},
        "coded_at": coding["coded_at"].isoformat(),
        "votes": [{name: vote[name] for name in ("judge", "label", "reason", "rationale")} for vote in votes],
    }


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
