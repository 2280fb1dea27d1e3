"""Read codings with their votes, a page at a time."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ColumnElement, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.domain.ids import floor_id
from auditor.store.codings import codings, votes

#: The column of each filter.
FILTERS: Final = {
    "statement_id": codings.c.cluster,
    **{
        name: codings.c[name]
        for name in (
            *("deployment", "origin", "rubric", "audit", "claim", "task", "perspective", "role", "sentiment"),
            *("category", "sel", "elab"),
        )
    },
}
#: Rows of a page.
_PAGE: Final = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class CodedSelection:
    """Which codings are read."""

    equal: Mapping[str, str] = field(default_factory=dict)  #: values by filter; other filters than ``FILTERS`` fail
    since: datetime | None = None  #: None: from the first
    until: datetime | None = None  #: not included; None: to the last


async def read_coded(
    connection: AsyncConnection, coders: Collection[str], selection: CodedSelection
) -> AsyncIterator[list[tuple[Mapping[str, Any], list[dict[str, str]]]]]:
    """Read codings of both layers, the oldest exchange first, each with its votes.

    Exchanges that could not be coded are left out.

    Yields
    ------
    list of (mapping, list)
        A page: the columns of ``codings``, and ``judge`` and ``label`` of each vote.
    """
    wanted = [codings.c.coder.in_(sorted(coders)), codings.c.uncoded.is_(None)]
    wanted += [FILTERS[name] == value for name, value in selection.equal.items()]
    if selection.until is not None:
        wanted.append(codings.c.exchange_id < floor_id(selection.until))
    query = select(codings).order_by(codings.c.exchange_id, codings.c.coder).limit(_PAGE)
    if selection.since is not None:
        wanted.append(codings.c.exchange_id >= floor_id(selection.since))
    after: list[ColumnElement[bool]] = []
    while True:
        page = (await connection.execute(query.where(*wanted, *after))).mappings().all()
        if not page:
            return
        cast = await _votes(connection, [row["exchange_id"] for row in page])
        yield [(row, cast.get((row["exchange_id"], row["coder"]), [])) for row in page]
        last = page[-1]["exchange_id"], page[-1]["coder"]
        after = [tuple_(codings.c.exchange_id, codings.c.coder) > last]


async def _votes(connection: AsyncConnection, ids: Sequence[UUID]) -> dict[tuple[UUID, str], list[dict[str, str]]]:
    query = (
        select(votes.c.exchange_id, votes.c.coder, votes.c.judge, votes.c.label)
        .where(votes.c.exchange_id.in_(ids))
        .order_by(votes.c.exchange_id, votes.c.coder, votes.c.judge)
    )
    found: dict[tuple[UUID, str], list[dict[str, str]]] = {}
    for row in await connection.execute(query):
        found.setdefault((row.exchange_id, row.coder), []).append({"judge": row.judge, "label": row.label})
    return found
