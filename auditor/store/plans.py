"""Plans in the store: their statements and calls, which of them are answered, and what answering has cost so far.

A call is answered when a complete exchange counts for it (``planned_instances``, written by whoever ships exchanges).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from sqlalchemy import exists, func, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.domain.plan import Plan, PlannedCall
from auditor.errors import InputError
from auditor.store.coding_tables import codings
from auditor.store.plan_tables import planned_calls, plans, statements
from auditor.store.tables import exchanges, planned_instances

_CHUNK: Final = 5000
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
    calls: Sequence[PlannedCall],
    now: datetime,
) -> None:
    """Store a plan with its statements and calls; what is there already stays as it is.

    Raises
    ------
    InputError
        A statement is stored with other words: answers to it would be read against the wrong ones.
    """
    await _add_statements(connection, records, now)
    row = {
        "id": plan.id, "name": plan.name, "design": plan.design, "seed": plan.seed, "rubric": plan.rubric,
        "created_at": now, "settings": dict(plan.settings),
    }  # fmt: skip
    await connection.execute(insert(plans).values(row).on_conflict_do_nothing())
    for start in range(0, len(calls), _CHUNK):
        rows = [_row(call) for call in calls[start : start + _CHUNK]]
        await connection.execute(insert(planned_calls).on_conflict_do_nothing(), rows)


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


def _row(call: PlannedCall) -> dict[str, object]:
    condition = call.condition
    return {
        "ref": call.ref,
        "plan_id": call.plan_id,
        "deployment": call.deployment,
        "statement_id": call.statement_id,
        "task": condition.task.value,
        "perspective": condition.perspective.value,
        "role": condition.role.value,
        "sentiment": condition.sentiment.value,
        "template_id": call.template_id,
        "draw": call.draw,
        "position": call.position,
        "invites_reason": call.invites_reason,
    }


async def lock_plan(connection: AsyncConnection, plan_id: str) -> bool:
    """Take the plan for as long as this transaction lasts; say whether nobody else has it."""
    return bool((await connection.execute(_LOCK, {"plan_id": plan_id})).scalar())


async def answered_refs(connection: AsyncConnection, plan_id: str) -> set[str]:
    """Give the refs of a plan's calls that have their answer."""
    query = (
        select(planned_calls.c.ref)
        .join(planned_instances, planned_instances.c.ref == planned_calls.c.ref)
        .where(planned_calls.c.plan_id == plan_id)
    )
    return set((await connection.execute(query)).scalars())


async def count_as_answered(connection: AsyncConnection, ref: str, exchange_id: UUID) -> None:
    """Let an exchange count for a call although its status is an error's: a provider's block is an answer."""
    row = {"ref": ref, "exchange_id": exchange_id}
    await connection.execute(insert(planned_instances).values(row).on_conflict_do_nothing())


async def read_spent(connection: AsyncConnection, plan_id: str) -> dict[str, Spent]:
    """Add up by deployment what was sent for a plan, repeated and failed calls included."""
    complete = exchanges.c.outcome == "complete"
    query = (
        select(
            planned_calls.c.deployment,
            func.count().label("calls"),
            func.coalesce(func.sum(exchanges.c.prompt_tokens), 0).label("prompt"),
            func.coalesce(func.sum(exchanges.c.completion_tokens), 0).label("completion"),
            func.max(exchanges.c.at).label("last_at"),
            func.max(exchanges.c.at).filter(complete).label("complete_at"),
        )
        .join(exchanges, exchanges.c.ref == planned_calls.c.ref)
        .where(planned_calls.c.plan_id == plan_id)
        .group_by(planned_calls.c.deployment)
    )
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
