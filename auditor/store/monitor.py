"""Store the state of drift monitoring: closed days, their answers, and the states of the tests."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Date,
    DateTime,
    ForeignKey,
    Select,
    Table,
    Text,
    delete,
    func,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.domain.ids import day_bounds
from auditor.store.codings import coders
from auditor.store.engine import metadata
from auditor.store.references import monitor_references
from auditor.store.tallies import tallies

monitor_days = Table(
    "monitor_days",
    metadata,
    Column("coder", Text, ForeignKey(coders.c.id), primary_key=True),
    Column("day", Date, primary_key=True),
    Column("closed_at", DateTime(timezone=True), nullable=False),
    Column("watched", Boolean, nullable=False),
    Column("late", BigInteger, nullable=False),
)


monitor_watches = Table(
    "monitor_watches",
    metadata,
    Column("coder", Text, ForeignKey(coders.c.id), primary_key=True),
    Column("deployment", Text, primary_key=True),
    Column("metric", Text, primary_key=True),
    Column("reference_id", Text, ForeignKey(monitor_references.c.id), nullable=False),
    Column("through", Date, nullable=False),
    Column("state", JSONB(none_as_null=True)),
    Column("told", JSONB, key="summary", nullable=False),
)


#: Designs that ask the same statements repeatedly.
WATCHED_DESIGNS: Final = ("sentinel", "panel")


#: Number of past days to check for codings that were made after the day was closed.
_LATE_DAYS: Final = 7


#: Only one process runs the tests at a time.
_LOCK: Final = text("SELECT pg_try_advisory_xact_lock(hashtext('biasmeter monitor'))")


_PASSES: Final = """
    SELECT d.day, c.deployment, p.design, c.task, c.perspective, c.role, c.sentiment, c.cluster,
           c.sel, c.sel_reason, c.elab, c.elab_reason, count(*) AS n
    FROM codings c
    JOIN monitor_days d ON d.coder = c.coder AND d.day = (c.hour AT TIME ZONE 'UTC')::date
    JOIN exchanges e ON e.id = c.exchange_id AND e.id >= :low AND e.id < :high
    JOIN planned_calls a ON a.ref = e.ref JOIN plans p ON p.id = a.plan_id
    WHERE c.exchange_id >= :low AND c.exchange_id < :high AND c.coder = :coder AND c.origin = 'probe'
          AND c.uncoded IS NULL AND c.coded_at <= d.closed_at AND p.design = ANY(:designs)
          AND (CAST(:deployments AS text[]) IS NULL OR c.deployment = ANY(:deployments))
    GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12
    ORDER BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12
"""


_LATE: Final = """
    UPDATE monitor_days d SET late = counted.n
    FROM (
        SELECT c.coder, (c.hour AT TIME ZONE 'UTC')::date AS day, count(*) AS n
        FROM codings c JOIN monitor_days m ON m.coder = c.coder AND m.day = (c.hour AT TIME ZONE 'UTC')::date
        WHERE c.exchange_id >= :low AND c.exchange_id < :high AND c.coder = :coder AND c.origin = 'probe'
              AND c.coded_at > m.closed_at
        GROUP BY 1, 2
    ) AS counted
    WHERE d.coder = counted.coder AND d.day = counted.day AND d.late < counted.n
    RETURNING d.day, d.late
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class ClosedDay:
    """A day of one coder's codings, as they were at one moment."""

    coder: str
    day: date
    closed_at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredWatch:
    """The state of one test after one day."""

    coder: str
    deployment: str
    metric: str
    reference_id: str
    through: date
    state: Mapping[str, Any] | None  #: None if the measure has no reference
    summary: Mapping[str, Any]  #: fields of the state that are exported


@dataclass(frozen=True, kw_only=True, slots=True)
class DriftSummaryRow:
    """What is exported of one test."""

    deployment: str
    metric: str
    reference_id: str
    summary: Mapping[str, Any]


async def lock_watching(connection: AsyncConnection) -> bool:
    """Try to lock monitoring until this transaction ends, and return whether it is locked."""
    return bool((await connection.execute(_LOCK)).scalar())


async def next_to_close(connection: AsyncConnection, coder: str) -> date | None:
    """Return the day after the last closed one, or at first the first day with a counted probe."""
    days = select(func.max(monitor_days.c.day)).where(monitor_days.c.coder == coder)
    newest: date | None = (await connection.execute(days)).scalar()
    if newest is not None:
        return newest + timedelta(days=1)
    query = select(func.min(tallies.c.hour)).where(tallies.c.coder == coder, tallies.c.origin == "probe")
    first: datetime | None = (await connection.execute(query)).scalar()
    return None if first is None else first.astimezone(UTC).date()


async def close_day(connection: AsyncConnection, closed: ClosedDay) -> None:
    """Close a day: only codings that exist now count for it."""
    await connection.execute(insert(monitor_days).values(**asdict(closed), watched=False, late=0))


async def count_late(connection: AsyncConnection, coder: str, day: date) -> dict[date, int]:
    """Count late codings of the week before ``day``, and return the days with more than before."""
    low, _ = day_bounds(day - timedelta(days=_LATE_DAYS))
    rows = await connection.execute(text(_LATE), {"coder": coder, "low": low, "high": day_bounds(day)[0]})
    return {row.day: row.late for row in rows}


async def unwatched_day(connection: AsyncConnection, coder: str) -> ClosedDay | None:
    """Return the oldest closed day that has not been tested."""
    table = monitor_days
    query = (
        select(table.c.coder, table.c.day, table.c.closed_at)
        .where(table.c.coder == coder, ~table.c.watched)
        .order_by(table.c.day)
        .limit(1)
    )
    row = (await connection.execute(query)).mappings().first()
    return None if row is None else ClosedDay(**row)


async def mark_watched(connection: AsyncConnection, closed: ClosedDay) -> None:
    """Record that a day has been tested."""
    table = monitor_days
    await connection.execute(
        update(table).where(table.c.coder == closed.coder, table.c.day == closed.day).values(watched=True)
    )


async def count_passes(
    connection: AsyncConnection, coder: str, first: date, last: date, deployments: Sequence[str] | None = None
) -> list[Mapping[str, Any]]:
    """Count the answers of the closed days from first to last, as they were when the days were closed.

    Only the codings of these days are read.

    Returns
    -------
    list of mapping
        ``day``, ``deployment``, ``design``, the condition's factors, ``cluster``, both labels and their reasons, ``n``.
    """
    parameters = {
        "coder": coder, "low": day_bounds(first)[0], "high": day_bounds(last)[1], "designs": list(WATCHED_DESIGNS),
        "deployments": None if deployments is None else list(deployments),
    }  # fmt: skip
    return [dict(row) for row in (await connection.execute(text(_PASSES), parameters)).mappings()]


async def read_watches(connection: AsyncConnection, coder: str) -> list[StoredWatch]:
    """Read all test states of a coder, by deployment and metric."""
    table = monitor_watches
    query = _select_fields(StoredWatch).where(table.c.coder == coder).order_by(table.c.deployment, table.c.metric)
    return [StoredWatch(**row) for row in (await connection.execute(query)).mappings()]


async def read_summaries(connection: AsyncConnection, coder: str) -> list[DriftSummaryRow]:
    """Read what is exported of a coder's tests, by deployment and metric, without the larger states."""
    table = monitor_watches
    query = _select_fields(DriftSummaryRow).where(table.c.coder == coder).order_by(table.c.deployment, table.c.metric)
    return [DriftSummaryRow(**row) for row in (await connection.execute(query)).mappings()]


async def write_watches(connection: AsyncConnection, watches: Sequence[StoredWatch]) -> None:
    """Replace the states of tests."""
    if not watches:
        return
    new = insert(monitor_watches)
    changed = {name: new.excluded[name] for name in ("reference_id", "through", "state", "summary")}
    upsert = new.on_conflict_do_update(index_elements=["coder", "deployment", "metric"], set_=changed)
    await connection.execute(upsert, [asdict(watch) for watch in watches])


async def drop_watches(connection: AsyncConnection, coder: str, deployment: str) -> None:
    """Delete the test states of a deployment, whose reference has changed."""
    table = monitor_watches
    await connection.execute(delete(table).where(table.c.coder == coder, table.c.deployment == deployment))


def _select_fields(row: type[StoredWatch | DriftSummaryRow]) -> Select[Any]:
    return select(*(monitor_watches.c[name].label(name) for name in row.__dataclass_fields__))
