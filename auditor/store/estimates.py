"""Store the newest snapshot of estimates, which is replaced as a whole and read by everything that shows a number."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Column,
    DateTime,
    Double,
    Identity,
    Select,
    Table,
    Text,
    and_,
    delete,
    func,
    insert,
    or_,
    select,
    text,
    tuple_,
)
from sqlalchemy.dialects.postgresql import JSONB, distinct_on
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.domain.estimate import Estimate, Insufficient
from auditor.store.engine import metadata

estimates = Table(
    "estimates",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("as_of", DateTime(timezone=True), nullable=False),
    Column("deployment", Text),
    Column("origin", Text, nullable=False),
    Column("rubric", Text, nullable=False),
    Column("condition", Text, nullable=False),
    Column("window", Text, nullable=False),
    Column("since", DateTime(timezone=True), nullable=False),
    Column("coder", Text, nullable=False),
    Column("metric", Text, nullable=False),
    Column("layer", Text),
    Column("base", Text),
    Column("detail", JSONB, nullable=False),
    Column("value", Double),
    Column("low", Double),
    Column("high", Double),
    Column("n", BigInteger, nullable=False),
    Column("n_statements", BigInteger),
    Column("n_eligible", BigInteger),
    Column("n_effective", Double),
    Column("coverage", Double),
    Column("method", Text),
    Column("flags", ARRAY(Text), nullable=False),
    Column("missing", Text),
    Column("seed", BigInteger, nullable=False),
)


#: Columns by which rows can be filtered.
FILTERS: Final = ("deployment", "origin", "rubric", "condition", "window", "metric", "layer", "base")


#: Rows in one statement; PostgreSQL takes 32,767 parameters.
_AT_ONCE: Final = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class EstimateRow:
    """One number as it is shown everywhere, or the reason why there is none (``missing``)."""

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
    n_effective: float | None = None  #: effective number of responses (Kish)
    coverage: float | None = None
    method: str | None = None
    flags: tuple[str, ...] = ()
    missing: str | None = None
    seed: int = 0


def with_estimate(row: EstimateRow, estimate: Estimate | Insufficient) -> EstimateRow:
    """Return a row with an estimate, or with the reason why there is none."""
    if isinstance(estimate, Insufficient):
        return replace(row, missing=estimate.reason)
    return replace(
        row, value=estimate.value, low=estimate.low, high=estimate.high, n=estimate.n,
        n_statements=estimate.n_statements, n_effective=estimate.n_effective, method=estimate.method,
        flags=estimate.flags,
    )  # fmt: skip


_NAMES: Final = tuple(EstimateRow.__dataclass_fields__)
_EACH: Final = select(*(estimates.c[name] for name in _NAMES))
_ALL_ROWS: Final = _EACH.order_by(estimates.c.id)
#: Metric, layer and base.
Measure = tuple[str, str, str]


async def replace_estimates(connection: AsyncConnection, rows: Sequence[EstimateRow], as_of: datetime) -> bool:
    """Replace an older snapshot, and return whether it was older; a newer one is kept."""
    await connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('biasmeter estimates'))"))
    newest = (await connection.execute(select(func.max(estimates.c.as_of)))).scalar()
    if newest is not None and newest > as_of:
        return False
    await connection.execute(delete(estimates))
    values = [
        ({name: getattr(row, name) for name in _NAMES} | {"flags": list(row.flags), "detail": dict(row.detail)})
        for row in rows
    ]
    for start in range(0, len(values), _AT_ONCE):
        await connection.execute(insert(estimates), values[start : start + _AT_ONCE])
    return True


async def read_estimates(connection: AsyncConnection, **wanted: str | Sequence[str]) -> list[EstimateRow]:
    """Read the rows whose columns have these values, or one of several, in the order of the snapshot."""
    query = _ALL_ROWS
    for name, value in wanted.items():
        column = estimates.c[name]
        query = query.where(column == value if isinstance(value, str) else column.in_(value))
    return await _rows(connection, query)


async def read_comparable(
    connection: AsyncConnection, window: str, measures: Collection[Measure], deployment: str | None = None
) -> list[EstimateRow]:
    """Read the rows by which deployments are compared: all conditions of their probes together, and their traffic.

    Parameters
    ----------
    connection, window
        Connection to the store, and the window's name.
    measures
        Metric, layer and base of the rows; an empty text where a row has none.
    deployment
        The only deployment to read; None: all.
    """
    columns = estimates.c
    whole = or_(columns.condition == "all", columns.origin == "client")
    measure = tuple_(columns.metric, func.coalesce(columns.layer, ""), func.coalesce(columns.base, ""))
    metrics = sorted({metric for metric, _, _ in measures})  # for the index
    query = _ALL_ROWS.where(columns.metric.in_(metrics), columns.window == window, whole, measure.in_(measures))
    return await _rows(connection, query if deployment is None else query.where(columns.deployment == deployment))


async def read_signals(connection: AsyncConnection, window: str) -> list[EstimateRow]:
    """Read the rows that tell of drift and peers of all deployments, and the changes of the union rate over one window.

    Left out are verdicts that were not reached, and of a deployment's alarms that were not raised all but one.
    """
    columns = estimates.c
    nonzero = or_(columns.value != 0, columns.value.is_(None))
    alarms = and_(columns.metric.in_(("drift_alarm", "peer_verdict")), nonzero)
    unknown = and_(columns.metric == "drift_evidence", columns.missing.is_not(None))
    union = columns.detail["measure"].astext == "ber_union_full"
    changes = and_(columns.metric == "change", columns.window == window, union)
    quiet = _EACH.where(columns.metric == "drift_alarm", columns.value == 0).ext(distinct_on(columns.deployment))
    return [
        *await _rows(connection, _ALL_ROWS.where(or_(alarms, unknown, changes))),
        *await _rows(connection, quiet.order_by(columns.deployment, columns.id)),
    ]


async def _rows(connection: AsyncConnection, query: Select[Any]) -> list[EstimateRow]:
    rows = []
    for row in await connection.execute(query):
        values = dict(zip(_NAMES, row, strict=True))
        values["flags"] = tuple(values["flags"])
        rows.append(EstimateRow(**values))
    return rows


async def newest_as_of(connection: AsyncConnection) -> datetime | None:
    """Return when the snapshot was made, which is the same for all of its rows."""
    as_of: datetime | None = (await connection.execute(select(estimates.c.as_of).limit(1))).scalar()
    return as_of
