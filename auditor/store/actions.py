"""Store what findings do to routes; the history of each action is in the events of its finding."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime
from typing import Final

from sqlalchemy import (
    Boolean,
    Column,
    Date,
    DateTime,
    Double,
    ForeignKey,
    Table,
    Text,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.domain.actions import ActionKind, RouteAction
from auditor.domain.ids import day_bounds
from auditor.store.engine import metadata
from auditor.store.findings import findings
from auditor.store.monitor import monitor_watches

route_actions = Table(
    "route_actions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("finding_id", Text, ForeignKey(findings.c.id), nullable=False),
    Column("route", Text, nullable=False),
    Column("deployment", Text, nullable=False),
    Column("level", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("to", ARRAY(Text), nullable=False),
    Column("share", Double, nullable=False),
    Column("dry_run", Boolean, nullable=False),
    Column("began_at", DateTime(timezone=True), nullable=False),
    Column("evidence_day", Date, nullable=False),
    Column("expires_at", DateTime(timezone=True), nullable=False),
    Column("ended_at", DateTime(timezone=True)),
    Column("ended_because", Text),
)

#: Only one process decides at a time.
_LOCK: Final = text("SELECT pg_try_advisory_xact_lock(hashtext('biasmeter actions'))")
#: The greatest number of actions in one answer, the newest.
_MOST: Final = 1000
_COVERAGE: Final = text("""
    SELECT count(*) FILTER (WHERE uncoded IS NULL)::float8 / nullif(count(*), 0) FROM codings
    WHERE exchange_id >= :low AND exchange_id < :high AND coder = :coder AND deployment = :deployment
          AND origin = 'probe'
""")


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredAction:
    """An action of a finding on a route, in force until ``expires_at`` or ``ended_at``."""

    id: str
    finding_id: str
    route: str
    deployment: str
    level: str
    kind: ActionKind
    to: tuple[str, ...]
    share: float  #: share of the route's requests, in [0, 1)
    dry_run: bool
    began_at: datetime
    evidence_day: date  #: the newest day that shows the change
    expires_at: datetime
    ended_at: datetime | None = None
    ended_because: str | None = None

    def on_route(self) -> RouteAction:
        """Return what the gateway needs of it."""
        return RouteAction(
            id=self.id, route=self.route, deployment=self.deployment, kind=self.kind, to=self.to, share=self.share,
            expires_at=self.expires_at,
        )  # fmt: skip


async def lock_deciding(connection: AsyncConnection) -> bool:
    """Try to lock the decisions until this transaction ends, and return whether they are locked."""
    return bool((await connection.execute(_LOCK)).scalar())


async def read_actions(
    connection: AsyncConnection, since: datetime | None = None, finding_ids: Sequence[str] = ()
) -> list[StoredAction]:
    """Read actions, the oldest first: the newest thousand, or those in force, begun since a moment, or of findings."""
    table = route_actions
    query = select(table).order_by(table.c.began_at.desc(), table.c.id.desc())
    if since is None:
        query = query.limit(_MOST)
    else:
        wanted = (table.c.ended_at.is_(None), table.c.began_at >= since, table.c.finding_id.in_(finding_ids))
        query = query.where(or_(*wanted))
    rows = (await connection.execute(query)).mappings().all()
    return [StoredAction(**{**row, "to": tuple(row["to"])}) for row in reversed(rows)]


async def add_action(connection: AsyncConnection, action: StoredAction) -> None:
    """Store an action that begins."""
    await connection.execute(insert(route_actions).values({**asdict(action), "to": list(action.to)}))


async def renew_action(connection: AsyncConnection, action_id: str, day: date, expires_at: datetime) -> None:
    """Let an action last longer, because a later day shows the change."""
    changed = update(route_actions).where(route_actions.c.id == action_id)
    await connection.execute(changed.values(evidence_day=day, expires_at=expires_at))


async def end_action(connection: AsyncConnection, action_id: str, at: datetime, because: str) -> None:
    """End an action."""
    changed = update(route_actions).where(route_actions.c.id == action_id)
    await connection.execute(changed.values(ended_at=at, ended_because=because))


async def watched_through(connection: AsyncConnection, coder: str) -> dict[tuple[str, str], date]:
    """Return the last day that was tested, by deployment and metric."""
    table = monitor_watches
    query = select(table.c.deployment, table.c.metric, table.c.through).where(table.c.coder == coder)
    return {(row.deployment, row.metric): row.through for row in await connection.execute(query)}


async def read_coverage(connection: AsyncConnection, coder: str, deployment: str, first: date, last: date) -> float:
    """Return the share of a deployment's answers to probes that could be coded, from the first to the last day."""
    parameters = {"coder": coder, "deployment": deployment, "low": day_bounds(first)[0], "high": day_bounds(last)[1]}
    share = (await connection.execute(_COVERAGE, parameters)).scalar()
    return 0.0 if share is None else float(share)
