"""Store findings, what people did with them, and the messages to post about them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime, timedelta
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Column,
    Date,
    DateTime,
    Double,
    ForeignKey,
    Identity,
    Integer,
    LargeBinary,
    Table,
    Text,
    func,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.store.codings import coders
from auditor.store.engine import metadata

findings = Table(
    "findings",
    metadata,
    Column("id", Text, primary_key=True),
    Column("coder", Text, ForeignKey(coders.c.id), nullable=False),
    Column("deployment", Text, nullable=False),
    Column("metric", Text, nullable=False),
    Column("level", Text, nullable=False),
    Column("reference_id", Text, nullable=False),
    Column("day", Date, nullable=False),
    Column("first_seen", DateTime(timezone=True), nullable=False),
    Column("evidence", JSONB, nullable=False),
    Column("value", Double),
    Column("low", Double),
    Column("high", Double),
    Column("n", BigInteger, nullable=False),
    Column("n_statements", BigInteger, nullable=False),
    Column("window_since", Date, nullable=False),
    Column("state", Text, nullable=False),
    Column("note", Text),
    Column("by", Text),
    Column("silenced_until", DateTime(timezone=True)),
)


finding_events = Table(
    "finding_events",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("finding_id", Text, ForeignKey(findings.c.id), nullable=False),
    Column("at", DateTime(timezone=True), nullable=False),
    Column("action", Text, nullable=False),
    Column("by", Text),
    Column("note", Text),
    Column("reference_id", Text),
    Column("until", DateTime(timezone=True)),
)


webhook_deliveries = Table(
    "webhook_deliveries",
    metadata,
    Column("finding_id", Text, ForeignKey(findings.c.id), primary_key=True),
    Column("state", Text, primary_key=True),
    Column("body", LargeBinary, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("next_at", DateTime(timezone=True), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("delivered_at", DateTime(timezone=True)),
    Column("error", Text),
)


#: Columns by which findings can be filtered.
FILTERS: Final = ("deployment", "metric", "level", "state")


OPEN: Final = "open"


ACKNOWLEDGED: Final = "acknowledged"


ANSWERED: Final = "answered"


#: The greatest number of findings in one answer, the newest; a filter by deployment reaches older ones.
_MOST: Final = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """A finding about one measure of one deployment, and its state."""

    id: str
    coder: str
    deployment: str
    metric: str
    level: str  #: page | investigate | instrument
    reference_id: str
    day: date  #: the day of the tested data
    first_seen: datetime  #: time when that day was closed
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
    silenced_until: datetime | None = None  #: no alert and no post before it; may be over

    def is_silenced(self, now: datetime) -> bool:
        """Whether alerts and posts wait."""
        return self.silenced_until is not None and self.silenced_until > now


@dataclass(frozen=True, kw_only=True, slots=True)
class FindingEvent:
    """A change of a finding, and who made it."""

    at: datetime
    action: str  #: opened | acknowledged | answered | silenced | silence_ended | action_began, _renewed, _ended
    by: str | None = None
    note: str | None = None
    reference_id: str | None = None  #: the accepted reference
    until: datetime | None = None  #: end of the silence or of the action


async def add_finding(connection: AsyncConnection, finding: Finding) -> bool:
    """Store an open finding, and return whether it is new; an existing one is not changed."""
    row = asdict(finding)
    new = insert(findings).values(row).on_conflict_do_nothing().returning(findings.c.id)
    if (await connection.execute(new)).scalar() is None:
        return False
    await add_events(connection, [finding.id], FindingEvent(at=finding.first_seen, action="opened"))
    return True


async def read_findings(connection: AsyncConnection, **wanted: str) -> list[Finding]:
    """Read the findings with these values, the newest first."""
    query = select(findings).order_by(findings.c.first_seen.desc(), findings.c.id).limit(_MOST)
    for name, value in wanted.items():
        query = query.where(findings.c[name] == value)
    return [Finding(**row) for row in (await connection.execute(query)).mappings()]


async def read_new_findings(connection: AsyncConnection, since: datetime) -> list[Finding]:
    """Read the findings that were opened since a moment, the newest first."""
    query = select(findings).where(findings.c.first_seen >= since)
    query = query.order_by(findings.c.first_seen.desc(), findings.c.id).limit(_MOST)
    return [Finding(**row) for row in (await connection.execute(query)).mappings()]


async def read_findings_on(
    connection: AsyncConnection, coders: Collection[str], deployment: str, day: date
) -> list[Finding]:
    """Read the findings on a deployment's answers of a day: those whose days hold it, the newest first."""
    query = (
        select(findings)
        .where(findings.c.coder.in_(coders), findings.c.deployment == deployment)
        .where(findings.c.window_since <= day, findings.c.day >= day)
        .order_by(findings.c.first_seen.desc(), findings.c.id)
        .limit(_MOST)
    )
    return [Finding(**row) for row in (await connection.execute(query)).mappings()]


async def read_finding(connection: AsyncConnection, finding_id: str, *, changing: bool = False) -> Finding | None:
    """Read one finding; with ``changing`` it is locked until this transaction ends."""
    query = select(findings).where(findings.c.id == finding_id)
    row = (await connection.execute(query.with_for_update() if changing else query)).mappings().first()
    return None if row is None else Finding(**row)


async def read_unanswered(connection: AsyncConnection, coder: str, deployment: str) -> list[Finding]:
    """Read and lock the unanswered findings of a deployment until this transaction ends."""
    table = findings
    query = (
        select(table)
        .where(table.c.coder == coder, table.c.deployment == deployment, table.c.state != ANSWERED)
        .order_by(table.c.id)
        .with_for_update()
    )
    return [Finding(**row) for row in (await connection.execute(query)).mappings()]


async def read_all_unanswered(connection: AsyncConnection, coder: str) -> list[Finding]:
    """Read the unanswered findings of all deployments, the oldest first."""
    table = findings
    query = select(table).where(table.c.coder == coder, table.c.state != ANSWERED)
    query = query.order_by(table.c.first_seen, table.c.id)
    return [Finding(**row) for row in (await connection.execute(query)).mappings()]


async def read_events(connection: AsyncConnection, finding_id: str) -> list[FindingEvent]:
    """Read the events of a finding, in their order."""
    names = FindingEvent.__dataclass_fields__
    query = (
        select(*(finding_events.c[name] for name in names))
        .where(finding_events.c.finding_id == finding_id)
        .order_by(finding_events.c.id)
    )
    return [FindingEvent(**row) for row in (await connection.execute(query)).mappings()]


async def change_state(connection: AsyncConnection, ids: Sequence[str], event: FindingEvent) -> None:
    """Apply an event to findings: set their state, and who set it with which note."""
    table = findings
    changed = {"state": event.action, "by": event.by, "note": event.note}
    await connection.execute(update(table).where(table.c.id == func.any(list(ids))).values(changed))
    await add_events(connection, ids, event)


async def set_silence(connection: AsyncConnection, finding_id: str, event: FindingEvent) -> None:
    """Silence a finding until the event's time, or end its silence where the event has none."""
    changed = update(findings).where(findings.c.id == finding_id).values(silenced_until=event.until)
    await connection.execute(changed)
    await add_events(connection, [finding_id], event)


async def read_silenced(connection: AsyncConnection, now: datetime) -> list[Finding]:
    """Read the unanswered findings that are silenced."""
    table = findings
    query = select(table).where(table.c.silenced_until > now, table.c.state != ANSWERED).order_by(table.c.id)
    return [Finding(**row) for row in (await connection.execute(query)).mappings()]


async def add_events(connection: AsyncConnection, ids: Sequence[str], event: FindingEvent) -> None:
    """Add an event to the history of findings."""
    rows = [{"finding_id": each, **asdict(event)} for each in ids]
    await connection.execute(insert(finding_events), rows)


@dataclass(frozen=True, kw_only=True, slots=True)
class Delivery:
    """The message to post about one finding in one state."""

    finding_id: str
    state: str
    body: bytes
    created_at: datetime
    attempts: int = 0


async def add_delivery(connection: AsyncConnection, delivery: Delivery) -> None:
    """Queue a message to be posted at once; a finding is posted once in each state."""
    row = {name: getattr(delivery, name) for name in Delivery.__dataclass_fields__}
    await connection.execute(
        insert(webhook_deliveries).values(**row, next_at=delivery.created_at).on_conflict_do_nothing()
    )


async def take_due(connection: AsyncConnection, now: datetime, longest: timedelta) -> Delivery | None:
    """Lock one delivery that is due until this transaction ends.

    Those older than ``longest`` are given up, and those of a silenced finding wait.
    """
    table = webhook_deliveries
    silenced = select(findings.c.id).where(findings.c.silenced_until > now, findings.c.state != ANSWERED)
    query = (
        select(*(table.c[name] for name in Delivery.__dataclass_fields__))
        .where(table.c.delivered_at.is_(None), table.c.next_at <= now, table.c.created_at > now - longest)
        .where(table.c.finding_id.not_in(silenced))
        .order_by(table.c.next_at, table.c.finding_id, table.c.state)
        .limit(1)
        .with_for_update(skip_locked=True)
    )
    row = (await connection.execute(query)).mappings().first()
    return None if row is None else Delivery(**row)


async def record_delivered(connection: AsyncConnection, delivery: Delivery, now: datetime) -> None:
    """Record that a delivery has arrived."""
    await _change(connection, delivery, delivered_at=now, error=None)


async def record_failed(connection: AsyncConnection, delivery: Delivery, error: str, next_at: datetime) -> None:
    """Record why a delivery failed, and when it is tried again."""
    await _change(connection, delivery, error=error, next_at=next_at)


async def _change(connection: AsyncConnection, delivery: Delivery, **values: object) -> None:
    table = webhook_deliveries
    await connection.execute(
        update(table)
        .where(table.c.finding_id == delivery.finding_id, table.c.state == delivery.state)
        .values(attempts=delivery.attempts + 1, **values)
    )
