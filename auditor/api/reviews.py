"""Serve ``/api/reviews``: store a person's label for one layer of an exchange, and return the labels of an exchange."""

from typing import Any, Final
from uuid import UUID

from aiohttp import web
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.api.context import CLOCK, ENGINE
from auditor.api.requests import ApiError, known_filters, optional_text, read_object
from auditor.api.session import acting_name
from auditor.judges.rubric import RUBRICS
from auditor.reviews.opinions import AnswerView, BadOpinion, Opinion, opinion_of
from auditor.store.engine import transaction
from auditor.store.queue import ESTIMATE, ask_for
from auditor.store.reviews import Review, StoredReview, add_reviews, find_exchanges, find_rubrics, read_reviews

_MEMBERS: Final = frozenset({"exchange", "layer", "label", "reviewer", "note", "rubric", "view"})


def routes() -> list[web.RouteDef]:
    """List the routes."""
    return [web.get("/api/reviews", _of_exchange), web.post("/api/reviews", _add)]


async def _of_exchange(request: web.Request) -> web.Response:
    exchange = _uuid(known_filters(request, ("exchange",)).get("exchange"))
    async with transaction(request.app[ENGINE]) as connection:
        await _need_exchange(connection, exchange)
        found = await read_reviews(connection, [exchange])
    return web.json_response({"reviews": [review_json(one) for one in found]})


async def _add(request: web.Request) -> web.Response:
    """Store a label: 201, or 200 where the reviewer gave the same label before; then request new estimates."""
    given = await read_object(request, _MEMBERS)
    reviewer = acting_name(request, optional_text(given, "reviewer"), "reviewer")
    exchange, opinion = _uuid(given.get("exchange")), _opinion({**given, "reviewer": reviewer})
    async with transaction(request.app[ENGINE]) as connection:
        await _need_exchange(connection, exchange)
        rubric = await _rubric(connection, exchange, given.get("rubric"))
        review = Review(exchange_id=exchange, rubric=rubric, opinion=opinion)
        added = await add_reviews(connection, [review], request.app[CLOCK]())
        stored = [one for one in await read_reviews(connection, [exchange]) if one.review == review][-1]
        if added.new:
            await ask_for(connection, ESTIMATE, "estimate:asked")
    return web.json_response(review_json(stored), status=201 if added.new else 200)


def _opinion(given: dict[str, Any]) -> Opinion:
    try:
        return opinion_of(
            reviewer=given.get("reviewer"),
            layer=given.get("layer"),
            label=given.get("label"),
            note=given.get("note"),
            view=given.get("view", AnswerView.SPLIT.value),
        )
    except BadOpinion as bad:
        raise ApiError(400, f"{bad}.", "invalid_value", bad.field) from None


def _uuid(given: object) -> UUID:
    try:
        return UUID(given if isinstance(given, str) else "")
    except ValueError:
        raise ApiError(400, "'exchange' must be the id of an exchange.", "invalid_value", "exchange") from None


async def _need_exchange(connection: AsyncConnection, exchange: UUID) -> None:
    if exchange not in await find_exchanges(connection, [exchange]):
        raise ApiError(404, "No stored exchange has this id.", "exchange_not_found", "exchange")


async def _rubric(connection: AsyncConnection, exchange: UUID, given: object) -> str:
    """Return the rubric of the label: the given one, or else the one by which judges coded the exchange."""
    if given is not None and (not isinstance(given, str) or given not in RUBRICS):
        raise ApiError(400, f"rubric must be one of {', '.join(RUBRICS)}.", "invalid_value", "rubric")
    rubric = given or (await find_rubrics(connection, [exchange])).get(exchange)
    if not isinstance(rubric, str):
        message = "No judge has coded this exchange, so its rubric is unknown. Name it in the field 'rubric'."
        raise ApiError(400, message, "rubric_unknown", "rubric")
    return rubric


def review_json(stored: StoredReview) -> dict[str, Any]:
    """Return a person's label as JSON."""
    review, opinion = stored.review, stored.review.opinion
    return {
        "id": stored.id,
        "exchange": str(review.exchange_id),
        "layer": opinion.layer.value,
        "view": opinion.view.value,
        "label": opinion.label,
        "reviewer": opinion.reviewer,
        "rubric": review.rubric,
        **({"note": opinion.note} if opinion.note is not None else {}),
        **({"adjudicates": True} if opinion.adjudicates else {}),
        "at": stored.at.isoformat(),
        "superseded": stored.superseded,
    }
