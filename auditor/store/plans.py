"""Store plans with their statements and calls; read which calls are answered, and what they have used.

A call is answered once a complete exchange counts for it (``planned_instances``, written together with exchanges).
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeAlias
from uuid import UUID

import asyncpg
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    ForeignKey,
    Integer,
    Select,
    Table,
    Text,
    UniqueConstraint,
    func,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.domain.condition import Task
from auditor.domain.plan import Plan, PlannedCall
from auditor.errors import InputError, StoreUnavailable
from auditor.store.engine import DRIVER_ERRORS, metadata
from auditor.store.exchanges import announce, planned_instances

statements = Table(
    "statements",
    metadata,
    Column("id", Text, primary_key=True),
    Column("record", JSONB, nullable=False),
    Column("added_at", DateTime(timezone=True), nullable=False),
)


plans = Table(
    "plans",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("design", Text, nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("rubric", Text, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("settings", JSONB, nullable=False),
)


planned_calls = Table(
    "planned_calls",
    metadata,
    Column("ref", Text, primary_key=True),
    Column("plan_id", Text, ForeignKey("plans.id"), nullable=False),
    Column("deployment", Text, nullable=False),
    Column("statement_id", Text, ForeignKey("statements.id"), nullable=False),
    Column("task", Text, nullable=False),
    Column("perspective", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("sentiment", Text, nullable=False),
    Column("template_id", Text, nullable=False),
    Column("draw", Integer, nullable=False),
    Column("position", Integer, nullable=False),  #: order of sending within the plan and deployment
    Column("invites_reason", Boolean, nullable=False),
    UniqueConstraint("plan_id", "deployment", "position"),
)


#: What calls have used, by the deployment that answered and the kind of question. A trigger adds to it.
plan_usage = Table(
    "plan_usage",
    metadata,
    Column("plan_id", Text, ForeignKey("plans.id"), primary_key=True),
    Column("deployment", Text, primary_key=True),
    Column("task", Text, primary_key=True),
    Column("invites_reason", Boolean, primary_key=True),
    Column("calls", BigInteger, nullable=False),  #: with repeated and failed ones
    Column("prompt_tokens", BigInteger, nullable=False),
    Column("completion_tokens", BigInteger, nullable=False),
    Column("last_at", DateTime(timezone=True), nullable=False),
    Column("complete_at", DateTime(timezone=True)),
    Column("answers", BigInteger, nullable=False),  #: that count and report their tokens; the next two are their sums
    Column("answer_tokens", BigInteger, nullable=False),
    Column("answer_us", BigInteger, nullable=False),
)


#: One runner for each plan: held by a transaction of its own, so that it ends with the runner's connection.
_LOCK: Final = text("SELECT pg_try_advisory_xact_lock(hashtext('biasmeter plan'), hashtext(:plan_id))")


@dataclass(frozen=True, kw_only=True, slots=True)
class Spent:
    """What a plan has used so far, and whether its latest call was complete."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    last_at: datetime | None = None
    last_complete: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Count:
    """The numbers of stored and answered calls of a plan to one deployment."""

    planned: int = 0
    answered: int = 0


async def add_plan(
    connection: AsyncConnection,
    plan: Plan,
    records: Mapping[str, Mapping[str, object]],
    calls: Iterable[PlannedCall],
    now: datetime,
) -> None:
    """Store a plan with its statements and calls; existing rows are not changed.

    Raises
    ------
    InputError
        A statement is stored with another text: answers would be coded against the wrong one.
    StoreUnavailable
        The store does not answer.
    """
    await _add_statements(connection, records, now)
    row = {
        "id": plan.id, "name": plan.name, "design": plan.design, "seed": plan.seed, "rubric": plan.rubric,
        "created_at": now, "settings": dict(plan.settings),
    }  # fmt: skip
    await connection.execute(insert(plans).values(row).on_conflict_do_nothing())
    await _add_calls(connection, calls)


async def _add_calls(connection: AsyncConnection, calls: Iterable[PlannedCall]) -> None:
    """Copy the calls while they are made: a plan may have hundreds of thousands. ``COPY`` skips no existing rows."""
    await connection.execute(text("CREATE TEMPORARY TABLE added_calls (LIKE planned_calls) ON COMMIT DROP"))
    driver = (await connection.get_raw_connection()).driver_connection
    assert isinstance(driver, asyncpg.Connection)  # the driver of make_engine
    try:
        await driver.copy_records_to_table(
            "added_calls", records=map(_row, calls), columns=[column.name for column in planned_calls.columns]
        )
    except DRIVER_ERRORS as error:
        raise StoreUnavailable(f"the store does not take the plan: {error}".partition("\n")[0]) from error
    await connection.execute(text("INSERT INTO planned_calls SELECT * FROM added_calls ON CONFLICT DO NOTHING"))


def _words(record: Mapping[str, object]) -> dict[str, object]:
    """Return a record without the name of its pool: versions of a pool share the statements that did not change."""
    return {name: value for name, value in record.items() if name != "source"}


async def _add_statements(
    connection: AsyncConnection, records: Mapping[str, Mapping[str, object]], now: datetime
) -> None:
    rows = [{"id": key, "record": dict(record), "added_at": now} for key, record in sorted(records.items())]
    if not rows:
        return
    await connection.execute(insert(statements).on_conflict_do_nothing(), rows)
    stored = await connection.execute(select(statements.c.id, statements.c.record).where(statements.c.id.in_(records)))
    for key, record in sorted((row.id, row.record) for row in stored):
        if _words(record) != _words(records[key]):
            raise InputError(
                f"statement {key!r} is stored with other words; a changed statement needs an id of its own"
            )


async def read_statement_texts(connection: AsyncConnection, ids: Collection[str]) -> dict[str, str]:
    """Read the sentences of statements, by id."""
    query = select(statements.c.id, statements.c.record["statement"].astext.label("text"))
    rows = await connection.execute(query.where(statements.c.id.in_(ids)))
    return {row.id: row.text for row in rows}


def _row(call: PlannedCall) -> tuple[object, ...]:
    """Return the values in the order of the table's columns."""
    condition = call.condition
    return (
        call.ref, call.plan_id, call.deployment, call.statement_id,
        condition.task.value, condition.perspective.value, condition.role.value, condition.sentiment.value,
        call.template_id, call.draw, call.position, call.invites_reason,
    )  # fmt: skip


async def lock_plan(connection: AsyncConnection, plan_id: str) -> bool:
    """Try to lock the plan until this transaction ends, and return whether it is locked."""
    return bool((await connection.execute(_LOCK, {"plan_id": plan_id})).scalar())


async def count_calls(connection: AsyncConnection, plan_id: str) -> dict[str, Count]:
    """Count the stored and the answered calls of a plan by deployment."""
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
    rows = await connection.execute(query)
    return {row.deployment: Count(planned=row.planned, answered=row.answered) for row in rows}


async def answered_positions(connection: AsyncConnection, plan_id: str, deployment: str) -> set[int]:
    """Return the positions of a plan's answered calls to one deployment."""
    query = (
        select(planned_calls.c.position)
        .join(planned_instances, planned_instances.c.ref == planned_calls.c.ref)
        .where(planned_calls.c.plan_id == plan_id, planned_calls.c.deployment == deployment)
    )
    return set((await connection.execute(query)).scalars())


async def count_as_answered(connection: AsyncConnection, answers: Mapping[str, UUID]) -> set[str]:
    """Count exchanges as the answers to calls, by ref, and return the refs that had none before.

    Of exchanges that the gateway stores it is needed for those with an error status: a provider's block is an answer.
    """
    rows = [{"ref": ref, "exchange_id": exchange_id} for ref, exchange_id in answers.items()]
    if not rows:
        return set()
    query = insert(planned_instances).on_conflict_do_nothing().returning(planned_instances.c.ref)
    new = set((await connection.execute(query, rows)).scalars())
    await announce(connection, min(answers.values()))
    return new


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredCall:
    """A stored planned call, with what is needed to ask it."""

    deployment: str
    template_id: str
    statement: Mapping[str, object]
    answered: bool


async def read_calls(connection: AsyncConnection, refs: Collection[str]) -> dict[str, StoredCall]:
    """Read planned calls by their refs; one that is not stored is absent."""
    query = (
        select(
            planned_calls.c.ref,
            planned_calls.c.deployment,
            planned_calls.c.template_id,
            statements.c.record,
            planned_instances.c.ref.is_not(None).label("answered"),
        )
        .join(statements, statements.c.id == planned_calls.c.statement_id)
        .outerjoin(planned_instances, planned_instances.c.ref == planned_calls.c.ref)
        .where(planned_calls.c.ref.in_(refs))
    )
    return {
        row.ref: StoredCall(
            deployment=row.deployment, template_id=row.template_id, statement=row.record, answered=row.answered
        )
        for row in await connection.execute(query)
    }


async def read_spent(connection: AsyncConnection, plan_id: str) -> dict[str, Spent]:
    """Read by deployment what a plan has used, with repeated and failed calls, and those that were removed since."""
    used = plan_usage.c
    query = (
        select(
            used.deployment,
            func.sum(used.calls).label("calls"),
            func.sum(used.prompt_tokens).label("prompt"),
            func.sum(used.completion_tokens).label("completion"),
            func.max(used.last_at).label("last_at"),
            func.max(used.complete_at).label("complete_at"),
        )
        .where(used.plan_id == plan_id)
        .group_by(used.deployment)
    )
    return await _read_spent(connection, query)


async def add_up(connection: AsyncConnection, calls: Select[Any]) -> dict[str, Spent]:
    """Sum by deployment what these exchanges have used."""
    each = calls.subquery()
    query = select(
        each.c.deployment,
        func.count().label("calls"),
        func.coalesce(func.sum(each.c.prompt_tokens), 0).label("prompt"),
        func.coalesce(func.sum(each.c.completion_tokens), 0).label("completion"),
        func.max(each.c.at).label("last_at"),
        func.max(each.c.at).filter(each.c.outcome == "complete").label("complete_at"),
    ).group_by(each.c.deployment)
    return await _read_spent(connection, query)


async def _read_spent(connection: AsyncConnection, sums: Select[Any]) -> dict[str, Spent]:
    return {
        row.deployment: Spent(
            calls=int(row.calls),
            prompt_tokens=int(row.prompt),
            completion_tokens=int(row.completion),
            last_at=row.last_at,
            last_complete=row.complete_at == row.last_at,
        )
        for row in await connection.execute(sums)
    }


#: Questions with answers of about the same length: the task, and whether a reason was asked for.
Kind: TypeAlias = tuple[Task, bool]


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerStats:
    """The average tokens and time of an answer."""

    answers: int  #: number of averaged answers; 0 if assumed
    completion_tokens: float
    seconds: float


AnswerStatsByKind: TypeAlias = Mapping[tuple[str, Kind], AnswerStats]


async def read_answer_stats(connection: AsyncConnection) -> AnswerStatsByKind:
    """Average the tokens and times of the answers to the stored plans' calls that report them."""
    used = plan_usage.c
    keys = (used.deployment, used.task, used.invites_reason)
    sums = {name: func.sum(used[name]).label(name) for name in ("answers", "answer_tokens", "answer_us")}
    query = select(*keys, *sums.values()).where(used.answers > 0).group_by(*keys)
    return {
        (row.deployment, (Task(row.task), row.invites_reason)): AnswerStats(
            answers=int(row.answers),
            completion_tokens=float(row.answer_tokens / row.answers),
            seconds=float(row.answer_us / row.answers) / 1e6,
        )
        for row in await connection.execute(query)
    }
