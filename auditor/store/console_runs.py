"""Store the audits and replays that people start in the console; a job of the auditor works on them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from sqlalchemy import Column, ColumnElement, DateTime, Table, Text, select, update
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.store.engine import metadata

console_runs = Table(
    "console_runs",
    metadata,
    Column("kind", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("choice", JSONB, nullable=False),
    Column("state", Text, nullable=False),
    Column("asked_by", Text, nullable=False),
    Column("asked_at", DateTime(timezone=True), nullable=False),
    Column("result", JSONB, nullable=False),
)


class RunKind(StrEnum):
    """What is run."""

    AUDIT = "audit"
    REPLAY = "replay"


class RunState(StrEnum):
    """How far a run is."""

    ASKED = "asked"  #: a person has started it, and no process works on it yet
    RUNNING = "running"
    STOPPING = "stopping"  #: a person has stopped it; calls under way are finished
    STOPPED = "stopped"
    ENDED = "ended"


_OPEN: Final = (RunState.ASKED, RunState.RUNNING, RunState.STOPPING)


@dataclass(frozen=True, kw_only=True, slots=True)
class ConsoleRun:
    """One run. ``result`` has what its kind keeps of the end, or under ``error`` why it could not be run."""

    kind: RunKind
    id: str  #: id of the run; of an audit, the id of its plan
    choice: Mapping[str, Any]
    state: RunState
    asked_by: str
    asked_at: datetime
    result: Mapping[str, Any]

    @property
    def is_open(self) -> bool:
        """Whether it is worked on, or waits for it."""
        return self.state in _OPEN


def _is(kind: RunKind, run_id: str) -> ColumnElement[bool]:
    return (console_runs.c.kind == kind) & (console_runs.c.id == run_id)


async def ask_run(
    connection: AsyncConnection, kind: RunKind, run_id: str, choice: Mapping[str, Any], asked_by: str, now: datetime
) -> None:
    """Start a run, or start it again with another choice; one that is being worked on goes on."""
    row = {"choice": dict(choice), "state": RunState.ASKED, "asked_by": asked_by, "asked_at": now, "result": {}}
    query = insert(console_runs).values(kind=kind, id=run_id, **row)
    ended = console_runs.c.state.in_((RunState.STOPPED, RunState.ENDED))
    await connection.execute(query.on_conflict_do_update(index_elements=["kind", "id"], set_=row, where=ended))


async def stop_run(connection: AsyncConnection, kind: RunKind, run_id: str) -> bool:
    """Ask that a run ends after the calls under way, and return whether there is one to stop."""
    query = update(console_runs).where(_is(kind, run_id), console_runs.c.state.in_(_OPEN))
    stopped = await connection.execute(query.values(state=RunState.STOPPING).returning(console_runs.c.id))
    return stopped.first() is not None


async def begin_run(connection: AsyncConnection, kind: RunKind, run_id: str) -> None:
    """Record that a process works on the run, unless somebody has stopped it meanwhile."""
    query = update(console_runs).where(_is(kind, run_id), console_runs.c.state == RunState.ASKED)
    await connection.execute(query.values(state=RunState.RUNNING))


async def end_run(
    connection: AsyncConnection, kind: RunKind, run_id: str, state: RunState, result: Mapping[str, Any]
) -> None:
    """Record how a run has ended."""
    await connection.execute(update(console_runs).where(_is(kind, run_id)).values(state=state, result=dict(result)))


async def read_runs(connection: AsyncConnection, kind: RunKind) -> dict[str, ConsoleRun]:
    """Read all runs of a kind by id, the first asked first."""
    query = select(console_runs).where(console_runs.c.kind == kind)
    rows = await connection.execute(query.order_by(console_runs.c.asked_at, console_runs.c.id))
    return {
        row["id"]: ConsoleRun(**{**row, "kind": RunKind(row["kind"]), "state": RunState(row["state"])})
        for row in rows.mappings()
    }
