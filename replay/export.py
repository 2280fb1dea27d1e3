"""Stored exchanges into a file of lines: streamed through a server-side cursor, so that any number takes little memory.

``stored`` asks the store, ``exchange_file`` says what a line is.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from auditor.rows import writing
from auditor.store.engine import reading
from replay import stored
from replay.drawing import Draw
from replay.exchange_file import record_of
from replay.selecting import Selection

#: Lines between two looks at the progress.
_EVERY: Final = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class _Place:
    """An exchange as the draw sees it."""

    id: UUID
    inclusion: float


async def export_exchanges(
    engine: AsyncEngine,
    selection: Selection,
    out: Path,
    *,
    content: bool,
    on_progress: Callable[[int, int], None],
) -> int:
    """Write the selected exchanges, the oldest first, and give how many; the same store gives the same bytes.

    Parameters
    ----------
    selection
        Which; of all outcomes, whether they can be asked again or not.
    content
        Whether request and answer go with the facts, where they are kept.
    on_progress
        Told how many are written, and of how many.

    Raises
    ------
    InputError
        The file cannot be written.
    StoreUnavailable
        PostgreSQL does not answer.
    """
    done = 0
    with writing(out) as write:
        async with reading(engine) as connection:
            rows, total = await _select(connection, selection, content=content)
            async for row, chance in rows:
                write(record_of(row, chance))
                done += 1
                if done % _EVERY == 0:
                    on_progress(done, total)
    on_progress(done, done)
    return done


_Rows = AsyncIterator[tuple[Mapping[str, Any], float]]


async def _select(connection: AsyncConnection, selection: Selection, *, content: bool) -> tuple[_Rows, int]:
    """Give the rows with their chances, and how many there are."""
    if selection.limit is None:
        total = await stored.count_exchanges(connection, selection)
        return _with_chances(stored.stream_exchanges(connection, selection, content=content), {}), total
    draw = Draw[_Place](selection)
    async for each, inclusion in stored.stream_places(connection, selection):
        draw.show(_Place(id=each, inclusion=inclusion))
    ids = [one.id for one in draw.taken]
    return _with_chances(stored.stream_drawn(connection, ids, content=content), draw.chances), len(ids)


async def _with_chances(rows: AsyncIterator[Mapping[str, Any]], chances: Mapping[float, float]) -> _Rows:
    async for row in rows:
        yield row, chances.get(row["inclusion"], 1.0)
