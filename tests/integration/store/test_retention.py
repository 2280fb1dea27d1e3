"""Retention: every table has a rule, what is due goes, what is younger stays byte for byte, and nobody waits."""

import asyncio
import importlib
import pkgutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, time, timedelta

import asyncpg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import inspect
from sqlalchemy.ext.asyncio import AsyncEngine
from support.paths import DOCS
from support.stores.aged_store import AGES, CODER, add_day, count_before, live_through, open_store, rows_from
from support.stores.audited_store import fetch, ship
from support.stores.databases import Databases
from support.stores.exchanges import exchange, rows_of

import auditor.store
from auditor.store.engine import make_engine, metadata, transaction
from auditor.store.lifetimes import LIFETIMES, Lifetime
from auditor.store.retention import PARTITIONED, STEPPED, RetentionBounds, find_expired, first_kept_day, remove_expired
from auditor.store.tallies import move_windows, read_windows

TODAY = date(2026, 3, 31)
NOW = datetime.combine(TODAY, time(18), UTC)
DAY = 86_400.0
PAGE = DOCS / "retention.md"


def days_ago(days: int) -> date:
    return TODAY - timedelta(days=days)


@asynccontextmanager
async def opened_store(url: str) -> AsyncIterator[tuple[asyncpg.Connection, AsyncEngine]]:
    connection, engine = await asyncpg.connect(url), make_engine(url)
    try:
        yield connection, engine
    finally:
        await connection.close()
        await engine.dispose()


@pytest.fixture
async def connection(migrated_url: str) -> AsyncIterator[asyncpg.Connection]:
    opened = await asyncpg.connect(migrated_url)
    yield opened
    await opened.close()


async def test_every_table_has_an_owner_and_a_rule(engine: AsyncEngine) -> None:
    for module in pkgutil.iter_modules(auditor.store.__path__):
        importlib.import_module(f"auditor.store.{module.name}")
    async with transaction(engine) as opened:
        stored = set(await opened.run_sync(lambda sync: inspect(sync).get_table_names()))
    assert set(LIFETIMES) == stored
    assert set(metadata.tables) <= stored
    page = PAGE.read_text()
    for table, rule in LIFETIMES.items():
        importlib.import_module(rule.owner)
        assert f"`{table}`" in page, f"docs/retention.md does not name {table}"
        if rule.lifetime in {Lifetime.CONTENT, Lifetime.FACTS}:
            assert table in PARTITIONED or table in STEPPED, table
        if rule.parent is not None:
            assert rule.parent in LIFETIMES


def test_a_bound_is_the_first_day_that_is_kept_whole() -> None:
    assert first_kept_day(NOW, 30 * DAY) == days_ago(30)
    assert RetentionBounds.at(NOW, DAY, 2 * DAY) == RetentionBounds(content=days_ago(1), facts=days_ago(2))


@settings(max_examples=8)
@given(
    ages=st.sets(st.integers(0, 20), min_size=2, max_size=5),
    content=st.integers(1, 10),
    more=st.integers(0, 8),
    left_over=st.booleans(),
)
def test_what_is_due_goes_and_what_is_younger_stays_byte_for_byte(
    databases: Databases, ages: set[int], content: int, more: int, left_over: bool
) -> None:
    bounds = RetentionBounds(content=days_ago(content), facts=days_ago(content + more))

    async def check(url: str) -> None:
        async with opened_store(url) as (opened, engine):
            await check_on(opened, engine)

    async def check_on(opened: asyncpg.Connection, engine: AsyncEngine) -> None:
        store = await open_store(opened)
        for age in sorted(ages):
            await add_day(store, days_ago(age), 3)
        if left_over:  # a plan is asked for longer than facts are kept: its answers stay known
            name = f"plan-{days_ago(max(ages))}/1"
            await opened.execute("UPDATE planned_instances SET exchange_id = $2 WHERE ref = $1", name, exchange(NOW).id)
        before = await rows_from(opened, bounds.facts)
        listed = await find_expired(engine, bounds)
        removed = await remove_expired(engine, bounds)
        assert {(one.what, one.rows) for one in listed} == {(one.what, one.rows) for one in removed}
        after, young = await rows_from(opened, bounds.facts), await rows_from(opened, bounds.content)
        for table in AGES:
            rule = LIFETIMES[table]
            if rule.content is None and rule.lifetime is not Lifetime.CONTENT:
                assert after[table] == before[table], table
            else:  # between the bounds the words are gone, and of what is younger nothing
                assert young[table] == [row for row in before[table] if row in young[table]], table
                assert len(young[table]) == sum(3 for age in ages if age <= content), table
        gone = await count_before(opened, bounds.facts)
        kept = {"plans", "planned_calls", "planned_instances"} if left_over else set()
        assert {table: n for table, n in gone.items() if n and table not in kept} == {}
        for table, column, bound in (
            ("votes", "rationale <> ''", "exchange_id"),
            ("reviews", "note IS NOT NULL", "exchange_id"),
            ("peer_scores", "justification <> ''", "exchange_id"),
            ("exchange_content", "true", "id"),
        ):
            query = f"SELECT count(*) FROM {table} WHERE {column} AND {bound} < $1"
            assert await opened.fetchval(query, bounds.parameters["content_id"]) == 0, table
        query = """
            SELECT count(*) FROM peer_vectors v JOIN exchanges e ON e.id = v.exchange_id
            WHERE (v.vector IS NULL) <> (e.id < $1 AND e.origin = 'client')
        """
        assert await opened.fetchval(query, bounds.parameters["content_id"]) == 0
        assert await find_expired(engine, bounds) == []

    with databases.fresh() as url:
        asyncio.run(check(url))


async def test_windows_whose_content_is_gone_count_as_before_and_expired_hours_leave_them(
    connection: asyncpg.Connection, engine: AsyncEngine
) -> None:
    store = await open_store(connection)
    for age in range(6):
        await add_day(store, days_ago(age))
    starts = {"long": datetime.combine(days_ago(5), time(), UTC), "short": datetime.combine(days_ago(2), time(), UTC)}

    async def counted() -> dict[str, int]:
        async with transaction(engine) as opened:
            await move_windows(opened, CODER, starts)
            rows = await read_windows(opened, CODER, starts)
        return {name: sum(row["n"] for row in each) for name, each in rows.items()}

    assert await counted() == {"long": 18, "short": 9}
    await remove_expired(engine, RetentionBounds(content=days_ago(1), facts=days_ago(30)))
    assert await counted() == {"long": 18, "short": 9}
    await remove_expired(engine, RetentionBounds(content=days_ago(1), facts=days_ago(3)))
    assert await counted() == {"long": 12, "short": 9}
    # The window that was summed up again moves on like any other.
    starts["long"] = datetime.combine(days_ago(1), time(), UTC)
    assert await counted() == {"long": 6, "short": 9}


async def test_a_partition_in_use_is_left_for_later_and_copying_goes_on(
    migrated_url: str, connection: asyncpg.Connection, engine: AsyncEngine
) -> None:
    store = await open_store(connection)
    for age in (0, 5):
        await add_day(store, days_ago(age))
    bounds = RetentionBounds(content=days_ago(1), facts=days_ago(1))
    reader = await asyncpg.connect(migrated_url)
    try:
        reading = reader.transaction()
        await reading.start()
        await reader.fetch("SELECT count(*) FROM exchanges")
        removal = asyncio.create_task(remove_expired(engine, bounds))
        written = 0
        while not removal.done():
            await ship(migrated_url, [exchange(NOW + timedelta(milliseconds=written))])
            written += 1
        removed = {one.what: one for one in await removal}
        assert removed[f"exchanges_{days_ago(5):%Y%m%d}"].blocked
        assert not removed[f"exchange_content_{days_ago(5):%Y%m%d}"].blocked
        assert written > 0
        await reading.commit()
    finally:
        await reader.close()
    assert [one.what for one in await remove_expired(engine, bounds)] == [f"exchanges_{days_ago(5):%Y%m%d}"]
    assert await fetch(migrated_url, "SELECT count(*) FROM exchanges") == [(4 + written,)]


@pytest.mark.parametrize("first", [date(2026, 12, 29), date(2028, 2, 26), date(2026, 4, 28)])
async def test_over_the_end_of_a_month_or_a_year_each_day_is_kept_as_long(
    connection: asyncpg.Connection, engine: AsyncEngine, first: date
) -> None:
    store = await open_store(connection)
    for passed in range(6):
        today = first + timedelta(days=passed)
        await add_day(store, today, 2)
        await remove_expired(engine, RetentionBounds.at(datetime.combine(today, time(23, 59), UTC), DAY, 2 * DAY))
        for table, days in (("exchanges", 3), ("codings", 3), ("votes", 3), ("exchange_content", 2)):
            stored = await connection.fetch(f"SELECT DISTINCT tableoid::regclass::text AS part FROM {table}")
            kept = {first + timedelta(days=day) for day in range(max(0, passed + 1 - days), passed + 1)}
            assert {row["part"] for row in stored} == {f"{table}_{day:%Y%m%d}" for day in kept}


async def test_what_arrives_for_a_dropped_day_is_stored_and_dropped_by_the_next_run(
    connection: asyncpg.Connection, engine: AsyncEngine
) -> None:
    store = await open_store(connection)
    await add_day(store, days_ago(9))
    bounds = RetentionBounds(content=days_ago(1), facts=days_ago(2))
    await remove_expired(engine, bounds)
    await store.write(rows_of([exchange(NOW - timedelta(days=9))]))  # the same connection: it knows the day's partition
    assert await connection.fetchval("SELECT count(*) FROM exchanges") == 1
    removed = {one.what: one.rows for one in await remove_expired(engine, bounds)}
    day = f"{days_ago(9):%Y%m%d}"
    assert removed == {f"exchange_content_{day}": 1, f"exchanges_{day}": 1, "chain": 1, "exchange_counts": 1}
    assert await connection.fetchval("SELECT count(*) FROM exchanges") == 0


@pytest.mark.slow
async def test_a_store_stays_as_large_as_it_is_while_days_pass(migrated_url: str) -> None:
    """`tests/bench/test_retention_year.py` does the same for a year."""

    def bounds(today: date) -> RetentionBounds:
        return RetentionBounds(content=today - timedelta(days=2), facts=today - timedelta(days=6))

    sizes = await live_through(migrated_url, 20, bounds)
    assert sizes[6] > 2 * sizes[0]  # before anything is dropped it grows
    assert max(sizes[14:]) <= 1.2 * max(sizes[8:13]), sizes
    partitions = await fetch(
        migrated_url,
        "SELECT inhparent::regclass::text, count(*) FROM pg_inherits i JOIN pg_class c ON c.oid = inhrelid "
        "WHERE c.relkind = 'r' GROUP BY 1 ORDER BY 1",
    )
    assert dict(partitions) == {"answer_words": 3, "codings": 7, "exchange_content": 3, "exchanges": 7, "votes": 7}
