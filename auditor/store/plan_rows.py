"""Count the codings of the answers to one plan, by the keys of the joint table."""

from collections.abc import Collection, Mapping
from typing import Any, Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.store.tallies import tallies

_KEY: Final = tuple(column.name for column in tallies.columns if column.name not in {"hour", "n"})


async def count_plan(connection: AsyncConnection, coders: Collection[str], plan_id: str) -> list[Mapping[str, Any]]:
    """Count these coders' codings of the answers that count for a plan: the keys, and ``n`` codings."""
    # OFFSET 0 makes PostgreSQL look up each answer's codings, in the partition of its day. By its estimate, which knows
    # no day before a plan runs, reading the codings of all days may be cheaper.
    names = ", ".join(f"c.{name}" for name in _KEY)
    query = f"""
        SELECT {names}, count(*) AS n
        FROM planned_calls p
        JOIN planned_instances i ON i.ref = p.ref
        JOIN LATERAL (
            SELECT * FROM codings WHERE exchange_id = i.exchange_id AND coder = ANY(:coders) OFFSET 0
        ) c ON true
        WHERE p.plan_id = :plan_id
        GROUP BY {names}
    """  # noqa: S608 -- column names of our own
    rows = await connection.execute(text(query), {"plan_id": plan_id, "coders": sorted(coders)})
    return [dict(row) for row in rows.mappings()]
