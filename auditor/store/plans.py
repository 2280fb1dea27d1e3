"""Plans in the store: their statements and calls, which of them are answered, and what answering has cost so far.

A call is answered when a complete exchange counts for it (``planned_instances``, written by whoever ships exchanges).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import asyncpg
from sqlalchemy import Select, exists, func, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.domain.plan import Plan, PlannedCall
from auditor.errors import InputError, StoreUnavailable
from auditor.store.coding_tables import codings
from auditor.store.plan_tables import planned_calls, plans, statements
from auditor.store.tables import exchanges, planned_instances

#: One runner a plan: held by a transaction of its own, so that it ends with the runner's connection.
_LOCK: Final = text("SELECT pg_try_advisory_xact_lock(hashtext('tiltmeter plan'), hashtext(:plan_id))")


@dataclass(frozen=True, kw_only=True, slots=True)
class Spent:
    """What a plan has used so far, answered or not, and how its latest attempt went."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    last_at: datetime | None = None
    last_complete: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Count:
    """How many calls of a plan to one deployment are stored, and have their answer."""

    planned: int = 0
    answered: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanStatus:
    """How far a plan is at one deployment. ``failed``: sent, and not one answer is complete."""

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
        """Calls without an answer."""
        return self.planned - self.answered


async def add_plan(
    connection: AsyncConnection,
    plan: Plan,
    records: Mapping[str, Mapping[str, object]],
    calls: Iterable[PlannedCall],
    now: datetime,
) -> None:
    """Store a plan with its statements and calls; what is there already stays as it is.

    Raises
    ------
    InputError
        A statement is stored with other words: answers to it would be read against the wrong ones.
    StoreUnavailable
        The store does not take them.
    """
    await _add_statements(connection, records, now)
    row = {
        "id": plan.id, "name": plan.name, "design": plan.design, "seed": plan.seed, "rubric": plan.rubric,
        "created_at": now, "settings": dict(plan.settings),
    }  # fmt: skip
    await connection.execute(insert(plans).values(row).on_conflict_do_nothing())
    await _add_calls(connection, calls)


async def _add_calls(connection: AsyncConnection, calls: Iterable[PlannedCall]) -> None:
    """Copy the calls as they are made; a plan may have hundreds of thousands. ``COPY`` itself knows no conflicts."""
    await connection.execute(text("CREATE TEMPORARY TABLE added_calls (LIKE planned_calls) ON COMMIT DROP"))
    driver = (await connection.get_raw_connection()).driver_connection
    assert isinstance(driver, asyncpg.Connection)  # what make_engine connects with
    try:
        await driver.copy_records_to_table(
            "added_calls", records=map(_row, calls), columns=[column.name for column in planned_calls.columns]
        )
    except (asyncpg.InterfaceError, asyncpg.PostgresError) as error:
        raise StoreUnavailable(f"the store does not take the plan: {error}".partition("\n")[0]) from error
    await connection.execute(text("INSERT INTO planned_calls SELECT * FROM added_calls ON CONFLICT DO NOTHING"))


async def _add_statements(
    connection: AsyncConnection, records: Mapping[str, Mapping[str, object]], now: datetime
) -> None:
    rows = [{"id": key, "record": dict(record), "added_at": now} for key, record in sorted(records.items())]
    if not rows:
        return
    await connection.execute(insert(statements).on_conflict_do_nothing(), rows)
    stored = await connection.execute(select(statements.c.id, statements.c.record).where(statements.c.id.in_(records)))
    for key, record in sorted((row.id, row.record) for row in stored):
        if record != dict(records[key]):
            raise InputError(
                f"statement {key!r} is stored with other words; a changed statement needs an id of its own"
            )


def _row(call: PlannedCall) -> tuple[object, ...]:
    """Give the values in the order of the table's columns."""
    condition = call.condition
    return (
        call.ref, call.plan_id, call.deployment, call.statement_id,
        condition.task.value, condition.perspective.value, condition.role.value, condition.sentiment.value,
        call.template_id, call.draw, call.position, call.invites_reason,
    )  # fmt: skip


async def lock_plan(connection: AsyncConnection, plan_id: str) -> bool:
    """Take the plan for as long as this transaction lasts; say whether nobody else has it."""
    return bool((await connection.execute(_LOCK, {"plan_id": plan_id})).scalar())


async def count_calls(connection: AsyncConnection, plan_id: str) -> dict[str, Count]:
    """Count the stored calls of a plan, and those that have their answer, by deployment."""
    query = (
        select(
            planned_calls.c.deployment,
            func.count().label("planned"),
            func.count(planned_instances.c.ref).label("answered"),
        )
        .outerjoin(planned_instances, planned_instances.c.ref == planned_calls.c.ref)
        .where(planned_calls.c.plan_id == plan_id)
        .group_by(planned_calls.c.deployment)
    )
    found = await connection.execute(query)
    return {row.deployment: Count(planned=row.planned, answered=row.answered) for row in found}


async def answered_positions(connection: AsyncConnection, plan_id: str, deployment: str) -> set[int]:
    """Give the positions of a plan's calls to one deployment that have their answer."""
    query = (
        select(planned_calls.c.position)
        .join(planned_instances, planned_instances.c.ref == planned_calls.c.ref)
        .where(planned_calls.c.plan_id == plan_id, planned_calls.c.deployment == deployment)
    )
    return set((await connection.execute(query)).scalars())


async def count_as_answered(connection: AsyncConnection, ref: str, exchange_id: UUID) -> None:
    """Let an exchange count for a call although its status is an error's: a provider's block is an answer."""
    row = {"ref": ref, "exchange_id": exchange_id}
    await connection.execute(insert(planned_instances).values(row).on_conflict_do_nothing())


async def read_spent(connection: AsyncConnection, plan_id: str) -> dict[str, Spent]:
    """Add up by deployment what was sent for a plan, repeated and failed calls included."""
    sent = select(exchanges).join(planned_calls, planned_calls.c.ref == exchanges.c.ref)
    return await add_up(connection, sent.where(planned_calls.c.plan_id == plan_id))


async def add_up(connection: AsyncConnection, sent: Select[Any]) -> dict[str, Spent]:
    """Add up by deployment what these exchanges have used."""
    each = sent.subquery()
    query = select(
        each.c.deployment,
        func.count().label("calls"),
        func.coalesce(func.sum(each.c.prompt_tokens), 0).label("prompt"),
        func.coalesce(func.sum(each.c.completion_tokens), 0).label("completion"),
        func.max(each.c.at).label("last_at"),
        func.max(each.c.at).filter(each.c.outcome == "complete").label("complete_at"),
    ).group_by(each.c.deployment)
    return {
        row.deployment: Spent(
            calls=row.calls,
            prompt_tokens=int(row.prompt),
            completion_tokens=int(row.completion),
            last_at=row.last_at,
            last_complete=row.complete_at == row.last_at,
        )
        for row in await connection.execute(query)
    }


async def read_status(connection: AsyncConnection, plan_id: str | None = None) -> list[PlanStatus]:
    """Tell of each plan and deployment how far it is, the newest plan first."""
    tried = exists().where(exchanges.c.ref == planned_calls.c.ref)
    unanswered = planned_instances.c.ref.is_(None)
    read = exists().where(codings.c.exchange_id == planned_instances.c.exchange_id)
    query = (
        select(
            plans.c.id, plans.c.name, plans.c.design, plans.c.created_at, planned_calls.c.deployment,
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
    return [
        PlanStatus(
            plan_id=row.id,
            name=row.name,
            design=row.design,
            created_at=row.created_at,
            deployment=row.deployment,
            planned=row.planned,
            answered=row.answered,
            failed=row.failed,
            coded=row.coded,
        )
        for row in await connection.execute(query)
    ]
