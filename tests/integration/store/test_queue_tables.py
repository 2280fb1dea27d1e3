"""The queue: its tables as pgqueuer would make them, and names of its own."""

import asyncpg
import pytest
from pgqueuer.adapters.persistence.queries import Queries
from pgqueuer.domain.schema.declaration import target
from support.stores.postgres import fetch

from auditor.store.queue import SETTINGS, install_statements


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
