"""Create daily partitions of tables whose keys are ids."""

from collections.abc import Collection, Sequence
from datetime import date

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.domain.ids import day_bounds


async def make_days(connection: AsyncConnection, tables: Sequence[str], days: Collection[date], lock: str) -> None:
    """Create the partitions of some days.

    Parameters
    ----------
    connection
        Connection whose transaction holds the lock until it ends.
    tables
        Tables in the order of creation: a day that has the last one has all.
    days
        Days in UTC.
    lock
        Name of the lock that everybody takes who creates these partitions: CREATE ... IF NOT EXISTS alone fails when
        two do it at once.
    """
    missing = [day for day in sorted(days) if not await _has(connection, tables[-1], day)]
    if not missing:
        return
    await connection.execute(text("SELECT pg_advisory_xact_lock(hashtext(:lock))"), {"lock": lock})
    for day in missing:
        low, high = day_bounds(day)
        for table in tables:
            await connection.execute(
                text(
                    f"CREATE TABLE IF NOT EXISTS {table}_{day:%Y%m%d} PARTITION OF {table} "
                    f"FOR VALUES FROM ('{low}') TO ('{high}')"
                )
            )


async def _has(connection: AsyncConnection, table: str, day: date) -> bool:
    table_id = await connection.execute(text("SELECT to_regclass(:name)"), {"name": f"{table}_{day:%Y%m%d}"})
    return table_id.scalar() is not None
