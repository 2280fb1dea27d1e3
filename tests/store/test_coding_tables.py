"""The tables of codings, tallies, estimates and jobs: as the migrations make them."""

from collections.abc import Iterator
from typing import Any

import asyncpg
import pytest
from pgqueuer.adapters.persistence.queries import Queries
from pgqueuer.domain.schema.declaration import target
from postgres import fetch
from sqlalchemy import Connection, inspect
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.asyncio import AsyncEngine

from auditor.store import coding_tables
from auditor.store.queue import SETTINGS, install_statements

DIALECT = postgresql.dialect()
TABLES = ("coders", "codings", "votes", "stale_tiles", "tallies", "ballots", "estimates")


@pytest.mark.parametrize("name", TABLES)
async def test_the_migrations_make_the_tables_that_are_declared(engine: AsyncEngine, name: str) -> None:
    table: Any = getattr(coding_tables, name)

    def columns(connection: Connection) -> Iterator[tuple[str, str, bool]]:
        for column in inspect(connection).get_columns(table.name):
            yield column["name"], column["type"].compile(dialect=DIALECT), column["nullable"]

    async with engine.connect() as connection:
        made = await connection.run_sync(lambda sync: list(columns(sync)))
    declared = [(column.name, column.type.compile(dialect=DIALECT), bool(column.nullable)) for column in table.columns]
    assert made == declared


def test_the_queue_is_made_as_pgqueuer_would_make_it(migrated_url: str) -> None:
    tables = {row[0] for row in fetch(migrated_url, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")}
    assert {table.name for table in target(SETTINGS).tables} <= tables
    assert not any(name.startswith("pgqueuer") for name in tables)


def test_the_queues_names_are_not_taken_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    before = list(install_statements())
    for name in ("CHANNEL", "TRIGGER", "FUNCTION", "QUEUE_TABLE", "PGQUEUER_PREFIX"):
        monkeypatch.setenv(name, "elsewhere")
    assert list(install_statements()) == before


async def test_pgqueuer_finds_nothing_to_change(migrated_url: str) -> None:
    connection = await asyncpg.connect(migrated_url)
    try:
        queries = Queries.from_asyncpg_connection(connection)
        queries.qbe.settings = queries.qbq.settings = queries.qbs.settings = SETTINGS
        plan = await queries.plan_upgrade()
        assert plan.statements == ()
    finally:
        await connection.close()
