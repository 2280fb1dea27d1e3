"""Databases with the project's schema: copies of one migrated template, made ahead of the tests that use them."""

import asyncio
import os
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from urllib.parse import urlsplit

import asyncpg
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from support.stores.postgres import apart, database_of, drop_database

from auditor.store.engine import make_engine
from auditor.store.schema import migrate


class Databases:
    """Fresh databases of one template. A thread makes the next while a test uses its own, and drops what was used."""

    #: How many wait to be used.
    AHEAD = 2

    def __init__(self, server: str, template: str) -> None:
        self._server = server
        self._template = template
        self._thread = ThreadPoolExecutor(1)
        self._loop = asyncio.new_event_loop()
        self._connection: asyncpg.Connection | None = None
        self._ready = [self._make() for _ in range(self.AHEAD)]

    @contextmanager
    def fresh(self) -> Iterator[str]:
        """Yield the URL of a database with the schema in it, gone after the block."""
        self._ready.append(self._make())
        name = self._ready.pop(0).result()
        try:
            yield database_of(self._server, name)
        finally:
            self._drop(name)

    def close(self) -> None:
        """Drop what is left."""
        for ready in self._ready:
            self._drop(ready.result())
        self._thread.submit(self._leave).result()
        self._thread.shutdown()

    def _make(self) -> "Future[str]":
        return self._thread.submit(self._create, f"test_{uuid.uuid4().hex[:12]}")

    def _create(self, name: str) -> str:
        # Copying files costs half of copying pages through the log, which nobody needs here.
        self._run(f'CREATE DATABASE "{name}" TEMPLATE "{self._template}" STRATEGY FILE_COPY')
        return name

    def _drop(self, name: str) -> None:
        self._thread.submit(drop_database, self._server, name)

    def _run(self, statement: str) -> None:
        if self._connection is None:
            self._connection = self._loop.run_until_complete(asyncpg.connect(self._server))
        self._loop.run_until_complete(self._connection.execute(statement))

    def _leave(self) -> None:
        if self._connection is not None:
            self._loop.run_until_complete(self._connection.close())
        self._loop.close()


@pytest.fixture(scope="session")
def databases(postgres_server: str) -> Iterator[Databases]:
    """Fresh databases with the schema in them, for fixtures of a module and tests that need several."""
    template = f"template_{os.environ.get('PYTEST_XDIST_TESTRUNUID', uuid.uuid4().hex)}"
    apart(_make_template(postgres_server, template))  # a browser's event loop may run in this thread
    made = Databases(postgres_server, template)
    yield made
    made.close()


@contextmanager
def seeded_database(databases: Databases, seed: Callable[[str], object]) -> Iterator[str]:
    """The name of a database that `seed` has filled, for a fixture of a module: `copied_database` copies it."""
    with databases.fresh() as url:
        seed(url)
        yield urlsplit(url).path.removeprefix("/")


async def _make_template(server: str, name: str) -> None:
    """Make the migrated database, unless another process of this run has made it."""
    connection = await asyncpg.connect(server)
    try:
        await connection.execute("SELECT pg_advisory_lock(1)")
        if await connection.fetchval("SELECT count(*) FROM pg_database WHERE datname = $1", name):
            return
        await connection.execute(f'CREATE DATABASE "{name}"')
        engine = make_engine(database_of(server, name))
        await migrate(engine)
        await engine.dispose()
    finally:
        await connection.close()


@pytest.fixture
def migrated_url(databases: Databases) -> Iterator[str]:
    """The URL of a fresh database with the schema in it."""
    with databases.fresh() as url:
        yield url


@pytest.fixture
async def engine(migrated_url: str) -> AsyncIterator[AsyncEngine]:
    """An engine on a fresh database with the schema in it."""
    made = make_engine(migrated_url)
    yield made
    await made.dispose()
