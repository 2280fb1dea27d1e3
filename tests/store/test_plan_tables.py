"""The tables that hold plans: as the migrations make them, and what they refuse."""

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Connection, inspect
from sqlalchemy.ext.asyncio import AsyncEngine

from auditor.store.plan_tables import planned_calls, plans, statements


@pytest.mark.parametrize("table", [statements, plans, planned_calls], ids=lambda table: table.name)
async def test_the_migrations_make_the_tables_that_are_declared(engine: AsyncEngine, table: Any) -> None:
    def columns(connection: Connection) -> Iterator[tuple[str, str, bool]]:
        for column in inspect(connection).get_columns(table.name):
            yield column["name"], str(column["type"]), column["nullable"]

    async with engine.connect() as connection:
        made = await connection.run_sync(lambda sync: list(columns(sync)))
    types = {"BIGINT": "BIGINT", "INTEGER": "INTEGER", "DATETIME": "TIMESTAMP"}
    declared = [
        (column.name, types.get(str(column.type), str(column.type)), bool(column.nullable)) for column in table.columns
    ]
    assert made == declared
