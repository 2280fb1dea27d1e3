"""Store the runs of plans that people start in the console; a job of the auditor sends them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from sqlalchemy import Column, DateTime, Table, Text, select, update
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.store.engine import metadata

audit_runs = Table(
    "audit_runs",
    metadata,
    Column("plan_id", Text, primary_key=True),
    Column("choice", JSONB, nullable=False),
    Column("state", Text, nullable=False),
    Column("asked_by", Text, nullable=False),
    Column("asked_at", DateTime(timezone=True), nullable=False),
    Column("result", JSONB, nullable=False),
)


class RunState(StrEnum):
    """How far a run is."""

    ASKED = "asked"  #: a person has started it, and no process sends it yet
    RUNNING = "running"
    STOPPING = "stopping"  #: a person has stopped it; calls under way are finished
    STOPPED = "stopped"
    ENDED = "ended"


_OPEN: Final = (RunState.ASKED, RunState.RUNNING, RunState.STOPPING)


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditRun:
    """One run. ``result`` says by deployment how it ended, or under ``error`` why it could not be sent."""

    plan_id: str
    choice: Mapping[str, Any]
    state: RunState
    asked_by: str
    asked_at: datetime
    result: Mapping[str, Any]

    @property
    def is_open(self) -> bool:
        """Whether it is sent, or waits for it."""
        return self.state in _OPEN


async def ask_run(
    connection: AsyncConnection, plan_id: str, choice: Mapping[str, Any], asked_by: str, now: datetime
) -> None:
    """Start a plan, or start it again with another budget; one that is being sent goes on."""
    row = {"choice": dict(choice), "state": RunState.ASKED, "asked_by": asked_by, "asked_at": now, "result": {}}
    query = insert(audit_runs).values(plan_id=plan_id, **row)
    ended = audit_runs.c.state.in_((RunState.STOPPED, RunState.ENDED))
    await connection.execute(query.on_conflict_do_update(index_elements=["plan_id"], set_=row, where=ended))


async def stop_run(connection: AsyncConnection, plan_id: str) -> bool:
    """Ask that a run ends after the calls under way, and return whether there is one to stop."""
    query = update(audit_runs).where(audit_runs.c.plan_id == plan_id, audit_runs.c.state.in_(_OPEN))
    found = await connection.execute(query.values(state=RunState.STOPPING).returning(audit_runs.c.plan_id))
    return found.first() is not None


async def begin_run(connection: AsyncConnection, plan_id: str) -> None:
    """Record that a process sends the run, unless somebody has stopped it meanwhile."""
    query = update(audit_runs).where(audit_runs.c.plan_id == plan_id, audit_runs.c.state == RunState.ASKED)
    await connection.execute(query.values(state=RunState.RUNNING))


async def end_run(connection: AsyncConnection, plan_id: str, state: RunState, result: Mapping[str, Any]) -> None:
    """Record how a run has ended."""
    query = update(audit_runs).where(audit_runs.c.plan_id == plan_id)
    await connection.execute(query.values(state=state, result=dict(result)))


async def read_runs(connection: AsyncConnection) -> dict[str, AuditRun]:
    """Read all runs by plan, the first asked first."""
    rows = await connection.execute(select(audit_runs).order_by(audit_runs.c.asked_at, audit_runs.c.plan_id))
    return {row["plan_id"]: AuditRun(**{**row, "state": RunState(row["state"])}) for row in rows.mappings()}
