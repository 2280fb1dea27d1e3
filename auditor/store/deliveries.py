"""What is to be posted of findings: written with them in one transaction, so that none is lost and none is made up."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.store.monitor_tables import webhook_deliveries


@dataclass(frozen=True, kw_only=True, slots=True)
class Delivery:
    """One finding in one state, as bytes to be posted."""

    finding_id: str
    state: str
    body: bytes
    created_at: datetime
    attempts: int = 0


async def add_delivery(connection: AsyncConnection, delivery: Delivery) -> None:
    """Have something posted as soon as may be; a finding is posted once in each state."""
    row = {name: getattr(delivery, name) for name in Delivery.__dataclass_fields__}
    await connection.execute(
        insert(webhook_deliveries).values(**row, next_at=delivery.created_at).on_conflict_do_nothing()
    )


async def take_due(connection: AsyncConnection, now: datetime, longest: timedelta) -> Delivery | None:
    """Take one delivery that is due, for as long as this transaction lasts. After ``longest`` it is given up."""
    table = webhook_deliveries
    query = (
        select(*(table.c[name] for name in Delivery.__dataclass_fields__))
        .where(table.c.delivered_at.is_(None), table.c.next_at <= now, table.c.created_at > now - longest)
        .order_by(table.c.next_at, table.c.finding_id, table.c.state)
        .limit(1)
        .with_for_update(skip_locked=True)
    )
    row = (await connection.execute(query)).mappings().first()
    return None if row is None else Delivery(**row)


async def keep_delivered(connection: AsyncConnection, delivery: Delivery, now: datetime) -> None:
    """Keep that a delivery has arrived."""
    await _change(connection, delivery, delivered_at=now, error=None)


async def keep_failed(connection: AsyncConnection, delivery: Delivery, error: str, next_at: datetime) -> None:
    """Keep why a delivery did not arrive, and when it is tried again."""
    await _change(connection, delivery, error=error, next_at=next_at)


async def _change(connection: AsyncConnection, delivery: Delivery, **values: object) -> None:
    table = webhook_deliveries
    await connection.execute(
        update(table)
        .where(table.c.finding_id == delivery.finding_id, table.c.state == delivery.state)
        .values(attempts=delivery.attempts + 1, **values)
    )
