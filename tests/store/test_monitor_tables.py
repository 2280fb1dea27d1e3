"""The tables of the watch: as the migrations make them."""

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Connection, inspect
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.asyncio import AsyncEngine

from auditor.store import monitor_tables

DIALECT = postgresql.dialect()
TABLES = (
    *("monitor_days", "monitor_references", "monitor_watches"),
    *("findings", "finding_events", "webhook_deliveries"),
)


@pytest.mark.parametrize("name", TABLES)
async def test_the_migrations_make_the_tables_that_are_declared(engine: AsyncEngine, name: str) -> None:
    table: Any = getattr(monitor_tables, name)

    def columns(connection: Connection) -> Iterator[tuple[str, str, bool]]:
        for column in inspect(connection).get_columns(table.name):
            yield column["name"], column["type"].compile(dialect=DIALECT), column["nullable"]

    async with engine.connect() as connection:
        made = await connection.run_sync(lambda sync: list(columns(sync)))
    declared = [(column.name, column.type.compile(dialect=DIALECT), bool(column.nullable)) for column in table.columns]
    assert made == declared
