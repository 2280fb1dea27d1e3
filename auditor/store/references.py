"""Store the references that deployments are compared with, and who accepted them."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date, datetime
from typing import Any

from sqlalchemy import (
    Column,
    Date,
    DateTime,
    ForeignKey,
    Table,
    Text,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB, distinct_on, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.store.codings import coders
from auditor.store.engine import metadata

monitor_references = Table(
    "monitor_references",
    metadata,
    Column("id", Text, primary_key=True),
    Column("coder", Text, ForeignKey(coders.c.id), nullable=False),
    Column("deployment", Text, nullable=False),
    Column("since", Date, nullable=False),
    Column("release", Text),
    Column("accepted_at", DateTime(timezone=True), nullable=False),
    Column("accepted_by", Text),
    Column("note", Text),
    Column("until", Date),
    Column("content", JSONB(none_as_null=True)),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredReference:
    """What a deployment is compared with from one moment on; without ``content`` its days are still being collected."""

    id: str
    coder: str
    deployment: str
    since: date
    accepted_at: datetime
    accepted_by: str | None = None  #: None for the first, which nobody had to accept
    note: str | None = None  #: the reason given by who accepted it
    release: str | None = None
    until: date | None = None
    content: Mapping[str, Any] | None = None


async def references_in_force(
    connection: AsyncConnection, coder: str, at: datetime, *, content: bool = True
) -> dict[str, StoredReference]:
    """Return the reference that each deployment had at a moment: the one accepted last."""
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
    """Read all references without their fitted content, by deployment, the last accepted first."""
    table = monitor_references
    query = (
        select(*(column for column in table.columns if column.name != "content"))
        .where(table.c.coder == coder)
        .order_by(table.c.deployment, table.c.accepted_at.desc(), table.c.id)
    )
    if deployment is not None:
        query = query.where(table.c.deployment == deployment)
    return [StoredReference(**row) for row in (await connection.execute(query)).mappings()]


async def read_accepted(connection: AsyncConnection, since: datetime) -> list[StoredReference]:
    """Read the references that people have accepted since a moment, without their fitted content, the newest first."""
    table = monitor_references
    query = (
        select(*(column for column in table.columns if column.name != "content"))
        .where(table.c.accepted_at >= since, table.c.accepted_by.is_not(None))
        .order_by(table.c.accepted_at.desc(), table.c.id)
    )
    return [StoredReference(**row) for row in (await connection.execute(query)).mappings()]


async def add_reference(connection: AsyncConnection, reference: StoredReference) -> None:
    """Store a reference; an existing one is not changed."""
    await connection.execute(insert(monitor_references).values(asdict(reference)).on_conflict_do_nothing())


async def fill_reference(
    connection: AsyncConnection, reference_id: str, until: date, content: Mapping[str, Any]
) -> None:
    """Store what was fitted to a reference's days."""
    table = monitor_references
    await connection.execute(update(table).where(table.c.id == reference_id).values(until=until, content=dict(content)))
