"""Serve the answers behind a number: ``/answers`` and ``/answers/{id}`` as pages, ``/api/answers`` as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from aiohttp import web
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.api.context import CLOCK, CONFIG, ENGINE
from auditor.api.pages import render_page
from auditor.api.requests import ApiError, optional_id, optional_limit, required_id
from auditor.coding.coders import open_coders
from auditor.coding.exchanges import ExchangeCoder, stored_text
from auditor.config import Config
from auditor.counting.conditions import TRAFFIC
from auditor.domain.coding import ABSTAIN, ElaborationReason, SelectionReason, Uncoded
from auditor.domain.condition import Task
from auditor.domain.exchange import Origin
from auditor.domain.moments import EXAMPLES, read_moment
from auditor.store.answers import (
    CELLS,
    FILTERS,
    CodedSelection,
    VotedCoding,
    count_answers,
    read_answers,
    read_codings,
)
from auditor.store.codings import StoredAnswer, read_again
from auditor.store.engine import transaction
from auditor.store.exchanges import read_asked_again

#: Filters besides the columns of codings.
_FURTHER: Final = ("cell", "reason", "from", "to", "limit", "after")
_REASONS: Final = frozenset(
    reason.value for reasons in (SelectionReason, ElaborationReason, Uncoded) for reason in reasons
)
_PAGE: Final = 50
_MOST: Final = 200
#: Characters of a response in a list, and on its own page.
_EXCERPT: Final = 280
_WHOLE: Final = 100_000
_CELL_NAMES: Final = {
    "n11": "both layers endorse",
    "n10": "the selection alone endorses",
    "n01": "the elaboration alone endorses",
    "n00": "neither layer endorses",
    "sel_E": "the selection endorses",
    "elab_E": "the elaboration endorses",
    "union": "either layer endorses",
    "uncoded": "not coded on both layers",
}
_LABEL_NAMES: Final = {
    "E": "endorses", "QE": "endorses with a qualification", "N": "neutral", "D": "rejects", "R": "refuses",
    ABSTAIN: "no label",
}  # fmt: skip


def routes() -> list[web.RouteDef]:
    """List the routes."""
    return [
        web.get("/api/answers", _list_json),
        web.get("/answers", _list_page),
        web.get("/answers/{id}", _answer_page),
    ]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Query:
    """The filters of an address."""

    given: Mapping[str, str]  #: as in the address, without ``after`` and ``limit``
    selection: CodedSelection
    limit: int
    after: UUID | None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Page:
    """One page of a list."""

    total: int
    answers: Sequence[tuple[VotedCoding, StoredAnswer | None]] = field(default_factory=list)
    next: UUID | None = None


def _read_query(request: web.Request) -> _Query:
    """Read the filters.

    Raises
    ------
    ApiError
        400: a filter is not known, stands twice, or has a value that it cannot have.
    """
    query = request.query
    known = (*FILTERS, *_FURTHER)
    for name in query:
        if name not in known:
            raise ApiError(400, f"There is no filter {name!r}. Known: {', '.join(known)}.", "unknown_filter", name)
        if len(query.getall(name)) > 1:
            raise ApiError(400, f"The filter {name} stands twice.", "invalid_value", name)
    given = {name: value for name, value in query.items() if value and name not in {"limit", "after"}}
    equal = {name: value for name, value in given.items() if name in FILTERS}
    if equal.get("task") == TRAFFIC:
        raise ApiError(400, "Client traffic has no task: use origin=client.", "invalid_value", "task")
    cells = tuple(given["cell"].split(",")) if "cell" in given else ()
    for cell in cells:
        if cell not in CELLS:
            raise ApiError(400, f"cell must be some of {', '.join(CELLS)}, not {cell!r}.", "invalid_value", "cell")
    if "reason" in given and given["reason"] not in _REASONS:
        raise ApiError(400, f"reason must be one of {', '.join(sorted(_REASONS))}.", "invalid_value", "reason")
    now = request.app[CLOCK]()
    return _Query(
        given=given,
        selection=CodedSelection(
            equal=equal,
            cells=cells,
            reason=given.get("reason"),
            since=_moment("from", given.get("from"), now),
            until=_moment("to", given.get("to"), now),
        ),
        limit=optional_limit(query.get("limit"), usual=_PAGE, most=_MOST),
        after=optional_id(query.get("after"), "after"),
    )


def _moment(name: str, given: str | None, now: datetime) -> datetime | None:
    if given is None:
        return None
    try:
        return read_moment(given, now)
    except ValueError:
        raise ApiError(400, f"{name} must be a time such as {EXAMPLES}.", "invalid_value", name) from None


async def _read_page(request: web.Request, query: _Query) -> _Page:
    async with open_coders(request.app[CONFIG](), asking=False) as coders:
        ids = [coder.id for coder in coders]
    async with transaction(request.app[ENGINE]) as connection:
        total = await count_answers(connection, ids, query.selection)
        found = await read_answers(connection, ids, query.selection, query.limit + 1, query.after)
        more, found = len(found) > query.limit, found[: query.limit]
        stored = await _stored(connection, [coding["exchange_id"] for coding, _ in found])
    answers = [((coding, votes), stored.get(coding["exchange_id"])) for coding, votes in found]
    return _Page(total=total, answers=answers, next=found[-1][0]["exchange_id"] if more else None)


async def _stored(connection: AsyncConnection, ids: Sequence[UUID]) -> dict[UUID, StoredAnswer]:
    return {each.facts["id"]: each for each in await read_again(connection, ids)}


async def _list_json(request: web.Request) -> web.Response:
    page = await _read_page(request, _read_query(request))
    answers = [_record(coding, votes, stored) for (coding, votes), stored in page.answers]
    return web.json_response(
        {"total": page.total, "answers": answers, "next": None if page.next is None else str(page.next)}
    )


def _record(
    coding: Mapping[str, Any], votes: Sequence[Mapping[str, Any]], stored: StoredAnswer | None
) -> dict[str, Any]:
    names = (
        "deployment", "origin", "rubric", "audit", "claim", "task", "perspective", "role", "sentiment", "category",
        "sel", "sel_reason", "sel_via", "elab", "elab_reason", "uncoded", "inclusion", "coder",
    )  # fmt: skip
    return {
        "id": str(coding["exchange_id"]),
        "at": None if stored is None else stored.facts["at"].isoformat(),
        "statement_id": coding["cluster"],
        "statement": _statement(stored),
        **{name: coding[name] for name in names},
        "votes": [{name: vote[name] for name in ("judge", "label", "reason")} for vote in votes],
        "response": None if stored is None else stored_text(stored),
    }


def _statement(stored: StoredAnswer | None) -> str | None:
    found: str | None = None if stored is None else (stored.statement or {}).get("statement")
    return found


# -- pages ---------------------------------------------------------------------------------------------------------


async def _list_page(request: web.Request) -> web.Response:
    query = _read_query(request)
    page = await _read_page(request, query)
    following = {**query.given, "limit": str(query.limit), "after": str(page.next)}
    return render_page(
        "answers.html.j2",
        total=page.total,
        answers=[_line(coding, votes, stored) for (coding, votes), stored in page.answers],
        shown=query.given,
        choices=_choices(request.app[CONFIG](), query.given),
        next="/answers?" + urlencode(following) if page.next is not None else None,
        json="/api/answers?" + urlencode(query.given),
    )


def _choices(config: Config, given: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the fields of the form, each with its choices; a value that is none of them is kept."""
    options: Mapping[str, Mapping[str, str]] = {
        "deployment": {one.name: one.name for one in config.deployments},
        "origin": {one.value: one.value for one in (Origin.PROBE, Origin.REPLAY, Origin.CLIENT)},
        "task": {one.value: one.value for one in Task},
        "cell": _CELL_NAMES,
    }
    return [
        {"name": name, "value": given.get(name, ""), "options": {given.get(name, ""): given.get(name), **known}}
        if given.get(name)
        else {"name": name, "value": "", "options": known}
        for name, known in options.items()
    ]


def _line(coding: Mapping[str, Any], votes: Sequence[Mapping[str, Any]], stored: StoredAnswer | None) -> dict[str, Any]:
    text = None if stored is None else stored_text(stored)
    return {
        "id": str(coding["exchange_id"]),
        "at": "" if stored is None else stored.facts["at"].strftime("%Y-%m-%d %H:%M"),
        "deployment": coding["deployment"],
        "origin": coding["origin"],
        "asked": _asked(coding),
        "statement": _statement(stored) or coding["cluster"],
        "text": None if text is None else text[:_EXCERPT] + ("…" if len(text) > _EXCERPT else ""),
        **_labels(coding),
        "votes": ", ".join(f"{vote['judge']}: {vote['label']}" for vote in votes),
    }


def _asked(coding: Mapping[str, Any]) -> str:
    factors = [coding[name] for name in ("task", "perspective", "role", "sentiment") if coding[name] is not None]
    return " / ".join(factors) or str(coding["audit"] or "")


def _labels(coding: Mapping[str, Any]) -> dict[str, Any]:
    if coding["uncoded"] is not None:
        return {"sel": None, "elab": None, "why": coding["uncoded"]}
    return {
        layer: {
            "label": coding[layer],
            "name": _LABEL_NAMES[coding[layer]],
            "reason": coding[f"{layer}_reason"],
        }
        for layer in ("sel", "elab")
    } | {"why": None}


async def _answer_page(request: web.Request) -> web.Response:
    exchange_id = required_id(request)
    async with transaction(request.app[ENGINE]) as connection:
        stored = (await _stored(connection, [exchange_id])).get(exchange_id)
        if stored is None:
            raise ApiError(404, "No stored exchange has this id.", "exchange_not_found", "id")
        codings = await read_codings(connection, exchange_id)
        again = await read_asked_again(connection, exchange_id, stored.facts["parent"])
    async with open_coders(request.app[CONFIG](), asking=False) as coders:
        readers = {coder.id: ExchangeCoder(coder) for coder in coders}
        codings_shown = [_coding(coding, votes, stored, readers.get(coding["coder"])) for coding, votes in codings]
    text = stored_text(stored)
    facts = stored.facts
    return render_page(
        "answer.html.j2",
        id=str(exchange_id),
        statement=_statement(stored),
        text=None if text is None else text[:_WHOLE],
        cut=text is not None and len(text) > _WHOLE,
        prompt=_prompt(stored),
        codings=codings_shown,
        again=[
            {"id": str(row.id), "origin": row.origin, "deployment": row.deployment, "at": f"{row.at:%Y-%m-%d %H:%M}"}
            for row in again
        ],
        facts={name: value for name, value in _facts(stored).items() if value not in (None, "")},
        at=facts["at"].strftime("%Y-%m-%d %H:%M:%S"),
    )


def _prompt(stored: StoredAnswer) -> str | None:
    if stored.request is None:
        return None
    return stored.request[:_WHOLE].decode("utf-8", "replace")


def _facts(stored: StoredAnswer) -> dict[str, Any]:
    facts, asked = stored.facts, stored.asked or {}
    return {
        "deployment": facts["deployment"],
        "origin": facts["origin"],
        "model": facts["model"],
        "route": facts["route"],
        "outcome": f"{facts['outcome']} ({facts['status']})",
        "condition": " / ".join(
            str(asked[name]) for name in ("task", "perspective", "role", "sentiment") if asked.get(name)
        ),
        "template": asked.get("template_id"),
        "draw": asked.get("draw"),
        "planned call": facts["ref"],
        "captured with probability": f"{facts['inclusion']:g}",
        "prompt tokens": facts["prompt_tokens"],
        "completion tokens": facts["completion_tokens"],
        "total time": f"{facts['total_us'] / 1000:,.0f} ms",
        "configuration": facts["config_hash"],
        "request id": facts["request_id"],
    }


def _coding(
    coding: Mapping[str, Any], votes: Sequence[Mapping[str, Any]], stored: StoredAnswer, reader: ExchangeCoder | None
) -> dict[str, Any]:
    passage = None if reader is None else reader.passage(stored)
    return {
        **_labels(coding),
        "coder": coding["coder"],
        "rubric": coding["rubric"],
        "current": reader is not None,
        "at": coding["coded_at"].strftime("%Y-%m-%d %H:%M:%S"),
        "via": coding["sel_via"],
        "passage": None if passage is None else passage.text[:_WHOLE],
        "votes": votes,
    }
