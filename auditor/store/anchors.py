"""Store the runs of judges over anchors, so that the newest can be compared with the first."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Column, DateTime, Identity, Table, Text, func, insert, select
from sqlalchemy.dialects.postgresql import JSONB, distinct_on
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.store.engine import metadata

anchor_runs = Table(
    "anchor_runs",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("judge", Text, nullable=False),
    Column("coder", Text, nullable=False),
    Column("anchor_set", Text, nullable=False),
    Column("at", DateTime(timezone=True), nullable=False),
    Column("labels", JSONB, nullable=False),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class AnchorRun:
    """The labels of one judge for all anchors of a set, by anchor id."""

    judge: str
    coder: str
    anchor_set: str
    at: datetime
    labels: Mapping[str, str]


async def add_run(connection: AsyncConnection, run: AnchorRun) -> None:
    """Store a run."""
    row = {name: getattr(run, name) for name in ("judge", "coder", "anchor_set", "at")}
    await connection.execute(insert(anchor_runs).values(**row, labels=dict(run.labels)))


async def newest_run_at(connection: AsyncConnection, coder: str, anchor_set: str) -> datetime | None:
    """Return when this coder was last asked."""
    query = select(func.max(anchor_runs.c.at)).where(
        anchor_runs.c.coder == coder, anchor_runs.c.anchor_set == anchor_set
    )
    newest: datetime | None = (await connection.execute(query)).scalar()
    return newest


async def read_runs(connection: AsyncConnection, anchor_set: str) -> dict[str, tuple[AnchorRun, AnchorRun]]:
    """Return, by judge, the first run of its current coder and its newest run, in the order of names."""
    table = anchor_runs
    newest = (
        select(table)
        .where(table.c.anchor_set == anchor_set)
        .ext(distinct_on(table.c.judge))
        .order_by(table.c.judge, table.c.at.desc(), table.c.id.desc())
    )
    last = [_run(row) for row in (await connection.execute(newest)).mappings()]
    first = (
        select(table)
        .where(table.c.anchor_set == anchor_set, table.c.coder.in_([run.coder for run in last]))
        .ext(distinct_on(table.c.judge, table.c.coder))
        .order_by(table.c.judge, table.c.coder, table.c.at, table.c.id)
    )
    firsts = {(run.judge, run.coder): run for run in map(_run, (await connection.execute(first)).mappings())}
    return {run.judge: (firsts[run.judge, run.coder], run) for run in last}


def _run(row: Mapping[Any, Any]) -> AnchorRun:
    return AnchorRun(**{name: row[name] for name in AnchorRun.__dataclass_fields__})
