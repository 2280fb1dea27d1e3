"""Answers of peers in a period, and who had scored them by a moment: what a report compares."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, Select, Table, func, or_, select, union, union_all
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.domain.ids import floor_id, id_time
from auditor.store.peer_tables import peer_scorers, peer_scores, peer_vectors
from auditor.store.period import Period

_TABLES: Final = (peer_vectors, peer_scores)


@dataclass(frozen=True, kw_only=True, slots=True)
class Scorer:
    """Who has scored answers, and when last."""

    id: str
    method: str  #: ``embedding``, or ``judge:`` and a name
    description: Mapping[str, Any]
    newest: datetime


def scored_between(since: datetime, until: datetime) -> Select[Any]:
    """Select the exchanges that began in [since, until) and have been looked at by any scorer."""
    return _looked_at(lambda table: _began(table, since, until))


def scored_by(scorers: Collection[str], period: Period) -> Select[Any]:
    """Select the exchanges of a period that one of these scorers had looked at by ``as_of``, score or no score."""
    return _looked_at(
        lambda table: [
            *_began(table, period.since, period.until),
            table.c.scorer.in_(sorted(scorers)),
            table.c.at <= period.as_of,
        ]
    )


async def newest_scorers(
    connection: AsyncConnection, answers: Sequence[Select[Any]], methods: Collection[str]
) -> list[Scorer]:
    """Find for each method who scored these answers; of several the one that came last."""
    parts = [select(table.c.scorer, table.c.at).where(or_(*(_of(table, one) for one in answers))) for table in _TABLES]
    marks = union_all(*parts).subquery()
    query = (
        select(
            peer_scorers.c.id, peer_scorers.c.method, peer_scorers.c.description, func.max(marks.c.at).label("newest")
        )
        .join(marks, marks.c.scorer == peer_scorers.c.id)
        .where(peer_scorers.c.method.in_(sorted(methods)))
        .group_by(peer_scorers.c.id)
        .order_by(peer_scorers.c.first_used_at, peer_scorers.c.id)
    )
    last = {row["method"]: Scorer(**row) for row in (await connection.execute(query)).mappings()}
    return [last[method] for method in sorted(last)]


async def count_kept(connection: AsyncConnection, scorers: Collection[str], period: Period) -> Counter[tuple[str, str]]:
    """Count what these scorers made of a period's exchanges by ``as_of``: by scorer and day, vectors and scores alike.

    Reasons why there is no vector or score are not counted.
    """
    kept: Counter[tuple[str, str]] = Counter()
    for table, value in ((peer_vectors, peer_vectors.c.vector), (peer_scores, peer_scores.c.score)):
        query = select(table.c.exchange_id, table.c.scorer).where(
            *_began(table, period.since, period.until),
            table.c.scorer.in_(sorted(scorers)),
            table.c.at <= period.as_of,
            value.is_not(None),
        )
        for row in await connection.execute(query):
            kept[row.scorer, id_time(row.exchange_id).date().isoformat()] += 1
    return kept


def _began(table: Table, since: datetime, until: datetime) -> list[ColumnElement[bool]]:
    return [table.c.exchange_id >= floor_id(since), table.c.exchange_id < floor_id(until)]


def _of(table: Table, answers: Select[Any]) -> ColumnElement[bool]:
    return table.c.exchange_id.in_(select(answers.subquery().c.exchange_id))


def _looked_at(conditions: Callable[[Table], Sequence[ColumnElement[bool]]]) -> Select[Any]:
    every = union(*(select(table.c.exchange_id).where(*conditions(table)) for table in _TABLES)).subquery()
    return select(every.c.exchange_id)
