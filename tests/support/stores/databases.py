"""Real PostgreSQL databases with the project's schema: one template a session, a fresh copy a test."""

import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from support.stores.postgres import apart, create_database, drop_database

from auditor.store.engine import make_engine
from auditor.store.schema import migrate


@pytest.fixture(scope="session")
def template_database(postgres_server: str) -> Iterator[str]:
    """The name of a migrated database that tests copy."""
    name = f"template_{uuid.uuid4().hex[:12]}"
    url = create_database(postgres_server, name)

    async def prepare() -> None:
        engine = make_engine(url)
        await migrate(engine)
        await engine.dispose()

    apart(prepare())  # a browser's event loop may run in this thread
    yield name
    drop_database(postgres_server, name)


@contextmanager
def fresh_database(server: str, template: str) -> Iterator[str]:
    """A database with the schema in it, gone at the end of the block: its URL."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    yield create_database(server, name, template=template)
    drop_database(server, name)


@pytest.fixture
def migrated_url(postgres_server: str, template_database: str) -> Iterator[str]:
    """The URL of a fresh database with the schema in it."""
    with fresh_database(postgres_server, template_database) as url:
        yield url


@pytest.fixture
async def engine(migrated_url: str) -> AsyncIterator[AsyncEngine]:
    """An engine on a fresh database with the schema in it."""
    made = make_engine(migrated_url)
    yield made
    await made.dispose()
