"""Serve the answers behind a number: ``/answers`` as a page, ``/api/answers`` as JSON."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from aiohttp import web
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.api.addresses import condition_filters
from auditor.api.context import CLOCK, CONFIG, ENGINE
from auditor.api.operations import get
from auditor.api.pages import render_page
from auditor.api.requests import ApiError, known_filters, optional_id, optional_limit, page_filters
from auditor.coding.coders import open_coders
from auditor.coding.exchanges import stored_text
from auditor.config import Config
from auditor.counting.conditions import TRAFFIC
from auditor.documents.exchanges import AnswerEntry, AnswersBody, JudgeVoteEntry
from auditor.domain.coding import ABSTAIN, ElaborationReason, SelectionReason, Uncoded
from auditor.domain.condition import Task
from auditor.domain.exchange import Origin
from auditor.domain.moments import EXAMPLES, read_moment
from auditor.estimation.snapshots import ALL
from auditor.store.answers import (
    CELLS,
    FILTERS,
    CodedSelection,
    VotedCoding,
    count_answers,
    read_answers,
)
from auditor.store.codings import StoredAnswer, read_again
from auditor.store.engine import transaction

_REASONS: Final = frozenset(
    reason.value for reasons in (SelectionReason, ElaborationReason, Uncoded) for reason in reasons
)
_PAGE: Final = 50
#: Characters of a search.
_LONGEST_QUERY: Final = 500
_MOST: Final = 200
#: Columns of codings, and further filters.
_FILTERS: Final = {
    **dict.fromkeys((*FILTERS, "plan", "condition", "cell", "reason", "from", "to", "as_of", "q"), str),
    **page_filters(_MOST),
}
#: Characters of a response in a list.
_EXCERPT: Final = 280
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
    """List the routes of the pages."""
    return [web.get("/answers", _list_page)]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Query:
    """The filters of an address."""

    filters: Mapping[str, str]  #: as in the address, without ``after`` and ``limit``
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
    query = known_filters(request, _FILTERS)
    filters = {name: value for name, value in query.items() if name not in {"limit", "after"}}
    equal = {name: value for name, value in filters.items() if name in FILTERS}
    if equal.get("task") == TRAFFIC:
        raise ApiError(400, "Client traffic has no task: use origin=client.", "invalid_value", "task")
    cells = tuple(filters["cell"].split(",")) if "cell" in filters else ()
    for cell in cells:
        if cell not in CELLS:
            raise ApiError(400, f"cell must be some of {', '.join(CELLS)}, not {cell!r}.", "invalid_value", "cell")
    if "reason" in filters and filters["reason"] not in _REASONS:
        raise ApiError(400, f"reason must be one of {', '.join(sorted(_REASONS))}.", "invalid_value", "reason")
    now = request.app[CLOCK]()
    return _Query(
        filters=filters,
        selection=CodedSelection(
            equal=equal,
            conditions=_conditions(filters.get("condition")),
            cells=cells,
            reason=filters.get("reason"),
            since=_moment("from", filters.get("from"), now),
            until=_moment("to", filters.get("to"), now),
            as_of=_moment("as_of", filters.get("as_of"), now),
            plan=filters.get("plan"),
            words=_words(filters.get("q")),
        ),
        limit=optional_limit(query.get("limit"), default=_PAGE, most=_MOST),
        after=optional_id(query.get("after"), "after"),
    )


def _moment(name: str, text: str | None, now: datetime) -> datetime | None:
    if text is None:
        return None
    try:
        return read_moment(text, now)
    except ValueError:
        raise ApiError(400, f"{name} must be a time such as {EXAMPLES}.", "invalid_value", name) from None


def _conditions(text: str | None) -> tuple[Mapping[str, str], ...]:
    """Return the filters of each condition of a list; none for all conditions.

    Raises
    ------
    ApiError
        400.
    """
    if text is None or text == ALL:
        return ()
    try:
        return tuple(condition_filters(each) for each in text.split(","))
    except ValueError as bad:
        raise ApiError(400, f"{bad}.", "invalid_value", "condition") from None


def _words(text: str | None) -> str | None:
    if text is not None and len(text) > _LONGEST_QUERY:
        raise ApiError(400, f"q must have at most {_LONGEST_QUERY} characters.", "invalid_value", "q")
    return text


async def _read_page(request: web.Request, query: _Query) -> _Page:
    async with open_coders(request.app[CONFIG](), asking=False) as coders:
        ids = [coder.id for coder in coders]
    async with transaction(request.app[ENGINE]) as connection:
        total = await count_answers(connection, ids, query.selection)
        codings = await read_answers(connection, ids, query.selection, query.limit + 1, query.after, total)
        more, codings = len(codings) > query.limit, codings[: query.limit]
        stored = await stored_by_id(connection, [coding["exchange_id"] for coding, _ in codings])
    answers = [((coding, votes), stored.get(coding["exchange_id"])) for coding, votes in codings]
    return _Page(total=total, answers=answers, next=codings[-1][0]["exchange_id"] if more else None)


async def stored_by_id(connection: AsyncConnection, ids: Sequence[UUID]) -> dict[UUID, StoredAnswer]:
    """Read exchanges with everything that coding needs, by id; unknown ones are left out."""
    return {each.facts["id"]: each for each in await read_again(connection, ids)}


@get("/api/answers", "The answers that a number counts, the newest first", filters=_FILTERS)
async def _list(request: web.Request) -> AnswersBody:
    page = await _read_page(request, _read_query(request))
    return AnswersBody(
        total=page.total,
        answers=[answer_entry(coding, votes, stored) for (coding, votes), stored in page.answers],
        next=None if page.next is None else str(page.next),
    )


OPERATIONS: Final = (_list,)


def answer_entries(codings: Iterable[VotedCoding]) -> list[AnswerEntry]:
    """Return codings of an answer without the answer, as the API shows them."""
    return [answer_entry(coding, votes, None) for coding, votes in codings]


def answer_entry(
    coding: Mapping[str, Any], votes: Sequence[Mapping[str, Any]], stored: StoredAnswer | None
) -> AnswerEntry:
    """Return a coding with its votes, and the answer where it is given, as the API shows it."""
    names = (
        "deployment", "origin", "rubric", "audit", "claim", "task", "perspective", "role", "sentiment", "category",
        "sel", "sel_reason", "sel_via", "elab", "elab_reason", "uncoded", "inclusion", "coder",
    )  # fmt: skip
    return AnswerEntry(
        id=str(coding["exchange_id"]),
        at=None if stored is None else stored.facts["at"].isoformat(),
        statement_id=coding["cluster"],
        statement=statement_in(stored),
        **{name: coding[name] for name in names},
        votes=[JudgeVoteEntry(**{name: vote[name] for name in ("judge", "label", "reason")}) for vote in votes],
        response=None if stored is None else stored_text(stored),
    )


def statement_in(stored: StoredAnswer | None) -> str | None:
    """Return the sentence that was asked about; None for client traffic."""
    statement: str | None = None if stored is None else (stored.statement or {}).get("statement")
    return statement


# -- pages ---------------------------------------------------------------------------------------------------------


async def _list_page(request: web.Request) -> web.Response:
    query = _read_query(request)
    page = await _read_page(request, query)
    following = {**query.filters, "limit": str(query.limit), "after": str(page.next)}
    return render_page(
        request,
        "answers.html.j2",
        total=page.total,
        answers=[_line(coding, votes, stored) for (coding, votes), stored in page.answers],
        shown=query.filters,
        choices=_choices(request.app[CONFIG](), query.filters),
        next="/answers?" + urlencode(following) if page.next is not None else None,
        json="/api/answers?" + urlencode(query.filters),
    )


def _choices(config: Config, filters: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the fields of the form, each with its choices; a value that is none of them is kept."""
    options: Mapping[str, Mapping[str, str]] = {
        "deployment": {deployment.name: deployment.name for deployment in config.deployments},
        "origin": {origin.value: origin.value for origin in (Origin.PROBE, Origin.REPLAY, Origin.CLIENT)},
        "task": {task.value: task.value for task in Task},
        "cell": _CELL_NAMES,
    }
    return [
        {"name": name, "value": filters.get(name, ""), "options": {filters.get(name, ""): filters.get(name), **known}}
        if filters.get(name)
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
        "condition": _condition_text(coding),
        "statement": statement_in(stored) or coding["cluster"],
        "text": None if text is None else text[:_EXCERPT] + ("…" if len(text) > _EXCERPT else ""),
        **labels_of(coding),
        "votes": ", ".join(f"{vote['judge']}: {vote['label']}" for vote in votes),
    }


def _condition_text(coding: Mapping[str, Any]) -> str:
    factors = [coding[name] for name in ("task", "perspective", "role", "sentiment") if coding[name] is not None]
    return " / ".join(factors) or str(coding["audit"] or "")


def labels_of(coding: Mapping[str, Any]) -> dict[str, Any]:
    """Return both labels with their names in words, or why there are none."""
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
