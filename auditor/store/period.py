"""Read a period's codings, votes and peer scores as of one moment, so that a report can be made again later."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, Select, Table, func, or_, select, text, union, union_all
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.domain.ids import floor_id, id_time
from auditor.store.peer_scores import peer_scorers, peer_scores, peer_vectors
from auditor.store.tallies import tallies

_KEY: Final = tuple(column.name for column in tallies.columns if column.name not in {"hour", "n"})


_WHERE: Final = "exchange_id >= :low AND exchange_id < :high AND coded_at <= :as_of"


@dataclass(frozen=True, kw_only=True, slots=True)
class Period:
    """Exchanges that began in [since, until), with their codings up to ``as_of``."""

    since: datetime
    until: datetime
    as_of: datetime

    @property
    def bounds(self) -> dict[str, Any]:
        """The parameters of queries."""
        return {"low": floor_id(self.since), "high": floor_id(self.until), "as_of": self.as_of}


async def newest_coding(
    connection: AsyncConnection, coders: Sequence[str], since: datetime, until: datetime
) -> datetime | None:
    """Return when the last coding of a period was made by any of these coders."""
    query = text(
        "SELECT max(coded_at) FROM codings WHERE exchange_id >= :low AND exchange_id < :high AND coder = ANY(:coders)"
    )
    parameters = {"low": floor_id(since), "high": floor_id(until), "coders": list(coders)}
    newest: datetime | None = (await connection.execute(query, parameters)).scalar()
    return newest


async def newest_label(connection: AsyncConnection, since: datetime, until: datetime) -> datetime | None:
    """Return when a person last labelled an exchange of a period."""
    query = text("SELECT max(at) FROM reviews WHERE exchange_id >= :low AND exchange_id < :high")
    parameters = {"low": floor_id(since), "high": floor_id(until)}
    newest: datetime | None = (await connection.execute(query, parameters)).scalar()
    return newest


async def count_period(connection: AsyncConnection, coder: str, period: Period) -> list[Mapping[str, Any]]:
    """Count a coder's codings of a period by day and by the keys of the joint table.

    Returns
    -------
    list of mapping
        ``day``, the keys, ``n`` codings, and of those whose exchange reports completion tokens the number
        ``n_tokens`` and the sum ``tokens``.
    """
    names = ", ".join(f"c.{name}" for name in _KEY)
    query = f"""
        SELECT to_char(c.hour AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day, {names}, count(*) AS n,
               count(e.completion_tokens) AS n_tokens, coalesce(sum(e.completion_tokens), 0)::bigint AS tokens
        FROM codings c LEFT JOIN exchanges e ON e.id = c.exchange_id AND e.id >= :low AND e.id < :high
        WHERE c.exchange_id >= :low AND c.exchange_id < :high AND c.coded_at <= :as_of AND c.coder = :coder
        GROUP BY 1, {names}
    """  # noqa: S608 -- column names of our own
    rows = await connection.execute(text(query), {**period.bounds, "coder": coder})
    return [dict(row) for row in rows.mappings()]


async def read_statement_fields(
    connection: AsyncConnection, ids: Collection[str], fields: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Read some fields of the records of asked statements, by id; a missing field is ``None``."""
    query = text("SELECT id, record FROM statements WHERE id = ANY(:ids)")
    rows = await connection.execute(query, {"ids": sorted(ids)})
    return {row.id: {name: row.record.get(name) for name in fields} for row in rows}


async def count_ballots(connection: AsyncConnection, coder: str, period: Period) -> list[Mapping[str, Any]]:
    """Count how often a coder's judges voted in each combination."""
    query = f"""
        SELECT deployment, origin, rubric, votes, count(*) AS n FROM (
            SELECT c.deployment, c.origin, c.rubric,
                   jsonb_agg(jsonb_build_array(v.judge, v.label) ORDER BY v.judge) AS votes
            FROM (SELECT * FROM codings WHERE {_WHERE} AND coder = :coder) c JOIN votes v USING (exchange_id, coder)
            GROUP BY c.exchange_id, c.deployment, c.origin, c.rubric
        ) AS cast_votes GROUP BY deployment, origin, rubric, votes
    """  # noqa: S608 -- a constant
    rows = await connection.execute(text(query), {**period.bounds, "coder": coder})
    return [dict(row) for row in rows.mappings()]


_TABLES: Final = (peer_vectors, peer_scores)


@dataclass(frozen=True, kw_only=True, slots=True)
class Scorer:
    """A scorer of answers, and when it last scored."""

    id: str
    method: str  #: ``embedding``, or ``judge:`` and a name
    description: Mapping[str, Any]
    newest: datetime


def scored_between(since: datetime, until: datetime) -> Select[Any]:
    """Select the exchanges that began in [since, until) and that any scorer has tried to score."""
    return _looked_at(lambda table: _began(table, since, until))


def scored_by(scorers: Collection[str], period: Period) -> Select[Any]:
    """Select the exchanges of a period that one of these scorers had tried to score by ``as_of``."""
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
    """Find the scorer of these answers for each method; of several, the latest."""
    parts = [
        select(table.c.scorer, table.c.at).where(or_(*(_of(table, query) for query in answers))) for table in _TABLES
    ]
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
    """Count these scorers' vectors and scores of a period's exchanges by ``as_of``, by scorer and day.

    Missing vectors and scores are not counted.
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
