"""Store labels by people. They are never changed: of a reviewer's labels for a layer and view the newest counts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Identity,
    Table,
    Text,
    Uuid,
    func,
    insert,
    select,
    text,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.reviews.opinions import AnswerView, Layer, Opinion
from auditor.store.codings import coders, codings
from auditor.store.engine import metadata
from auditor.store.exchanges import exchanges

reviews = Table(
    "reviews",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("exchange_id", Uuid, nullable=False),
    Column("layer", Text, nullable=False),
    Column("view", Text, nullable=False),
    Column("reviewer", Text, nullable=False),
    Column("rubric", Text, nullable=False),
    Column("label", Text, nullable=False),
    Column("note", Text),
    Column("at", DateTime(timezone=True), nullable=False),
    Column("adjudicates", Boolean, nullable=False),
)


_LOCK: Final = text("SELECT pg_advisory_xact_lock(hashtext('biasmeter reviews'))")


@dataclass(frozen=True, kw_only=True, slots=True)
class Review:
    """One label of one exchange, by one rubric."""

    exchange_id: UUID
    rubric: str
    opinion: Opinion


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredReview:
    """A stored label; ``superseded`` if the same reviewer has labelled the layer in this view again since."""

    id: int
    at: datetime
    review: Review
    superseded: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Added:
    """The result of storing labels."""

    new: int
    superseding: int  #: new ones that replace an earlier label of the same reviewer
    unchanged: int


_Place = tuple[UUID, Layer, AnswerView, str]


async def add_reviews(connection: AsyncConnection, given: Sequence[Review], now: datetime) -> Added:
    """Store labels in their order; one that repeats its reviewer's newest label of the layer is skipped."""
    await connection.execute(_LOCK)
    newest = {
        _place(each.review): each.review
        for each in await read_reviews(connection, sorted({review.exchange_id for review in given}))
    }
    rows: list[dict[str, Any]] = []
    superseding = 0
    for review in given:
        before = newest.get(_place(review))
        if review == before:
            continue
        superseding += before is not None
        newest[_place(review)] = review
        rows.append(_row(review, now))
    if rows:
        await connection.execute(insert(reviews), rows)
    return Added(new=len(rows), superseding=superseding, unchanged=len(given) - len(rows))


def _place(review: Review) -> _Place:
    return (review.exchange_id, review.opinion.layer, review.opinion.view, review.opinion.reviewer)


def _row(review: Review, now: datetime) -> dict[str, Any]:
    opinion = review.opinion
    return {
        "exchange_id": review.exchange_id,
        "layer": opinion.layer.value,
        "view": opinion.view.value,
        "reviewer": opinion.reviewer,
        "rubric": review.rubric,
        "label": opinion.label,
        "note": opinion.note,
        "at": now,
        "adjudicates": opinion.adjudicates,
    }


async def read_reviews(connection: AsyncConnection, ids: Sequence[UUID]) -> list[StoredReview]:
    """Read all labels of some exchanges, the oldest first."""
    query = select(reviews).where(reviews.c.exchange_id == func.any(list(ids))).order_by(reviews.c.id)
    rows = list((await connection.execute(query)).mappings())
    newest = {_row_place(row): row["id"] for row in rows}
    return [
        StoredReview(
            id=row["id"],
            at=row["at"],
            review=_review(row),
            superseded=newest[_row_place(row)] != row["id"],
        )
        for row in rows
    ]


def _row_place(row: Mapping[Any, Any]) -> tuple[object, ...]:
    return (row["exchange_id"], row["layer"], row["view"], row["reviewer"])


def _review(row: Mapping[Any, Any]) -> Review:
    opinion = Opinion(
        reviewer=row["reviewer"],
        layer=Layer(row["layer"]),
        label=row["label"],
        note=row["note"],
        view=AnswerView(row["view"]),
        adjudicates=row["adjudicates"],
    )
    return Review(exchange_id=row["exchange_id"], rubric=row["rubric"], opinion=opinion)


async def find_exchanges(connection: AsyncConnection, ids: Iterable[UUID]) -> set[UUID]:
    """Return which of these exchanges exist."""
    query = select(exchanges.c.id).where(exchanges.c.id == func.any(list(ids)))
    return set((await connection.execute(query)).scalars())


async def find_rubrics(connection: AsyncConnection, ids: Iterable[UUID]) -> dict[UUID, str]:
    """Return the version of the rubric by which judges last coded exchanges; those without a judge are absent."""
    version = coders.c.description["panel"]["rubric"].astext
    query = (
        select(codings.c.exchange_id, version.label("version"))
        .join(coders, coders.c.id == codings.c.coder)
        .where(codings.c.exchange_id == func.any(list(ids)), version.is_not(None))
        .order_by(codings.c.coded_at)
    )
    return {row.exchange_id: row.version for row in await connection.execute(query)}
