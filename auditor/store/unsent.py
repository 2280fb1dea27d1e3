"""Codings that wait to be sent to an OTLP collector, with the exchanges that they are of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, exists, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.store.codings import codings, unsent_codings
from auditor.store.exchanges import exchanges


@dataclass(frozen=True, kw_only=True, slots=True)
class UnsentCoding:
    """One coding, and the facts of its exchange."""

    coding: Mapping[str, Any]
    facts: Mapping[str, Any]
    first: bool  #: whether no other coder has coded the exchange before


async def take_unsent(connection: AsyncConnection, limit: int) -> tuple[list[UnsentCoding], list[tuple[Any, str]]]:
    """Lock waiting codings until the transaction ends, and return them with their keys.

    A key whose coding or exchange is gone has no coding.
    """
    columns = unsent_codings.c
    waiting = select(columns.exchange_id, columns.coder).order_by(columns.exchange_id, columns.coder)
    locked = await connection.execute(waiting.limit(limit).with_for_update(skip_locked=True))
    keys = [(row.exchange_id, row.coder) for row in locked]
    if not keys:
        return [], []
    other = codings.alias("other")
    earlier = exists().where(
        other.c.exchange_id == codings.c.exchange_id,
        tuple_(other.c.coded_at, other.c.coder) < tuple_(codings.c.coded_at, codings.c.coder),
    )
    named = [column.label(f"coding_{column.name}") for column in codings.columns]
    query = (
        select(exchanges, *named, (~earlier).label("first"))
        .join(codings, codings.c.exchange_id == exchanges.c.id)
        .where(tuple_(codings.c.exchange_id, codings.c.coder).in_(keys))
        .order_by(codings.c.exchange_id, codings.c.coder)
    )
    unsent = [
        UnsentCoding(
            coding={column.name: row[f"coding_{column.name}"] for column in codings.columns},
            facts={column.name: row[column.name] for column in exchanges.columns},
            first=row["first"],
        )
        for row in (await connection.execute(query)).mappings()
    ]
    return unsent, keys


async def forget_unsent(connection: AsyncConnection, keys: Sequence[tuple[Any, str]]) -> None:
    """Remove codings that have been sent."""
    columns = unsent_codings.c
    await connection.execute(delete(unsent_codings).where(tuple_(columns.exchange_id, columns.coder).in_(keys)))
