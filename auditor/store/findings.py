"""Findings in the store: what was found, what people said to it, and what is to be posted of it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime
from typing import Any, Final

from sqlalchemy import func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.store.monitor_tables import finding_events, findings

#: What findings can be asked for by.
FILTERS: Final = ("deployment", "metric", "level", "state")
OPEN: Final = "open"
ACKNOWLEDGED: Final = "acknowledged"
ANSWERED: Final = "answered"
#: The newest are shown; whoever wants older ones names a deployment.
_MOST: Final = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """What was found of one measure of one deployment, and how it stands."""

    id: str
    coder: str
    deployment: str
    metric: str
    level: str  #: page | investigate | instrument
    reference_id: str
    day: date  #: on whose pass it was found
    first_seen: datetime  #: when that day was closed
    evidence: Mapping[str, Any]
    value: float | None  #: change against the reference over the window
    low: float | None
    high: float | None
    n: int
    n_statements: int
    window_since: date  #: the window ends with ``day``
    state: str = OPEN
    note: str | None = None
    by: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class FindingEvent:
    """What happened to a finding, and who did it."""

    at: datetime
    action: str  #: opened | acknowledged | answered
    by: str | None = None
    note: str | None = None
    reference_id: str | None = None  #: the one that was accepted


async def add_finding(connection: AsyncConnection, finding: Finding) -> bool:
    """Keep a finding, open; say whether it is new. One that is there already stays as people have left it."""
    row = asdict(finding)
    new = insert(findings).values(row).on_conflict_do_nothing().returning(findings.c.id)
    if (await connection.execute(new)).scalar() is None:
        return False
    await _add_events(connection, [finding.id], FindingEvent(at=finding.first_seen, action="opened"))
    return True


async def read_findings(connection: AsyncConnection, **wanted: str) -> list[Finding]:
    """Read the findings whose columns have these values, the newest first."""
    query = select(findings).order_by(findings.c.first_seen.desc(), findings.c.id).limit(_MOST)
    for name, value in wanted.items():
        query = query.where(findings.c[name] == value)
    return [Finding(**row) for row in (await connection.execute(query)).mappings()]


async def read_finding(connection: AsyncConnection, finding_id: str, *, changing: bool = False) -> Finding | None:
    """Read one finding; with ``changing`` nobody else changes it until this transaction ends."""
    query = select(findings).where(findings.c.id == finding_id)
    row = (await connection.execute(query.with_for_update() if changing else query)).mappings().first()
    return None if row is None else Finding(**row)


async def read_unanswered(connection: AsyncConnection, coder: str, deployment: str) -> list[Finding]:
    """Read what is found of a deployment and has no answer; nobody else changes it until this transaction ends."""
    table = findings
    query = (
        select(table)
        .where(table.c.coder == coder, table.c.deployment == deployment, table.c.state != ANSWERED)
        .order_by(table.c.id)
        .with_for_update()
    )
    return [Finding(**row) for row in (await connection.execute(query)).mappings()]


async def read_events(connection: AsyncConnection, finding_id: str) -> list[FindingEvent]:
    """Read what happened to a finding, in its order."""
    names = FindingEvent.__dataclass_fields__
    query = (
        select(*(finding_events.c[name] for name in names))
        .where(finding_events.c.finding_id == finding_id)
        .order_by(finding_events.c.id)
    )
    return [FindingEvent(**row) for row in (await connection.execute(query)).mappings()]


async def change_state(connection: AsyncConnection, ids: Sequence[str], event: FindingEvent) -> None:
    """Let something happen to findings: they then stand as the event says, by whom and with which note."""
    table = findings
    changed = {"state": event.action, "by": event.by, "note": event.note}
    await connection.execute(update(table).where(table.c.id == func.any(list(ids))).values(changed))
    await _add_events(connection, ids, event)


async def _add_events(connection: AsyncConnection, ids: Sequence[str], event: FindingEvent) -> None:
    rows = [{"finding_id": each, **asdict(event)} for each in ids]
    await connection.execute(insert(finding_events), rows)
