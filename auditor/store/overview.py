"""Read how much is stored of each deployment: exchanges, planned calls and their answers.

Triggers keep the counts of exchanges and of planned calls with every insertion and removal, so reading them costs as
much as there are days, plans and deployments, however many exchanges there are.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime

from sqlalchemy import BigInteger, Column, Date, DateTime, ForeignKey, Table, Text, exists, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.domain.plan import REPLAY
from auditor.store.codings import codings
from auditor.store.engine import metadata
from auditor.store.exchanges import exchanges, planned_instances
from auditor.store.plans import planned_calls, plans

exchange_counts = Table(
    "exchange_counts",
    metadata,
    Column("day", Date, primary_key=True),
    Column("deployment", Text, primary_key=True),
    Column("origin", Text, primary_key=True),
    Column("stored", BigInteger, nullable=False),
    Column("complete", BigInteger, nullable=False),
    Column("with_content", BigInteger, nullable=False),
    Column("last_at", DateTime(timezone=True), nullable=False),
)


plan_counts = Table(
    "plan_counts",
    metadata,
    Column("plan_id", Text, ForeignKey(plans.c.id), primary_key=True),
    Column("deployment", Text, primary_key=True),
    Column("planned", BigInteger, nullable=False),
    Column("answered", BigInteger, nullable=False),
)


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


async def count_seen(connection: AsyncConnection, since: date) -> Mapping[tuple[str, str], ExchangeCounts]:
    """Count exchanges by deployment and origin, from a day (UTC) on."""
    counts = exchange_counts.c
    sums = {name: func.sum(counts[name]).label(name) for name in ("stored", "complete", "with_content")}
    query = (
        select(counts.deployment, counts.origin, *sums.values(), func.max(counts.last_at).label("last_at"))
        .where(counts.day >= since, counts.stored > 0)
        .group_by(counts.deployment, counts.origin)
    )
    return {
        (row.deployment, row.origin): ExchangeCounts(
            stored=int(row.stored),
            complete=int(row.complete),
            with_content=int(row.with_content),
            last_at=row.last_at,
        )
        for row in await connection.execute(query)
    }


async def count_planned(connection: AsyncConnection) -> Mapping[str, PlanCounts]:
    """Count planned and answered probes by deployment; a replay's calls are none."""
    counts = plan_counts.c
    query = (
        select(counts.deployment, func.sum(counts.planned).label("planned"), func.sum(counts.answered).label("n"))
        .join(plans, plans.c.id == counts.plan_id)
        .where(plans.c.design != REPLAY)
        .group_by(counts.deployment)
    )
    return {
        row.deployment: PlanCounts(planned=int(row.planned), answered=int(row.n))
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


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanProgress:
    """The numbers of calls of a plan to one deployment."""

    plan_id: str
    name: str
    design: str
    created_at: datetime
    deployment: str
    planned: int
    answered: int


async def read_plans(connection: AsyncConnection, plan_id: str | None = None) -> list[PlanProgress]:
    """Read the planned and answered calls of each plan and deployment, the newest plan first."""
    counts = plan_counts.c
    query = (
        select(
            plans.c.id.label("plan_id"), plans.c.name, plans.c.design, plans.c.created_at, counts.deployment,
            counts.planned, counts.answered,
        )
        .join(plan_counts, counts.plan_id == plans.c.id)
        .order_by(plans.c.created_at.desc(), plans.c.id, counts.deployment)
    )  # fmt: skip
    if plan_id is not None:
        query = query.where(plans.c.id == plan_id)
    return [PlanProgress(**row) for row in (await connection.execute(query)).mappings()]


async def has_exchanges(connection: AsyncConnection, origin: str) -> bool:
    """Return whether any exchange of an origin is stored."""
    counts = exchange_counts.c
    rows = await connection.execute(select(counts.day).where(counts.origin == origin, counts.stored > 0).limit(1))
    return rows.first() is not None


async def is_empty(connection: AsyncConnection) -> bool:
    """Return whether the store has neither exchanges nor plans."""
    any_exchange = select(exchange_counts.c.day).where(exchange_counts.c.stored > 0).exists()
    result = await connection.execute(select(any_exchange | select(plans.c.id).exists()))
    return not result.scalar_one()
