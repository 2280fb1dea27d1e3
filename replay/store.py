"""Read stored exchanges, plans and codings for a replay, and store its plan.

A replay is a plan of the design ``replay``. Calls whose parents are probes are planned calls with a condition, read and
counted like any other. Calls whose parents are client traffic are in the plan's settings only, because their statements
are client text, which is kept no longer than the exchanges.
"""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar
from uuid import UUID

from sqlalchemy import ColumnElement, Select, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.coding.split import STATEMENT
from auditor.domain.exchange import Origin
from auditor.domain.ids import floor_id
from auditor.domain.plan import REPLAY, Plan, PlannedCall
from auditor.store.codings import codings
from auditor.store.exchanges import ASKED_AS_SENT, exchange_content, exchanges, planned_instances
from auditor.store.plans import add_plan, planned_calls, plans, statements
from replay.calls import Call, condition_of, template_of
from replay.parents import ReplayCandidate
from replay.selection import ExchangeSelection

#: Number of ids in one query, far below PostgreSQL's limit of parameters.
_CHUNK: Final = 1000
#: Number of rows that a server-side cursor fetches at once.
CURSOR: Final = 500
#: The columns of a planned call.
ASKED: Final = ("plan_id", "task", "perspective", "role", "sentiment", "draw", "statement_id", "template_id")

_Item = TypeVar("_Item")


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredReplay:
    """A stored replay with its calls, which were fixed when it was planned."""

    id: str
    created_at: datetime
    settings: Mapping[str, Any]
    refs: tuple[str, ...]  #: in the order of sending


async def stream_candidates(
    connection: AsyncConnection, selection: ExchangeSelection, routes: Sequence[str]
) -> AsyncIterator[ReplayCandidate]:
    """Stream the exchanges that fit a selection: complete probes, and complete client traffic of ``routes``.

    Clients' exchanges with an instruction of a trial are left out.
    """
    queries: list[Select[Any]] = []
    if Origin.PROBE in selection.origins:
        queries.append(_probes().where(*bounds(selection), *planned_bounds(selection), plans.c.design != REPLAY))
    if Origin.CLIENT in selection.origins and routes:
        # With an instruction of a trial the deployment was asked something else than the stored request.
        queries.append(_traffic().where(*bounds(selection), exchanges.c.route.in_(routes), ASKED_AS_SENT))
    for query in queries:
        async for row in (await connection.stream(query.execution_options(yield_per=CURSOR))).mappings():
            yield _candidate(row)


async def count_unreadable(connection: AsyncConnection, selection: ExchangeSelection, routes: Sequence[str]) -> int:
    """Count the selected client traffic of routes without an audit profile, which cannot be read."""
    if Origin.CLIENT not in selection.origins:
        return 0
    query = select(func.count()).select_from(exchanges).where(*bounds(selection), *_of_clients())
    return int((await connection.execute(query.where(exchanges.c.route.not_in(routes)))).scalar_one())


async def read_parents(connection: AsyncConnection, ids: Iterable[UUID]) -> list[ReplayCandidate]:
    """Read exchanges by their ids; those that retention has dropped are absent."""
    candidates: list[ReplayCandidate] = []
    for chunk in chunks(ids):
        for query in (_probes(), _traffic()):
            rows = await connection.execute(query.where(exchanges.c.id.in_(chunk)))
            candidates += [_candidate(row) for row in rows.mappings()]
    return candidates


async def read_requests(connection: AsyncConnection, ids: Iterable[UUID]) -> dict[UUID, bytes]:
    """Read the stored requests of some exchanges."""
    requests: dict[UUID, bytes] = {}
    for chunk in chunks(ids):
        query = select(exchange_content.c.id, exchange_content.c.request).where(exchange_content.c.id.in_(chunk))
        requests |= {row.id: row.request for row in await connection.execute(query) if row.request is not None}
    return requests


async def read_replay(connection: AsyncConnection, replay_id: str) -> StoredReplay | None:
    """Read a stored replay, or return ``None``."""
    plan = (await connection.execute(select(plans).where(plans.c.id == replay_id))).mappings().first()
    if plan is None:
        return None
    query = select(planned_calls.c.ref, planned_calls.c.position).where(planned_calls.c.plan_id == replay_id)
    numbered = [(row.position, row.ref) for row in await connection.execute(query)]
    numbered += [(position, ref) for position, ref in plan["settings"]["traffic"]]
    refs = tuple(ref for _, ref in sorted(numbered))
    return StoredReplay(id=replay_id, created_at=plan["created_at"], settings=plan["settings"], refs=refs)


async def add_replay(
    connection: AsyncConnection, replay_id: str, calls: Sequence[Call], settings: Mapping[str, Any], now: datetime
) -> None:
    """Store a replay's plan, in the order of sending. An existing plan is not changed."""
    numbered = list(enumerate(calls))
    traffic = [(position, call.ref) for position, call in numbered if call.parent.origin is Origin.CLIENT]
    plan = Plan(
        id=replay_id,
        name=settings["select"],
        design=REPLAY,
        seed=settings["seed"],
        rubric=STATEMENT,
        settings={**settings, "traffic": traffic},
    )
    planned = [
        _planned_call(replay_id, position, call) for position, call in numbered if call.parent.origin is Origin.PROBE
    ]
    await add_plan(connection, plan, {}, planned, now)


def _planned_call(replay_id: str, position: int, call: Call) -> PlannedCall:
    assert call.parent.statement is not None
    template = template_of(call.parent, call.format)
    return PlannedCall(
        ref=call.ref,
        plan_id=replay_id,
        deployment=call.deployment,
        statement_id=call.parent.statement.id,
        condition=condition_of(call.parent, call.format),
        template_id=template.template_id,
        draw=call.parent.draw,
        position=position,
        invites_reason=template.invites_reason,
    )


async def read_answered(connection: AsyncConnection, refs: Iterable[str]) -> dict[str, UUID]:
    """Read the exchange that counts for each planned instance that has a complete one."""
    answered: dict[str, UUID] = {}
    for chunk in chunks(refs):
        query = select(planned_instances).where(planned_instances.c.ref.in_(chunk))
        answered |= {row.ref: row.exchange_id for row in await connection.execute(query)}
    return answered


async def read_failures(connection: AsyncConnection, refs: Iterable[str]) -> dict[str, str]:
    """Read how the last attempt at each planned instance failed; instances that were never sent are absent."""
    failures: dict[str, str] = {}
    for chunk in chunks(refs):
        query = (
            select(exchanges.c.ref, exchanges.c.error_type, exchanges.c.outcome)
            .where(exchanges.c.ref.in_(chunk), exchanges.c.origin == Origin.REPLAY)
            .order_by(exchanges.c.id)
        )
        failures |= {row.ref: row.error_type or row.outcome for row in await connection.execute(query)}
    return failures


async def read_tokens(connection: AsyncConnection, ids: Iterable[UUID]) -> dict[UUID, int | None]:
    """Read the completion tokens of some exchanges; ``None`` if unknown."""
    tokens: dict[UUID, int | None] = {}
    for chunk in chunks(ids):
        query = select(exchanges.c.id, exchanges.c.completion_tokens).where(exchanges.c.id.in_(chunk))
        tokens |= {row.id: row.completion_tokens for row in await connection.execute(query)}
    return tokens


async def read_codings(connection: AsyncConnection, coder: str, ids: Iterable[UUID]) -> list[Mapping[Any, Any]]:
    """Read a coder's existing codings of some exchanges."""
    rows: list[Mapping[Any, Any]] = []
    for chunk in chunks(ids):
        query = select(codings).where(codings.c.coder == coder, codings.c.exchange_id.in_(chunk))
        rows += (await connection.execute(query)).mappings()
    return rows


def _of_clients() -> tuple[ColumnElement[bool], ...]:
    return exchanges.c.origin == Origin.CLIENT, exchanges.c.outcome == "complete"


def bounds(selection: ExchangeSelection) -> list[ColumnElement[bool]]:
    """Return a selection's conditions on exchanges of every origin."""
    columns = exchanges.c
    conditions: list[ColumnElement[bool]] = [columns.tags[name].astext == value for name, value in selection.tags]
    if selection.deployment is not None:
        conditions.append(columns.deployment == selection.deployment)
    if selection.route is not None:
        conditions.append(columns.route == selection.route)
    # Ids contain the time to the millisecond, and partitions are ranges of ids, so other days are not scanned.
    if selection.since is not None:
        conditions += [columns.at >= selection.since, columns.id >= floor_id(selection.since)]
    if selection.until is not None:
        conditions += [columns.at < selection.until, columns.id < floor_id(selection.until + timedelta(milliseconds=1))]
    return conditions


def planned_bounds(selection: ExchangeSelection) -> list[ColumnElement[bool]]:
    """Return a selection's conditions on planned calls, which only probes have."""
    conditions: list[ColumnElement[bool]] = []
    if selection.task is not None:
        conditions.append(planned_calls.c.task == selection.task)
    if selection.plan is not None:
        conditions.append(planned_calls.c.plan_id == selection.plan)
    return conditions


def _probes() -> Select[Any]:
    return (
        select(*_FACTS, *(planned_calls.c[name] for name in ASKED), statements.c.record)
        .select_from(planned_calls)
        .join(plans, plans.c.id == planned_calls.c.plan_id)
        .join(planned_instances, planned_instances.c.ref == planned_calls.c.ref)
        .join(exchanges, exchanges.c.id == planned_instances.c.exchange_id)
        .join(statements, statements.c.id == planned_calls.c.statement_id)
        .outerjoin(exchange_content, exchange_content.c.id == exchanges.c.id)
        .where(exchanges.c.origin == Origin.PROBE)
    )


def _traffic() -> Select[Any]:
    return (
        select(*_FACTS)
        .select_from(exchanges)
        .outerjoin(exchange_content, exchange_content.c.id == exchanges.c.id)
        .where(*_of_clients())
    )


_FACTS: Final = (
    exchanges.c.id,
    exchanges.c.at,
    exchanges.c.origin,
    exchanges.c.endpoint,
    exchanges.c.route,
    exchanges.c.deployment,
    exchanges.c.model,
    exchanges.c.inclusion,
    exchanges.c.truncated,
    exchanges.c.redacted,
    exchanges.c.prompt_tokens,
    exchanges.c.completion_tokens,
    exchange_content.c.request.is_not(None).label("has_content"),
)


def _candidate(row: Mapping[Any, Any]) -> ReplayCandidate:
    return ReplayCandidate(
        id=row["id"],
        at=row["at"],
        origin=Origin(row["origin"]),
        endpoint=row["endpoint"],
        route=row["route"],
        deployment=row["deployment"],
        model=row["model"],
        inclusion=row["inclusion"],
        truncated=row["truncated"],
        has_content=row["has_content"],
        redacted=row["redacted"],
        prompt_tokens=row["prompt_tokens"],
        completion_tokens=row["completion_tokens"],
        planned_call={name: row[name] for name in ASKED} if "task" in row else None,
        record=row.get("record"),
    )


def chunks(items: Iterable[_Item]) -> Iterator[list[_Item]]:
    """Split a list of ids into parts for single queries."""
    chunk: list[_Item] = []
    for item in items:
        chunk.append(item)
        if len(chunk) == _CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
