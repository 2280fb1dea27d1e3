"""The newest snapshot of estimates: replaced as a whole, and read by everything that shows a number."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from sqlalchemy import delete, func, insert, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.store.coding_tables import estimates

#: What rows can be asked for by.
FILTERS: Final = ("deployment", "origin", "rubric", "condition", "window", "metric", "layer", "base")
#: PostgreSQL takes 32,767 parameters a statement.
_AT_ONCE: Final = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class EstimateRow:
    """One number as it is shown everywhere, or why there is none (``missing``)."""

    as_of: datetime
    deployment: str | None
    origin: str
    rubric: str
    condition: str
    window: str
    since: datetime
    coder: str
    metric: str
    layer: str | None = None
    base: str | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)
    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0
    n_statements: int | None = None
    n_eligible: int | None = None
    coverage: float | None = None
    method: str | None = None
    flags: tuple[str, ...] = ()
    missing: str | None = None
    seed: int = 0


_NAMES: Final = tuple(EstimateRow.__dataclass_fields__)


async def replace_estimates(connection: AsyncConnection, rows: Sequence[EstimateRow], as_of: datetime) -> bool:
    """Put a snapshot in the place of an older one; say whether it was. A newer one stays."""
    await connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('tiltmeter estimates'))"))
    newest = (await connection.execute(select(func.max(estimates.c.as_of)))).scalar()
    if newest is not None and newest > as_of:
        return False
    await connection.execute(delete(estimates))
    values = [_values(row) for row in rows]
    for start in range(0, len(values), _AT_ONCE):
        await connection.execute(insert(estimates), values[start : start + _AT_ONCE])
    return True


def _values(row: EstimateRow) -> dict[str, Any]:
    return {name: getattr(row, name) for name in _NAMES} | {"flags": list(row.flags), "detail": dict(row.detail)}


async def read_estimates(connection: AsyncConnection, **wanted: str) -> list[EstimateRow]:
    """Read the rows whose columns have these values, in the order of the snapshot."""
    query = select(estimates).order_by(estimates.c.id)
    for name, value in wanted.items():
        query = query.where(estimates.c[name] == value)
    return [_row(row) for row in (await connection.execute(query)).mappings()]


def _row(row: Mapping[Any, Any]) -> EstimateRow:
    return EstimateRow(**{name: row[name] for name in _NAMES} | {"flags": tuple(row["flags"])})


async def newest_as_of(connection: AsyncConnection) -> datetime | None:
    """Tell when the snapshot was made."""
    found: datetime | None = (await connection.execute(select(func.max(estimates.c.as_of)))).scalar()
    return found
