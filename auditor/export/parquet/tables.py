"""Define the tables that are copied to Parquet files, and where the file of each day lies.

``FOLDER/codings/day=2026-03-01/codings.parquet`` has the codings of the exchanges that began on that day (UTC). Engines
that know this layout (DuckDB, Spark, Trino, pyarrow) read only the days that a query names.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from sqlalchemy import (
    BigInteger,
    Boolean,
    ColumnElement,
    DateTime,
    Double,
    Label,
    LargeBinary,
    Select,
    SmallInteger,
    Text,
    Uuid,
    and_,
    cast,
    func,
    select,
)
from sqlalchemy.dialects.postgresql import JSONB, aggregate_order_by
from sqlalchemy.types import TypeEngine

from auditor.domain.ids import day_bounds
from auditor.store.codings import codings, votes
from auditor.store.exchanges import exchanges
from auditor.store.tallies import tallies

#: Label of each judge, sorted by judge.
_VOTES: Final = pa.list_(pa.struct([("judge", pa.string()), ("label", pa.string())]))
_ARROW: Final[Sequence[tuple[type[TypeEngine[Any]], pa.DataType]]] = (
    (Uuid, pa.string()),
    (Text, pa.string()),
    (JSONB, pa.string()),
    (DateTime, pa.timestamp("us", tz="UTC")),
    (SmallInteger, pa.int16()),
    (BigInteger, pa.int64()),
    (Double, pa.float64()),
    (Boolean, pa.bool_()),
    (LargeBinary, pa.binary()),
)
_DAY: Final = re.compile(r"day=(\d{4}-\d{2}-\d{2})$")


@dataclass(frozen=True, kw_only=True, slots=True)
class DayTable:
    """A table of which each day becomes one file."""

    name: str
    rows: Select[Any]  #: all rows of all days
    schema: pa.Schema
    began: ColumnElement[Any]  #: the id or the hour that says to which day a row belongs
    state: Sequence[ColumnElement[Any]]  #: aggregates that change when rows of a day change
    coder: ColumnElement[str] | None  #: column of the coder, in tables of several coders

    def within(self, day: date, coders: Collection[str]) -> ColumnElement[bool]:
        """Return the condition of the rows of a day (UTC), where a table has coders only of these."""
        if isinstance(self.began.type, Uuid):
            low, high = day_bounds(day)
            inside = and_(self.began >= low, self.began < high)
        else:
            start = datetime.combine(day, time(), UTC)
            inside = and_(self.began >= start, self.began < start + timedelta(days=1))
        return inside if self.coder is None else and_(inside, self.coder.in_(sorted(coders)))


def _type(column: ColumnElement[Any]) -> pa.DataType:
    return next(arrow for kind, arrow in _ARROW if isinstance(column.type, kind))


def _table(
    name: str,
    columns: Sequence[ColumnElement[Any]],
    state: Sequence[ColumnElement[Any]],
    began: ColumnElement[Any],
    coder: ColumnElement[str] | None = None,
    further: Sequence[tuple[Label[Any], pa.DataType]] = (),
) -> DayTable:
    fields = [(column.key, _type(column)) for column in columns] + [(column.name, kind) for column, kind in further]
    written = [cast(column, Text).label(column.key) if isinstance(column.type, JSONB) else column for column in columns]
    return DayTable(
        name=name,
        rows=select(*written, *(column for column, _ in further)),
        schema=pa.schema(fields),
        began=began,
        state=state,
        coder=coder,
    )


def _votes() -> Label[Any]:
    """Return the votes on a coding, as JSON text that ``days`` reads."""
    vote = func.json_build_object("judge", votes.c.judge, "label", votes.c.label)
    listed = select(func.json_agg(aggregate_order_by(vote, votes.c.judge))).where(
        votes.c.exchange_id == codings.c.exchange_id, votes.c.coder == codings.c.coder
    )
    return listed.scalar_subquery().label("votes")


def _completion_tokens() -> Label[Any]:
    """Return the completion tokens of a coding's exchange, so that counting needs no join."""
    query = select(exchanges.c.completion_tokens).where(exchanges.c.id == codings.c.exchange_id)
    return query.scalar_subquery().label("completion_tokens")


EXCHANGES: Final = _table(
    "exchanges", list(exchanges.columns), [func.count(), func.max(cast(exchanges.c.id, Text))], exchanges.c.id
)
CODINGS: Final = _table(
    "codings",
    list(codings.columns),
    [func.count(), func.max(codings.c.coded_at)],
    codings.c.exchange_id,
    codings.c.coder,
    [(_completion_tokens(), pa.int64()), (_votes(), _VOTES)],
)
TALLIES: Final = _table(
    "tallies", list(tallies.columns), [func.count(), func.sum(tallies.c.n)], tallies.c.hour, tallies.c.coder
)
TABLES: Final = (EXCHANGES, CODINGS, TALLIES)


def file_of(folder: Path, table: str, day: date) -> Path:
    """Return the file of one day (UTC) of a table."""
    return folder / table / f"day={day.isoformat()}" / f"{table}.parquet"


def written_days(folder: Path, table: str) -> Iterator[date]:
    """Yield the days (UTC) of which a folder has a file of a table, the oldest first."""
    for path in sorted((folder / table).glob(f"day=*/{table}.parquet")):
        if match := _DAY.search(path.parent.name):
            yield date.fromisoformat(match[1])
