"""Read the queue of a draw, and lock the answers that reviewers read."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import Column, DateTime, Table, Text, Uuid, and_, delete, func, select, text
from sqlalchemy.dialects.postgresql import distinct_on, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.domain.coding import ABSTAIN
from auditor.reviews.opinions import Layer
from auditor.reviews.queue import LOCK_FOR, GivenLabel, QueueItem, QueueKey
from auditor.store.codings import codings
from auditor.store.engine import metadata
from auditor.store.review_draws import ReviewDraw, review_draw_items
from auditor.store.reviews import reviews

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
    found: dict[UUID, list[GivenLabel]] = {}
    for row in (await connection.execute(query)).mappings():
        found.setdefault(row["exchange_id"], []).append(GivenLabel(**{name: row[name] for name in names}))
    return found


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
