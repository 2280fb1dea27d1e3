"""The schema: migrations and tables say the same, versions agree, and the hot queries keep their index."""

import importlib
import pkgutil
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from sqlalchemy import insert, inspect, text
from sqlalchemy.ext.asyncio import AsyncEngine

import auditor.store
from auditor.domain.ids import day_bounds, new_id
from auditor.domain.schema import SCHEMA_VERSION
from auditor.errors import SchemaMismatch, StoreUnavailable
from auditor.store.engine import make_engine, metadata, transaction
from auditor.store.exchanges import exchanges, read_page
from auditor.store.schema import check_version, migrate, newest_revision
from gateway.storing import copy_rows


def test_this_release_works_on_the_newest_revision() -> None:
    assert newest_revision() == SCHEMA_VERSION


async def test_the_tables_are_those_that_the_migrations_make(engine: AsyncEngine) -> None:
    for module in pkgutil.iter_modules(auditor.store.__path__):
        importlib.import_module(f"auditor.store.{module.name}")  # adds its tables to the metadata
    async with transaction(engine) as connection:
        names = await connection.run_sync(lambda sync: inspect(sync).get_table_names())
        assert set(metadata.tables) == {
            name for name in names if name != "alembic_version" and not name.startswith("biasmeter_jobs")
        }

        def described(sync):
            found = inspect(sync)
            return {
                table.name: {
                    column["name"]: (column["type"].compile(sync.dialect), column["nullable"])
                    for column in found.get_columns(table.name)
                }
                for table in metadata.sorted_tables
            }

        made = await connection.run_sync(described)
        declared = await connection.run_sync(
            lambda sync: {
                table.name: {
                    column.name: (column.type.compile(sync.dialect), bool(column.nullable)) for column in table.columns
                }
                for table in metadata.sorted_tables
            }
        )
    assert declared == made


async def test_the_shipper_writes_every_fact(engine: AsyncEngine) -> None:
    assert set(copy_rows.FACTS) == {column.name for column in metadata.tables["exchanges"].columns}


async def test_migrating_twice_changes_nothing(engine: AsyncEngine) -> None:
    assert await migrate(engine) == (SCHEMA_VERSION, SCHEMA_VERSION)


async def test_another_version_is_refused_with_the_command(engine: AsyncEngine) -> None:
    async with transaction(engine) as connection:
        await connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(SchemaMismatch, match=r"has schema 9999.*biasmeter migrate"):
        await check_version(engine)
    with pytest.raises(SchemaMismatch, match=r"has schema 9999, which this release \(schema 0001\) cannot migrate"):
        await migrate(engine)


async def test_a_store_that_is_not_there_is_one_line() -> None:
    engine = make_engine("postgresql://nobody@127.0.0.1:1/nothing")
    with pytest.raises(StoreUnavailable) as raised:
        await check_version(engine)
    assert "\n" not in str(raised.value)
    await engine.dispose()


FACTS = {
    "at": datetime(2026, 1, 1, tzinfo=UTC), "origin": "client", "endpoint": "e", "route": "r", "deployment": "d",
    "model": "m", "status": 200, "outcome": "complete", "stream": False, "attempts": 1, "capture": "full",
    "inclusion": 1.0, "config_hash": "c", "request_id": "q", "total_us": 1, "upstream_us": 1, "request_bytes": 1,
    "response_bytes": 1, "truncated": False,
}  # fmt: skip


async def _fill(engine: AsyncEngine, days: int, each: int) -> list[UUID]:
    """Some exchanges on each of the last days."""
    ids = []
    async with transaction(engine) as connection:
        for back in range(days):
            day = (datetime.now(UTC) - timedelta(days=back)).date()
            low, high = day_bounds(day)
            for table in ("exchanges", "exchange_content"):
                name = f"{table}_{day:%Y%m%d}"
                bounds = f"FOR VALUES FROM ('{low}') TO ('{high}')"
                await connection.execute(text(f"CREATE TABLE IF NOT EXISTS {name} PARTITION OF {table} {bounds}"))
            start_ms = (low.int >> 80) + 1000
            ids += [new_id(start_ms + number) for number in range(each)]
        await connection.execute(insert(exchanges), [{**FACTS, "id": each} for each in ids])
    return sorted(ids, reverse=True)


async def test_pages_tile_the_store_newest_first(engine: AsyncEngine) -> None:
    ids = await _fill(engine, days=3, each=7)
    found: list[UUID] = []
    after = None
    async with transaction(engine) as connection:
        while page := await read_page(connection, 4, after):
            found += [line.id for line in page]
            after = page[-1].id
    assert found == ids


async def test_a_page_and_one_exchange_are_read_by_index_from_few_days(engine: AsyncEngine) -> None:
    ids = await _fill(engine, days=5, each=200)
    async with transaction(engine) as connection:
        await connection.execute(text("ANALYZE exchanges"))
        # On a table this small a scan is the cheaper plan: with scans dear, one that is left means a lost index.
        await connection.execute(text("SET LOCAL enable_seqscan = off"))
        page = await connection.execute(
            text("EXPLAIN SELECT id FROM exchanges WHERE id < :after ORDER BY id DESC LIMIT 100"), {"after": ids[300]}
        )
        one = await connection.execute(text("EXPLAIN SELECT * FROM exchanges WHERE id = :id"), {"id": ids[500]})
        plans = ["\n".join(row[0] for row in plan) for plan in (page, one)]
    assert "Seq Scan" not in plans[0]
    assert "Sort" not in plans[0]
    # One id lies in one day: no other partition is looked at.
    assert plans[1].count("exchanges_") == plans[1].count("exchanges_2") <= 3
    assert "Seq Scan" not in plans[1]


async def test_ids_are_unique_over_all_days(engine: AsyncEngine) -> None:
    (first, *_) = await _fill(engine, days=2, each=1)
    async with transaction(engine) as connection:
        assert await connection.scalar(text("SELECT count(*) FROM exchanges WHERE id = :id"), {"id": first}) == 1
        assert await connection.scalar(text("SELECT count(*) FROM exchanges WHERE id = :id"), {"id": uuid4()}) == 0
