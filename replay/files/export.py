"""Export stored exchanges to a file through a server-side cursor, with bounded memory.

``exchange_line`` makes the lines; ``selection`` draws the exchanges if there is a limit.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Select, and_, func, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from auditor.documents.jsonl import writing
from auditor.store.engine import transaction
from auditor.store.exchanges import exchange_content, exchanges, planned_instances
from auditor.store.plans import planned_calls, statements
from replay.files.exchange_line import record_of
from replay.selection import ExchangeSelection, SampleDraw
from replay.store import ASKED, CURSOR, bounds, chunks, planned_bounds

#: Number of lines between two progress reports.
_EVERY: Final = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class _Place:
    """The fields of an exchange that a sample draw needs."""

    id: UUID
    inclusion: float


async def export_exchanges(
    engine: AsyncEngine,
    selection: ExchangeSelection,
    out: Path,
    *,
    content: bool,
    on_progress: Callable[[int, int], None],
) -> int:
    """Write the selected exchanges, the oldest first, and return their number. The same store gives the same bytes.

    Parameters
    ----------
    selection
        The exchanges to export, of all outcomes, whether they can be asked again or not.
    content
        Whether to export stored requests and answers with the facts.
    on_progress
        Gets the number of written exchanges, and the number of all.

    Raises
    ------
    InputError
        The file cannot be written.
    StoreUnavailable
        PostgreSQL does not answer.
    """
    done = 0
    with writing(out) as write:
        async with transaction(engine) as connection:
            rows, total = await _select(connection, selection, content=content)
            async for row, chance in rows:
                write(record_of(row, chance))
                done += 1
                if done % _EVERY == 0:
                    on_progress(done, total)
    on_progress(done, done)
    return done


_Rows = AsyncIterator[tuple[Mapping[str, Any], float]]


async def _select(connection: AsyncConnection, selection: ExchangeSelection, *, content: bool) -> tuple[_Rows, int]:
    """Return the rows with their probabilities, and the number of rows."""
    if selection.limit is None:
        total = await _count(connection, selection)
        return _with_chances(_stream_all(connection, selection, content=content), {}), total
    draw = SampleDraw[_Place](selection)
    async for place in _stream_places(connection, selection):
        draw.show(place)
    ids = [drawn.id for drawn in draw.taken]
    return _with_chances(_stream_drawn(connection, ids, content=content), draw.chances), len(ids)


async def _with_chances(rows: AsyncIterator[Mapping[str, Any]], chances: Mapping[float, float]) -> _Rows:
    async for row in rows:
        yield row, chances.get(row["inclusion"], 1.0)


async def _count(connection: AsyncConnection, selection: ExchangeSelection) -> int:
    """Count the exchanges that match a selection, of all outcomes."""
    query = _selected(select(func.count()), selection)
    return int((await connection.execute(query)).scalar_one())


async def _stream_places(connection: AsyncConnection, selection: ExchangeSelection) -> AsyncIterator[_Place]:
    """Stream the fields that a draw needs of the exchanges that match a selection."""
    query = _selected(select(exchanges.c.id, exchanges.c.inclusion), selection)
    async for row in await connection.stream(query.execution_options(yield_per=CURSOR)):
        yield _Place(id=row.id, inclusion=row.inclusion)


async def _stream_all(
    connection: AsyncConnection, selection: ExchangeSelection, *, content: bool
) -> AsyncIterator[Mapping[str, Any]]:
    """Stream the exchanges that match a selection by id, the oldest first; with ``content``, also stored content."""
    query = _selected(_whole(content=content), selection, calls_joined=True).order_by(exchanges.c.id)
    async for row in (await connection.stream(query.execution_options(yield_per=CURSOR))).mappings():
        yield _nested(row)


async def _stream_drawn(
    connection: AsyncConnection, ids: Iterable[UUID], *, content: bool
) -> AsyncIterator[Mapping[str, Any]]:
    """Stream exchanges by their ids, in their order."""
    for chunk in chunks(ids):
        query = _whole(content=content).where(exchanges.c.id.in_(chunk)).order_by(exchanges.c.id)
        async for row in (await connection.stream(query.execution_options(yield_per=CURSOR))).mappings():
            yield _nested(row)


def _selected(query: Select[Any], selection: ExchangeSelection, *, calls_joined: bool = False) -> Select[Any]:
    """Add the conditions of a selection to a query of exchanges."""
    origins = [str(origin) for origin in selection.origins]
    query = query.where(exchanges.c.origin.in_(origins), *bounds(selection))
    planned = planned_bounds(selection)
    if planned and not calls_joined:
        query = query.join(planned_calls, planned_calls.c.ref == exchanges.c.ref)
    return query.where(*planned)


def _whole(*, content: bool) -> Select[Any]:
    """Select exchanges with their planned calls; with ``content``, also their stored content."""
    planned = [planned_calls.c[name].label(f"asked_{name}") for name in ASKED]
    counted = planned_instances.c.exchange_id.is_not(None).label("asked_counted")
    query = (
        select(exchanges, *planned, counted, statements.c.record.label("asked_statement"))
        .outerjoin(planned_calls, planned_calls.c.ref == exchanges.c.ref)
        .outerjoin(statements, statements.c.id == planned_calls.c.statement_id)
        .outerjoin(
            planned_instances,
            and_(planned_instances.c.ref == exchanges.c.ref, planned_instances.c.exchange_id == exchanges.c.id),
        )
    )
    if not content:
        return query
    kept = (exchange_content.c.request, exchange_content.c.response)
    return query.add_columns(*kept).outerjoin(exchange_content, exchange_content.c.id == exchanges.c.id)


def _nested(row: Mapping[Any, Any]) -> Mapping[str, Any]:
    flat = {name: value for name, value in row.items() if not name.startswith("asked_")}
    if row["asked_plan_id"] is None:
        return flat | {"asked": {}}
    planned = {name: row[f"asked_{name}"] for name in ASKED}
    statement = {name: value for name, value in row["asked_statement"].items() if value is not None}
    planned |= {"counted": row["asked_counted"], "statement": statement}
    return flat | {"asked": planned}
