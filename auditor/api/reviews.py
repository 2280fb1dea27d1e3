"""Serve ``/api/reviews``: store a person's label for one layer of an exchange, and return the labels of an exchange."""

from typing import Any, Final
from uuid import UUID

from aiohttp import web
from msgspec import UNSET, UnsetType
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.api.context import CLOCK, ENGINE
from auditor.api.operations import WithStatus, get, post
from auditor.api.requests import ApiError, known_filters, optional_text, read_object
from auditor.api.session import acting_name
from auditor.documents.base import Document, Id, or_unset
from auditor.documents.exchanges import LayerName, PersonLabelEntry, PersonLabelsBody, ViewName
from auditor.domain.keys import KeyRole
from auditor.judges.rubric import RUBRICS
from auditor.reviews.opinions import AnswerView, BadOpinion, Opinion, opinion_of
from auditor.store.engine import transaction
from auditor.store.queue import ESTIMATE, ask_for
from auditor.store.reviews import Review, StoredReview, add_reviews, find_exchanges, find_rubrics, read_reviews


class PersonLabelRequest(Document):
    """A label as a person gives it."""

    exchange: Id
    layer: LayerName
    label: str
    reviewer: str | UnsetType = UNSET
    note: str | UnsetType = UNSET
    rubric: str | UnsetType = UNSET
    view: ViewName | UnsetType = UNSET


@get("/api/reviews", "People's labels of one exchange", filters={"exchange": Id})
async def _of_exchange(request: web.Request) -> PersonLabelsBody:
    exchange = _uuid(known_filters(request, ("exchange",)).get("exchange"))
    async with transaction(request.app[ENGINE]) as connection:
        await _need_exchange(connection, exchange)
        labels = await read_reviews(connection, [exchange])
    return PersonLabelsBody(reviews=[label_entry(label) for label in labels])


@post(
    "/api/reviews",
    "Store a person's label; 200 where it was given before",
    takes=PersonLabelRequest,
    role=KeyRole.REVIEWER,
    statuses=(201, 200),
)
async def _add(request: web.Request) -> WithStatus[PersonLabelEntry]:
    """Store a label: 201, or 200 where the reviewer gave the same label before; then request new estimates."""
    fields = await read_object(request, PersonLabelRequest)
    reviewer = acting_name(request, optional_text(fields, "reviewer"), "reviewer")
    exchange, opinion = _uuid(fields.get("exchange")), _opinion({**fields, "reviewer": reviewer})
    async with transaction(request.app[ENGINE]) as connection:
        await _need_exchange(connection, exchange)
        rubric = await _rubric(connection, exchange, fields.get("rubric"))
        review = Review(exchange_id=exchange, rubric=rubric, opinion=opinion)
        added = await add_reviews(connection, [review], request.app[CLOCK]())
        stored = [label for label in await read_reviews(connection, [exchange]) if label.review == review][-1]
        if added.new:
            await ask_for(connection, ESTIMATE, "estimate:asked")
    return WithStatus(label_entry(stored), 201 if added.new else 200)


def _opinion(fields: dict[str, Any]) -> Opinion:
    try:
        return opinion_of(
            reviewer=fields.get("reviewer"),
            layer=fields.get("layer"),
            label=fields.get("label"),
            note=fields.get("note"),
            view=fields.get("view", AnswerView.SPLIT.value),
        )
    except BadOpinion as bad:
        raise ApiError(400, f"{bad}.", "invalid_value", bad.field) from None


def _uuid(value: object) -> UUID:
    try:
        return UUID(value if isinstance(value, str) else "")
    except ValueError:
        raise ApiError(400, "'exchange' must be the id of an exchange.", "invalid_value", "exchange") from None


async def _need_exchange(connection: AsyncConnection, exchange: UUID) -> None:
    if exchange not in await find_exchanges(connection, [exchange]):
        raise ApiError(404, "No stored exchange has this id.", "exchange_not_found", "exchange")


async def _rubric(connection: AsyncConnection, exchange: UUID, name: object) -> str:
    """Return the rubric of the label: ``name``, or else the one by which judges coded the exchange."""
    if name is not None and (not isinstance(name, str) or name not in RUBRICS):
        raise ApiError(400, f"rubric must be one of {', '.join(RUBRICS)}.", "invalid_value", "rubric")
    rubric = name or (await find_rubrics(connection, [exchange])).get(exchange)
    if not isinstance(rubric, str):
        message = "No judge has coded this exchange, so its rubric is unknown. Name it in the field 'rubric'."
        raise ApiError(400, message, "rubric_unknown", "rubric")
    return rubric


def label_entry(stored: StoredReview) -> PersonLabelEntry:
    """Return a person's label as the API shows it."""
    review, opinion = stored.review, stored.review.opinion
    return PersonLabelEntry(
        id=stored.id,
        exchange=str(review.exchange_id),
        layer=opinion.layer,
        view=opinion.view,
        label=opinion.label,
        reviewer=opinion.reviewer,
        rubric=review.rubric,
        note=or_unset(opinion.note),
        adjudicates=True if opinion.adjudicates else UNSET,
        at=stored.at.isoformat(),
        superseded=stored.superseded,
    )


OPERATIONS: Final = (_of_exchange, _add)
