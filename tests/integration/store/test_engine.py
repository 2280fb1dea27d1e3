"""What the end of a session of PostgreSQL becomes: one error, or another session, whatever the driver calls it."""

from typing import Any

import asyncpg
import pytest
from sqlalchemy import event, text
from support.stores.postgres_proxy import StoreLine, store_line

from auditor.errors import StoreUnavailable
from auditor.store.engine import make_engine, transaction


async def end_session(line: StoreLine, driver: asyncpg.Connection) -> None:
    """Have the server end a session, and wait until its last words are here."""
    another = await asyncpg.connect(line.url)
    # True: the process has ended. The line relays what it said before it relays the answer to the next query.
    assert await another.fetchval("SELECT pg_terminate_backend($1, 30000)", driver.get_server_pid())
    assert await another.fetchval("SELECT 1") == 1
    another.terminate()  # the line holds back the end that close() waits for


async def test_a_session_that_ends_while_it_is_opened_means_a_store_that_is_away(database_url: str) -> None:
    async with store_line(database_url, holds_end=True) as line:
        engine = make_engine(line.url)

        @event.listens_for(engine.sync_engine, "connect", insert=True)
        def connected(connection: Any, _: Any) -> None:
            connection.run_async(lambda driver: end_session(line, driver))
            connection.cursor().execute("SHOW transaction isolation level")  # as SQLAlchemy asks a new session

        with pytest.raises(StoreUnavailable, match=r"the store does not answer: .* another operation"):
            async with transaction(engine):
                pytest.fail("the session has ended")
    await engine.dispose()


async def test_a_session_that_ends_by_a_statement_while_it_is_opened_means_a_store_that_is_away(
    database_url: str,
) -> None:
    engine = make_engine(database_url)

    @event.listens_for(engine.sync_engine, "connect", insert=True)
    def connected(connection: Any, _: Any) -> None:
        connection.cursor().execute("SELECT pg_terminate_backend(pg_backend_pid())")

    with pytest.raises(StoreUnavailable, match=r"the store does not answer: .*in the middle of operation"):
        async with transaction(engine):
            pytest.fail("the session has ended")
    await engine.dispose()


async def test_a_session_that_ends_between_two_statements_means_a_store_that_is_away(database_url: str) -> None:
    async with store_line(database_url, holds_end=True) as line:
        engine = make_engine(line.url)

        async def ask_twice() -> None:
            async with transaction(engine) as connection:
                driver = (await connection.get_raw_connection()).driver_connection
                await end_session(line, driver)
                await connection.execute(text("SELECT 1"))

        with pytest.raises(StoreUnavailable, match="another operation"):
            await ask_twice()
    await engine.dispose()


async def test_a_session_that_ended_while_it_was_idle_is_replaced(database_url: str) -> None:
    async with store_line(database_url, holds_end=True) as line:
        engine = make_engine(line.url, pool_size=1)
        async with transaction(engine) as connection:
            driver = (await connection.get_raw_connection()).driver_connection
        await end_session(line, driver)
        async with transaction(engine) as connection:
            assert await connection.scalar(text("SELECT 1")) == 1
    await engine.dispose()
