"""Read what the store takes on disk, by table."""

from dataclasses import dataclass
from typing import Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection


@dataclass(frozen=True, kw_only=True, slots=True)
class TableSize:
    """A table, with its partitions and indexes added up."""

    table: str
    bytes: int
    partitions: int  #: 0 for a table without partitions
    oldest: str | None  #: the day (``20260301``) of the oldest partition


#: Rows are not counted, because that would read whole tables.
_SIZES: Final = text("""
    SELECT coalesce(parent.relname, own.relname)::text AS name,
           sum(pg_total_relation_size(own.oid))::bigint AS bytes,
           count(parent.oid)::int AS partitions,
           min(substring(own.relname from '_([0-9]{8})$')) FILTER (WHERE parent.oid IS NOT NULL) AS oldest
    FROM pg_class own
    JOIN pg_namespace space ON space.oid = own.relnamespace AND space.nspname = current_schema()
    LEFT JOIN pg_inherits ON pg_inherits.inhrelid = own.oid
    LEFT JOIN pg_class parent ON parent.oid = pg_inherits.inhparent
    WHERE own.relkind = 'r'
    GROUP BY 1 ORDER BY 2 DESC, 1
""")


async def read_sizes(connection: AsyncConnection) -> list[TableSize]:
    """Read the sizes of all tables, the largest first."""
    return [
        TableSize(table=row.name, bytes=row.bytes, partitions=row.partitions, oldest=row.oldest)
        for row in await connection.execute(_SIZES)
    ]
