"""Exposures in the store: what replays came to when they were concluded, by group and measure."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, delete, func, insert, select
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.store.exposure_tables import exposures

#: What one replay says once, in this order.
_KEY: Final = ("deployment", "origin", "route", "task", "rubric", "claim", "metric")


@dataclass(frozen=True, kw_only=True, slots=True)
class ExposureRow:
    """How far one measure of one group could be moved, or why that cannot be said."""

    replay_id: str
    concluded_at: datetime
    selection: str
    deployment: str
    origin: str
    route: str | None  #: of clients
    task: str | None  #: as first asked; only probes have one
    rubric: str
    claim: str | None
    metric: str
    exposure: Mapping[str, Any]  #: as ``comparison.json`` has it


async def keep_exposures(connection: AsyncConnection, replay_id: str, rows: Sequence[ExposureRow]) -> bool:
    """Put what a replay says in the place of what it said before; say whether it says anything else.

    A replay that is concluded again to the same keeps the moment at which it first said so.
    """
    before = await _read(connection, exposures.c.replay_id == replay_id)
    if [_said(row) for row in before] == [_said(row) for row in sorted(rows, key=_order)]:
        return False
    await connection.execute(delete(exposures).where(exposures.c.replay_id == replay_id))
    if rows:
        await connection.execute(insert(exposures), [asdict(row) for row in rows])
    return True


def _said(row: ExposureRow) -> tuple[object, ...]:
    return (*_order(row), row.selection, dict(row.exposure))


def _order(row: ExposureRow) -> tuple[str, ...]:
    return (row.replay_id, *(getattr(row, name) or "" for name in _KEY))


async def read_exposures(
    connection: AsyncConnection, since: datetime, until: datetime, as_of: datetime
) -> list[ExposureRow]:
    """Read what the replays say that were concluded in [since, until), and not after ``as_of``; the oldest first."""
    concluded = exposures.c.concluded_at
    rows = await _read(connection, (concluded >= since) & (concluded < until) & (concluded <= as_of))
    return sorted(rows, key=lambda row: row.concluded_at)


async def newest_exposure(
    connection: AsyncConnection, since: datetime | None = None, until: datetime | None = None
) -> datetime | None:
    """Tell when a replay was last concluded, of all or in [since, until)."""
    query = select(func.max(exposures.c.concluded_at))
    if since is not None:
        query = query.where(exposures.c.concluded_at >= since)
    if until is not None:
        query = query.where(exposures.c.concluded_at < until)
    found: datetime | None = (await connection.execute(query)).scalar()
    return found


async def latest_exposures(connection: AsyncConnection) -> list[ExposureRow]:
    """Read what the latest replay says of each measure of each deployment, origin, route and first format."""
    of = [exposures.c[name] for name in ("deployment", "origin", "route", "task", "rubric", "metric")]
    latest = (*of, exposures.c.concluded_at.desc(), exposures.c.replay_id)
    query = select(exposures).ext(distinct_on(*of)).order_by(*latest)
    found = [ExposureRow(**row) for row in (await connection.execute(query)).mappings()]
    return sorted(found, key=_order)


async def _read(connection: AsyncConnection, which: ColumnElement[bool]) -> list[ExposureRow]:
    rows = (await connection.execute(select(exposures).where(which))).mappings()
    return sorted((ExposureRow(**row) for row in rows), key=_order)
