"""Copy days of the store to a folder of Parquet files; a day is written again only if its rows have changed."""

import json
import secrets
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pyarrow as pa
from pyarrow import parquet
from sqlalchemy import func, select, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from auditor.domain.ids import id_time
from auditor.errors import InputError
from auditor.export.parquet.tables import TABLES, DayTable, file_of, written_days
from auditor.store.engine import transaction
from auditor.store.exchanges import exchanges

#: Rows of a row group.
_GROUP: Final = 50_000
#: What the metadata of a file says about the rows it was made from.
_STATE: Final = b"biasmeter.state"


@dataclass(frozen=True, kw_only=True, slots=True)
class DayFile:
    """What was done with one file."""

    path: Path
    rows: int
    written: bool  #: False if the file was up to date


async def export_days(
    engine: AsyncEngine,
    folder: Path,
    coders: Collection[str],
    *,
    since: date | None = None,
    until: date | None = None,
    keep_from: date | None = None,
    on_file: Callable[[DayFile], None] = lambda _: None,
) -> list[DayFile]:
    """Write the files of days that are new or have changed.

    Parameters
    ----------
    folder
        Folder to write, created if absent. Files of other programs in it are not touched.
    coders
        Codings and tallies of these coders are written. A day that was written for others is written again.
    since, until
        First and last day (UTC); None: the first or last of the store.
    keep_from
        Files of earlier days are deleted: the store no longer keeps their rows. None: nothing is deleted.
    on_file
        Is called after each file.

    Raises
    ------
    InputError
        A file cannot be written.
    StoreUnavailable
        PostgreSQL does not answer.
    """
    try:
        if keep_from is not None:
            _delete_before(folder, keep_from)
        done = []
        for day in await _days(engine, since, until):
            async for file in _export_day(engine, folder, day, sorted(coders)):
                on_file(file)
                done.append(file)
        return done
    except OSError as error:
        raise InputError(f"{error.filename or folder}: cannot be written: {error.strerror}") from error


def _delete_before(folder: Path, first: date) -> None:
    for table in TABLES:
        for day in written_days(folder, table.name):
            if day < first:
                path = file_of(folder, table.name, day)
                path.unlink()
                if not any(path.parent.iterdir()):
                    path.parent.rmdir()


async def _days(engine: AsyncEngine, since: date | None, until: date | None) -> Sequence[date]:
    """Return the days from the first to the last exchange that is stored, within the bounds."""
    ends = [select(exchanges.c.id).order_by(order).limit(1) for order in (exchanges.c.id, exchanges.c.id.desc())]
    async with transaction(engine) as connection:
        bounds: list[UUID | None] = [(await connection.execute(query)).scalar() for query in ends]
    if bounds[0] is None or bounds[1] is None:
        return []
    first, last = id_time(bounds[0]).date(), id_time(bounds[1]).date()
    first, last = max(first, since or first), min(last, until or last)
    return [first + timedelta(days=number) for number in range((last - first).days + 1)]


async def _export_day(engine: AsyncEngine, folder: Path, day: date, coders: Sequence[str]) -> AsyncIterator[DayFile]:
    """Write the files of one day, all from one snapshot of the store."""
    async with transaction(engine) as connection:
        await connection.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"))
        for table in TABLES:
            path = file_of(folder, table.name, day)
            inside = table.within(day, coders)
            counted = (await connection.execute(select(*table.state, func.count()).where(inside))).one()
            rows = int(counted[-1])
            state = json.dumps([str(value) for value in counted] + (list(coders) if table.coder is not None else []))
            stale = state != _state_of(path)
            if stale:
                await _write(connection, table, table.rows.where(inside).order_by(table.began), path, state)
            yield DayFile(path=path, rows=rows, written=stale)


def _state_of(path: Path) -> str | None:
    """Return what a file was made from; None if there is no such file, or it cannot be read."""
    try:
        state = (parquet.read_schema(path).metadata or {}).get(_STATE)
    except (OSError, pa.ArrowInvalid):
        return None
    return None if state is None else state.decode()


async def _write(connection: AsyncConnection, table: DayTable, query: Any, path: Path, state: str) -> None:
    """Write one file. It appears only when it is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rough = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    schema = table.schema.with_metadata({_STATE: state})
    try:
        with parquet.ParquetWriter(rough, schema, compression="zstd") as file:
            rows = await connection.stream(query, execution_options={"yield_per": _GROUP})
            async for page in rows.mappings().partitions(_GROUP):
                file.write_table(pa.Table.from_pylist([_row(row) for row in page], schema=schema))
        rough.replace(path)
    finally:
        rough.unlink(missing_ok=True)


def _row(row: Mapping[Any, Any]) -> dict[str, Any]:
    return {name: str(value) if isinstance(value, UUID) else value for name, value in row.items()}
