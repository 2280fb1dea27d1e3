"""What is stored of each deployment, in counts: seen, planned, answered, coded, and when last."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.store.coding_tables import tallies
from auditor.store.plan_tables import planned_calls
from auditor.store.tables import exchanges, planned_instances


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """Exchanges of one deployment and origin."""

    stored: int
    complete: int
    with_content: int  #: kept in full, so that they can be read
    last_at: datetime | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """Planned calls of one deployment."""

    planned: int
    answered: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Read:
    """Answers of one deployment and origin that a coder of the configuration has read, or could not read."""

    coded: int
    uncoded: int


async def count_seen(connection: AsyncConnection, since: UUID) -> Mapping[tuple[str, str], Seen]:
    """Count exchanges by deployment and origin, from an id on."""
    query = (
        select(
            exchanges.c.deployment,
            exchanges.c.origin,
            func.count().label("stored"),
            func.count().filter(exchanges.c.outcome == "complete").label("complete"),
            func.count().filter(exchanges.c.capture == "full").label("with_content"),
            func.max(exchanges.c.at).label("last_at"),
        )
        .where(exchanges.c.id >= since)
        .group_by(exchanges.c.deployment, exchanges.c.origin)
    )
    return {
        (row.deployment, row.origin): Seen(
            stored=row.stored, complete=row.complete, with_content=row.with_content, last_at=row.last_at
        )
        for row in await connection.execute(query)
    }


async def count_planned(connection: AsyncConnection) -> Mapping[str, Progress]:
    """Count planned calls, and those that are answered, by deployment."""
    query = (
        select(
            planned_calls.c.deployment, func.count().label("planned"), func.count(planned_instances.c.ref).label("n")
        )
        .outerjoin(planned_instances, planned_instances.c.ref == planned_calls.c.ref)
        .group_by(planned_calls.c.deployment)
    )
    return {row.deployment: Progress(planned=row.planned, answered=row.n) for row in await connection.execute(query)}


async def count_read(
    connection: AsyncConnection, coders: tuple[str, ...], since: datetime
) -> Mapping[tuple[str, str], Read]:
    """Count what these coders have read, by deployment and origin, from an hour on."""
    number = func.coalesce(func.sum(tallies.c.n).filter(tallies.c.uncoded.is_(None)), 0)
    without = func.coalesce(func.sum(tallies.c.n).filter(tallies.c.uncoded.is_not(None)), 0)
    query = (
        select(tallies.c.deployment, tallies.c.origin, number.label("coded"), without.label("uncoded"))
        .where(tallies.c.coder.in_(coders), tallies.c.hour >= since)
        .group_by(tallies.c.deployment, tallies.c.origin)
    )
    return {
        (row.deployment, row.origin): Read(coded=int(row.coded), uncoded=int(row.uncoded))
        for row in await connection.execute(query)
    }
