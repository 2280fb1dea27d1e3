"""Store labels by people, and read the queue of a draw with the locks on what reviewers read.

Labels are never changed: of a reviewer's labels for a layer and view the newest counts.
"""

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
    and_,
    delete,
    func,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import distinct_on, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.domain.coding import ABSTAIN
from auditor.reviews.opinions import AnswerView, Layer, Opinion
from auditor.reviews.queue import LOCK_FOR, GivenLabel, QueueItem, QueueKey
from auditor.store.codings import coders, codings
from auditor.store.engine import metadata
from auditor.store.exchanges import exchanges
from auditor.store.review_draws import ReviewDraw, review_draw_items

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


review_locks = Table(
    "review_locks",
    metadata,
    Column("draw_id", Text, primary_key=True),
    Column("exchange_id", Uuid, primary_key=True),
    Column("layer", Text, primary_key=True),
    Column("view", Text, primary_key=True),
    Column("reviewer", Text, nullable=False),
    Column("until", DateTime(timezone=True), nullable=False),
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


async def add_reviews(connection: AsyncConnection, submitted: Sequence[Review], now: datetime) -> Added:
    """Store labels in their order; one that repeats its reviewer's newest label of the layer is skipped."""
    await connection.execute(_LOCK)
    newest = {
        _place(each.review): each.review
        for each in await read_reviews(connection, sorted({review.exchange_id for review in submitted}))
    }
    rows: list[dict[str, Any]] = []
    superseding = 0
    for review in submitted:
        before = newest.get(_place(review))
        if review == before:
            continue
        superseding += before is not None
        newest[_place(review)] = review
        rows.append(_row(review, now))
    if rows:
        await connection.execute(insert(reviews), rows)
    return Added(new=len(rows), superseding=superseding, unchanged=len(submitted) - len(rows))


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


async def hold_queue(connection: AsyncConnection, key: QueueKey) -> None:
    """Let no other transaction choose or label answers of this draw until this one ends."""
    held = text("SELECT pg_advisory_xact_lock(hashtext('biasmeter review'), hashtext(:draw))")
    await connection.execute(held, {"draw": key.draw})


async def read_queue(connection: AsyncConnection, draw: ReviewDraw, key: QueueKey) -> list[QueueItem]:
    """Read the answers of a queue in the order of the draw, with their labels by the draw's rubric and their locks.

    A queue of selections has the answers in which the rules read one.
    """
    items, locks = review_draw_items, review_locks
    of_item = and_(
        locks.c.draw_id == key.draw,
        locks.c.exchange_id == items.c.exchange_id,
        locks.c.layer == key.layer.value,
        locks.c.view == key.view.value,
    )
    query = (
        select(items.c.exchange_id, locks.c.reviewer, locks.c.until)
        .outerjoin(locks, of_item)
        .where(items.c.draw_id == key.draw)
        .order_by(items.c.position)
    )
    if key.layer is Layer.SEL:
        same = and_(codings.c.exchange_id == items.c.exchange_id, codings.c.coder == draw.coder)
        query = query.join(codings, same).where(codings.c.sel != ABSTAIN)
    labels = await _labels(connection, draw, key)
    return [
        QueueItem(
            exchange_id=row.exchange_id,
            labels=tuple(labels.get(row.exchange_id, ())),
            locked_by=row.reviewer,
            locked_until=row.until,
        )
        for row in await connection.execute(query)
    ]


async def _labels(connection: AsyncConnection, draw: ReviewDraw, key: QueueKey) -> dict[UUID, list[GivenLabel]]:
    names = ("id", "reviewer", "label", "note", "adjudicates")
    drawn = select(review_draw_items.c.exchange_id).where(review_draw_items.c.draw_id == key.draw)
    query = (
        select(reviews.c.exchange_id, *(reviews.c[name] for name in names))
        .ext(distinct_on(reviews.c.exchange_id, reviews.c.reviewer))
        .where(
            reviews.c.exchange_id.in_(drawn),
            reviews.c.layer == key.layer.value,
            reviews.c.view == key.view.value,
            reviews.c.rubric == draw.rubric,
        )
        .order_by(reviews.c.exchange_id, reviews.c.reviewer, reviews.c.id.desc())
    )
    labels: dict[UUID, list[GivenLabel]] = {}
    for row in (await connection.execute(query)).mappings():
        labels.setdefault(row["exchange_id"], []).append(GivenLabel(**{name: row[name] for name in names}))
    return labels


async def lock_item(
    connection: AsyncConnection, key: QueueKey, exchange_id: UUID, reviewer: str, now: datetime
) -> None:
    """Lock an answer for a reviewer, who gives up any other of the queue. The caller holds the queue."""
    await release_items(connection, key, reviewer)
    row = {
        "draw_id": key.draw, "exchange_id": exchange_id, "layer": key.layer.value, "view": key.view.value,
        "reviewer": reviewer, "until": now + LOCK_FOR,
    }  # fmt: skip
    new = insert(review_locks).values(row)
    held = {"reviewer": new.excluded.reviewer, "until": new.excluded.until}
    await connection.execute(new.on_conflict_do_update(index_elements=review_locks.primary_key.columns, set_=held))


async def release_items(connection: AsyncConnection, key: QueueKey, reviewer: str) -> None:
    """Unlock what a reviewer has locked in a queue."""
    locks = review_locks
    await connection.execute(
        delete(locks).where(
            locks.c.draw_id == key.draw,
            locks.c.layer == key.layer.value,
            locks.c.view == key.view.value,
            locks.c.reviewer == reviewer,
        )
    )


async def count_labels(connection: AsyncConnection, draw_ids: list[str]) -> dict[tuple[str, str, str], int]:
    """Count the answers with a label, by draw, layer and view."""
    items = review_draw_items
    query = (
        select(items.c.draw_id, reviews.c.layer, reviews.c.view, func.count(reviews.c.exchange_id.distinct()))
        .join(reviews, reviews.c.exchange_id == items.c.exchange_id)
        .where(items.c.draw_id == func.any(draw_ids))
        .group_by(items.c.draw_id, reviews.c.layer, reviews.c.view)
    )
    return {(draw, layer, view): n for draw, layer, view, n in await connection.execute(query)}
