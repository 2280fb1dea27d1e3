"""Store the exposures that finished replays found, by group and measure."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Column, ColumnElement, DateTime, Table, Text, delete, func, insert, select
from sqlalchemy.dialects.postgresql import JSONB, distinct_on
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.documents.base import Missing
from auditor.documents.codec import convert
from auditor.documents.comparison import ExposureEntry
from auditor.store.engine import metadata

exposures = Table(
    "exposures",
    metadata,
    Column("replay_id", Text, nullable=False),
    Column("concluded_at", DateTime(timezone=True), nullable=False),
    Column("selection", Text, nullable=False),
    Column("deployment", Text, nullable=False),
    Column("origin", Text, nullable=False),
    Column("route", Text),
    Column("task", Text),
    Column("rubric", Text, nullable=False),
    Column("claim", Text),
    Column("metric", Text, nullable=False),
    Column("exposure", JSONB, nullable=False),
)


#: The unique key within one replay, in this order.
_KEY: Final = ("deployment", "origin", "route", "task", "rubric", "claim", "metric")


@dataclass(frozen=True, kw_only=True, slots=True)
class ExposureRow:
    """How far one measure of one group could be moved, or the reason why that is unknown."""

    replay_id: str
    concluded_at: datetime
    selection: str
    deployment: str
    origin: str
    route: str | None  #: route of client traffic
    task: str | None  #: task of the original question; None without a probe
    rubric: str
    claim: str | None
    metric: str
    exposure: Mapping[str, Any]  #: the entry of ``comparison.json``, as JSON: reports digest it as it is stored

    @property
    def entry(self) -> ExposureEntry | Missing:
        """The exposure as ``comparison.json`` defines it.

        Raises
        ------
        InputError
            The stored JSON is no such entry.
        """
        name = f"replay {self.replay_id}"
        if "missing" in self.exposure:
            return convert(self.exposure, Missing, name)
        return convert(self.exposure, ExposureEntry, name)


async def replace_exposures(connection: AsyncConnection, replay_id: str, rows: Sequence[ExposureRow]) -> bool:
    """Replace the stored exposures of a replay, and return whether anything changed.

    A replay that is finished again with the same result keeps its first time.
    """
    before = await _read(connection, exposures.c.replay_id == replay_id)
    if [_content(row) for row in before] == [_content(row) for row in sorted(rows, key=_order)]:
        return False
    await connection.execute(delete(exposures).where(exposures.c.replay_id == replay_id))
    if rows:
        await connection.execute(insert(exposures), [asdict(row) for row in rows])
    return True


def _content(row: ExposureRow) -> tuple[object, ...]:
    return (*_order(row), row.selection, dict(row.exposure))


def _order(row: ExposureRow) -> tuple[str, ...]:
    return (row.replay_id, *(getattr(row, name) or "" for name in _KEY))


async def read_exposures(
    connection: AsyncConnection, since: datetime, until: datetime, as_of: datetime
) -> list[ExposureRow]:
    """Read the exposures of replays finished in [since, until) and not after ``as_of``, the oldest first."""
    concluded = exposures.c.concluded_at
    rows = await _read(connection, (concluded >= since) & (concluded < until) & (concluded <= as_of))
    return sorted(rows, key=lambda row: row.concluded_at)


async def newest_exposure(
    connection: AsyncConnection, since: datetime | None = None, until: datetime | None = None
) -> datetime | None:
    """Return when a replay was last finished, at any time or in [since, until)."""
    query = select(func.max(exposures.c.concluded_at))
    if since is not None:
        query = query.where(exposures.c.concluded_at >= since)
    if until is not None:
        query = query.where(exposures.c.concluded_at < until)
    newest: datetime | None = (await connection.execute(query)).scalar()
    return newest


async def latest_exposures(connection: AsyncConnection) -> list[ExposureRow]:
    """Read the latest exposure of each measure, deployment, origin, route and original task."""
    of = [exposures.c[name] for name in ("deployment", "origin", "route", "task", "rubric", "metric")]
    latest = (*of, exposures.c.concluded_at.desc(), exposures.c.replay_id)
    query = select(exposures).ext(distinct_on(*of)).order_by(*latest)
    rows = [ExposureRow(**row) for row in (await connection.execute(query)).mappings()]
    return sorted(rows, key=_order)


async def _read(connection: AsyncConnection, condition: ColumnElement[bool]) -> list[ExposureRow]:
    rows = (await connection.execute(select(exposures).where(condition))).mappings()
    return sorted((ExposureRow(**row) for row in rows), key=_order)
