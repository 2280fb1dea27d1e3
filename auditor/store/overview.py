"""Count what is stored of each deployment: exchanges, planned calls, answers and codings."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import (
    exists,
    func,
    select,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.store.codings import codings
from auditor.store.exchanges import exchanges, planned_instances
from auditor.store.plans import planned_calls, plans
from auditor.store.tallies import tallies


@dataclass(frozen=True, kw_only=True, slots=True)
class ExchangeCounts:
    """Numbers of exchanges of one deployment and origin."""

    stored: int
    complete: int
    with_content: int  #: captured in full, so that they can be coded
    last_at: datetime | None


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanCounts:
    """Numbers of planned calls of one deployment."""

    planned: int
    answered: int


@dataclass(frozen=True, kw_only=True, slots=True)
class CodingCounts:
    """Numbers of answers of one deployment and origin that were coded, or could not be."""

    coded: int
    uncoded: int


async def count_seen(connection: AsyncConnection, since: UUID) -> Mapping[tuple[str, str], ExchangeCounts]:
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
        (row.deployment, row.origin): ExchangeCounts(
            stored=row.stored, complete=row.complete, with_content=row.with_content, last_at=row.last_at
        )
        for row in await connection.execute(query)
    }


async def count_planned(connection: AsyncConnection) -> Mapping[str, PlanCounts]:
    """Count planned and answered calls by deployment."""
    query = (
        select(
            planned_calls.c.deployment, func.count().label("planned"), func.count(planned_instances.c.ref).label("n")
        )
        .outerjoin(planned_instances, planned_instances.c.ref == planned_calls.c.ref)
        .group_by(planned_calls.c.deployment)
    )
    return {row.deployment: PlanCounts(planned=row.planned, answered=row.n) for row in await connection.execute(query)}


async def count_read(
    connection: AsyncConnection, coders: tuple[str, ...], since: datetime
) -> Mapping[tuple[str, str], CodingCounts]:
    """Count the codings of these coders by deployment and origin, from an hour on."""
    number = func.coalesce(func.sum(tallies.c.n).filter(tallies.c.uncoded.is_(None)), 0)
    without = func.coalesce(func.sum(tallies.c.n).filter(tallies.c.uncoded.is_not(None)), 0)
    query = (
        select(tallies.c.deployment, tallies.c.origin, number.label("coded"), without.label("uncoded"))
        .where(tallies.c.coder.in_(coders), tallies.c.hour >= since)
        .group_by(tallies.c.deployment, tallies.c.origin)
    )
    return {
        (row.deployment, row.origin): CodingCounts(coded=int(row.coded), uncoded=int(row.uncoded))
        for row in await connection.execute(query)
    }


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanStatus:
    """The progress of a plan at one deployment; ``failed`` counts calls that were sent and have no complete answer."""

    plan_id: str
    name: str
    design: str
    created_at: datetime
    deployment: str
    planned: int
    answered: int
    failed: int
    coded: int

    @property
    def remaining(self) -> int:
        """The number of calls without an answer."""
        return self.planned - self.answered


async def read_status(connection: AsyncConnection, plan_id: str | None = None) -> list[PlanStatus]:
    """Read the progress of each plan and deployment, the newest plan first."""
    tried = exists().where(exchanges.c.ref == planned_calls.c.ref)
    unanswered = planned_instances.c.ref.is_(None)
    read = exists().where(codings.c.exchange_id == planned_instances.c.exchange_id)
    query = (
        select(
            plans.c.id.label("plan_id"), plans.c.name, plans.c.design, plans.c.created_at, planned_calls.c.deployment,
            func.count().label("planned"),
            func.count(planned_instances.c.ref).label("answered"),
            func.count().filter(unanswered, tried).label("failed"),
            func.count().filter(read).label("coded"),
        )
        .join(planned_calls, planned_calls.c.plan_id == plans.c.id)
        .outerjoin(planned_instances, planned_instances.c.ref == planned_calls.c.ref)
        .group_by(plans.c.id, planned_calls.c.deployment)
        .order_by(plans.c.created_at.desc(), plans.c.id, planned_calls.c.deployment)
    )  # fmt: skip
    if plan_id is not None:
        query = query.where(plans.c.id == plan_id)
    return [PlanStatus(**row) for row in (await connection.execute(query)).mappings()]
