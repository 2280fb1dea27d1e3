"""Codings of a period as they were at one moment: what a report counts, so that it can be made again later."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.domain.ids import floor_id
from auditor.store.coding_tables import tallies

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
        """The query's parameters."""
        return {"low": floor_id(self.since), "high": floor_id(self.until), "as_of": self.as_of}


async def newest_coding(
    connection: AsyncConnection, coders: Sequence[str], since: datetime, until: datetime
) -> datetime | None:
    """Tell when the last coding of a period was made, by any of these coders."""
    query = text(
        "SELECT max(coded_at) FROM codings WHERE exchange_id >= :low AND exchange_id < :high AND coder = ANY(:coders)"
    )
    given = {"low": floor_id(since), "high": floor_id(until), "coders": list(coders)}
    found: datetime | None = (await connection.execute(query, given)).scalar()
    return found


async def newest_label(connection: AsyncConnection, since: datetime, until: datetime) -> datetime | None:
    """Tell when a person last labelled an exchange of a period."""
    query = text("SELECT max(at) FROM reviews WHERE exchange_id >= :low AND exchange_id < :high")
    given = {"low": floor_id(since), "high": floor_id(until)}
    found: datetime | None = (await connection.execute(query, given)).scalar()
    return found


async def count_period(connection: AsyncConnection, coder: str, period: Period) -> list[Mapping[str, Any]]:
    """Count a coder's codings of a period by day and by the keys of the joint table.

    Returns
    -------
    list of mapping
        ``day``, the keys, ``n`` codings, and of those whose exchange says its completion tokens the number
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
    found = await connection.execute(text(query), {**period.bounds, "coder": coder})
    return [dict(row) for row in found.mappings()]


async def read_statement_fields(
    connection: AsyncConnection, ids: Collection[str], fields: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Read some fields of the records of asked statements, by id; a record that lacks one has ``None`` there."""
    query = text("SELECT id, record FROM statements WHERE id = ANY(:ids)")
    found = await connection.execute(query, {"ids": sorted(ids)})
    return {row.id: {name: row.record.get(name) for name in fields} for row in found}


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
    found = await connection.execute(text(query), {**period.bounds, "coder": coder})
    return [dict(row) for row in found.mappings()]
