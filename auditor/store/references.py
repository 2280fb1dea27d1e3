"""References in the store: from which day on a deployment is held against what, and who accepted that."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date, datetime
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.dialects.postgresql import distinct_on, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.store.monitor_tables import monitor_references


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredReference:
    """What a deployment is held against from one moment on; without ``content`` its days are still gathered."""

    id: str
    coder: str
    deployment: str
    since: date
    accepted_at: datetime
    accepted_by: str | None = None  #: nobody accepted the first
    note: str | None = None  #: why, as who accepted it says
    release: str | None = None
    until: date | None = None
    content: Mapping[str, Any] | None = None


async def references_in_force(
    connection: AsyncConnection, coder: str, at: datetime, *, content: bool = True
) -> dict[str, StoredReference]:
    """Give the reference that each deployment had at a moment: the one that was accepted last."""
    table = monitor_references
    columns = [column for column in table.columns if content or column.name != "content"]
    query = (
        select(*columns)
        .where(table.c.coder == coder, table.c.accepted_at <= at)
        .ext(distinct_on(table.c.deployment))
        .order_by(table.c.deployment, table.c.accepted_at.desc(), table.c.id)
    )
    return {row["deployment"]: StoredReference(**row) for row in (await connection.execute(query)).mappings()}


async def read_references(
    connection: AsyncConnection, coder: str, deployment: str | None = None
) -> list[StoredReference]:
    """Read all references there have been, without what was fitted to them, by deployment, the last accepted first."""
    table = monitor_references
    query = (
        select(*(column for column in table.columns if column.name != "content"))
        .where(table.c.coder == coder)
        .order_by(table.c.deployment, table.c.accepted_at.desc(), table.c.id)
    )
    if deployment is not None:
        query = query.where(table.c.deployment == deployment)
    return [StoredReference(**row) for row in (await connection.execute(query)).mappings()]


async def add_reference(connection: AsyncConnection, reference: StoredReference) -> None:
    """Keep a reference; one of the same id stays as it is."""
    await connection.execute(insert(monitor_references).values(asdict(reference)).on_conflict_do_nothing())


async def fill_reference(
    connection: AsyncConnection, reference_id: str, until: date, content: Mapping[str, Any]
) -> None:
    """Keep what was fitted to a reference's days."""
    table = monitor_references
    await connection.execute(update(table).where(table.c.id == reference_id).values(until=until, content=dict(content)))
