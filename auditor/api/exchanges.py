"""Serve ``GET /api/exchanges`` and ``GET /api/exchanges/{id}``: stored requests and responses."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

from aiohttp import web

from auditor.api.context import ENGINE
from auditor.api.operations import get
from auditor.api.requests import ApiError, known_filters, optional_id, optional_limit, page_filters, required_id
from auditor.api.reviews import label_entry
from auditor.documents.base import one_of
from auditor.documents.exchanges import (
    ExchangeBody,
    ExchangesBody,
    ExchangeSummaryEntry,
    JudgeVoteEntry,
    PersonLabelEntry,
    StoredCodingEntry,
    TimingsEntry,
    TokensUsedEntry,
)
from auditor.domain.exchange import Origin
from auditor.store.answers import read_codings
from auditor.store.engine import transaction
from auditor.store.exchanges import FILTERS, MAX_PAGE, StoredExchange, read_exchange, read_page
from auditor.store.reviews import read_reviews

_DEFAULT_PAGE: Final = 100
_FILTERS: Final = {**dict.fromkeys(FILTERS, str), "origin": Annotated[str, one_of(Origin)], **page_filters(MAX_PAGE)}


@get("/api/exchanges", "Stored exchanges, the newest first", filters=_FILTERS)
async def _list(request: web.Request) -> ExchangesBody:
    filters = known_filters(request, _FILTERS)
    limit = optional_limit(filters.get("limit"), default=_DEFAULT_PAGE, most=MAX_PAGE)
    after = optional_id(filters.get("after"), "after")
    equal = {name: filters[name] for name in FILTERS if name in filters}
    if equal.get("origin", Origin.CLIENT) not in list(Origin):
        raise ApiError(400, f"origin must be one of {', '.join(Origin)}.", "invalid_value", "origin")
    async with transaction(request.app[ENGINE]) as connection:
        page = await read_page(connection, limit, after, **equal)
    return ExchangesBody(
        exchanges=[
            ExchangeSummaryEntry(
                id=str(line.id),
                at=line.at.isoformat(),
                origin=line.origin,
                route=line.route,
                deployment=line.deployment,
                status=line.status,
                complete=line.complete,
            )
            for line in page
        ],
        next=str(page[-1].id) if len(page) == limit else None,
    )


@get("/api/exchanges/{id}", "One exchange: facts, content where it was captured, codings with votes, people's labels")
async def _show(request: web.Request) -> ExchangeBody:
    exchange_id = required_id(request)
    async with transaction(request.app[ENGINE]) as connection:
        stored = await read_exchange(connection, exchange_id)
        if stored is None:
            raise ApiError(404, "No stored exchange has this id.", "exchange_not_found", "id")
        codings = (await read_codings(connection, [exchange_id]))[exchange_id]
        labels = await read_reviews(connection, [exchange_id])
    return _body(stored, [_coding_entry(*coding) for coding in codings], [label_entry(label) for label in labels])


OPERATIONS: Final = (_list, _show)


def _coding_entry(coding: Mapping[str, Any], votes: Sequence[Mapping[str, Any]]) -> StoredCodingEntry:
    names = ("coder", "rubric", "sel", "sel_reason", "sel_via", "elab", "elab_reason", "uncoded")
    return StoredCodingEntry(
        **{name: coding[name] for name in names},
        coded_at=coding["coded_at"].isoformat(),
        votes=[
            JudgeVoteEntry(**{name: vote[name] for name in ("judge", "label", "reason", "rationale")}) for vote in votes
        ],
    )


def _body(
    stored: StoredExchange, codings: Sequence[StoredCodingEntry], labels: Sequence[PersonLabelEntry]
) -> ExchangeBody:
    facts = stored.facts
    names = (
        "origin", "endpoint", "route", "deployment", "model", "status", "outcome", "stream", "attempts", "capture",
        "inclusion", "config_hash", "request_id", "key_id", "ref", "tags", "error_type", "finish_reason",
        "request_bytes", "response_bytes", "truncated", "redacted",
    )  # fmt: skip
    tokens = facts["prompt_tokens"], facts["completion_tokens"]
    return ExchangeBody(
        id=str(facts["id"]),
        at=facts["at"].isoformat(),
        complete=facts["outcome"] == "complete",
        **{name: facts[name] for name in names},
        parent=str(facts["parent"]) if facts["parent"] else None,
        usage=None if tokens == (None, None) else TokensUsedEntry(prompt_tokens=tokens[0], completion_tokens=tokens[1]),
        timings=TimingsEntry(**{name: facts[name] for name in ("total_us", "upstream_us", "first_byte_us")}),
        request_sha256=_hex(facts["request_hash"]),
        response_sha256=_hex(facts["response_hash"]),
        request=_text(stored.request),
        response=_text(stored.response),
        codings=codings,
        labels=labels,
    )


def _hex(digest: bytes | None) -> str | None:
    return digest.hex() if digest is not None else None


def _text(body: bytes | None) -> str | None:
    return body.decode("utf-8", "replace") if body is not None else None
