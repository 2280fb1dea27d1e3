"""A real PostgreSQL for tests: one server for the whole run, a fresh database for each test.

The server is our own embedded one, in a folder of its own, unless BIASMETER_TEST_DATABASE_URL names another whose role
may create databases.
"""

import asyncio
import fcntl
import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from auditor.postgres import leftovers
from auditor.postgres.embedded import EmbeddedStore, attach
from auditor.postgres.folder import StoreFolder
from auditor.postgres.home import find_home

#: Where the processes of a run find the folder of its server.
_FOLDER = "BIASMETER_TEST_STORE"

#: Databases of tests are thrown away: nothing waits for the disk. Tests of durability start a server of their own.
_SETTINGS = """\
fsync = off
synchronous_commit = off
full_page_writes = off
wal_level = minimal
max_wal_senders = 0
max_connections = 300
shared_buffers = 256MB
autovacuum_naptime = 5min
"""


def pytest_configure(config: pytest.Config) -> None:
    """Name the folder of the run's server, before the processes that run the tests start."""
    if not hasattr(config, "workerinput") and "BIASMETER_TEST_DATABASE_URL" not in os.environ:
        # Short, for the socket's path; open to all, so that as root too everything lies in it and goes with it.
        folder = Path(tempfile.mkdtemp(prefix="bias-"))
        folder.chmod(0o755)
        os.environ[_FOLDER] = str(folder)
        config.add_cleanup(lambda: _remove_server(folder))


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a server, as a role that may create databases: the same for all processes of a run."""
    if url := os.environ.get("BIASMETER_TEST_DATABASE_URL"):
        yield url
        return
    folder = Path(os.environ[_FOLDER])
    with attach_prepared(folder) as store:
        yield store.url


def attach_prepared(folder: Path) -> EmbeddedStore:
    """Attach to the server of `folder`; the first makes it, with settings for databases that are thrown away."""
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        store = StoreFolder(folder / "postgres")
        if not store.path.exists():
            attach(folder).close()
            wait_until_stopped(folder)
            (find_home(store).data / "local.conf").write_text(_SETTINGS)
            (find_home(store).data / "local.conf").chmod(0o644)
        return attach(folder)


def _remove_server(folder: Path) -> None:
    if (folder / "postgres").exists():
        remove_store(folder)
    shutil.rmtree(folder, ignore_errors=True)
    os.environ.pop(_FOLDER, None)


@pytest.fixture
def database_url(postgres_server: str) -> Iterator[str]:
    """The URL of a fresh, empty database, dropped afterwards."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    yield create_database(postgres_server, name)
    drop_database(postgres_server, name)


def create_database(admin_url: str, name: str, template: str | None = None) -> str:
    """Make a database, empty or a copy of `template` (to which nobody may be connected); give its URL."""
    execute(admin_url, f'CREATE DATABASE "{name}"' + (f' TEMPLATE "{template}"' if template else ""))
    return database_of(admin_url, name)


def database_of(url: str, name: str) -> str:
    """Return the URL of another database of a server."""
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


@contextmanager
def copied_database(admin_url: str, template: str) -> Iterator[str]:
    """A copy of another database, to which nobody may be connected, gone at the end of the block: its URL."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    yield create_database(admin_url, name, template=template)
    drop_database(admin_url, name)


def drop_database(admin_url: str, name: str) -> None:
    """Drop a database, and whatever is still connected to it."""
    statement = f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'
    for pause in (0.2, 1.0, 5.0):
        try:
            return execute(admin_url, statement)
        except asyncpg.InsufficientPrivilegeError:  # the server's own vacuum is at work there, as its superuser
            time.sleep(pause)
    return execute(admin_url, statement)


def execute(url: str, statement: str) -> None:
    """Run one statement on a connection of its own."""
    fetch(url, statement)


def fetch(url: str, query: str) -> list[asyncpg.Record]:
    """Run one query on a connection of its own."""

    async def ask() -> list[asyncpg.Record]:
        connection = await asyncpg.connect(url, timeout=10)
        try:
            return await connection.fetch(query)
        finally:
            await connection.close()

    return apart(ask())


def apart(work: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine in a thread of its own, whether or not this one has an event loop."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def remove_store(data_dir: Path) -> None:
    """Wait for an embedded store to end and remove what root keeps of it outside of `data_dir`.

    A server whose supervisor was killed is stopping by itself, and writes into its folder until it has.
    """
    wait_until_stopped(data_dir)
    folder = StoreFolder(data_dir / "postgres")
    outside = Path(folder.pointer.read_text().splitlines()[0]) if folder.pointer.exists() else None
    data = (outside or folder.path / "server") / "data"
    if data.exists():
        leftovers.clear(data)
    if outside is not None:
        shutil.rmtree(outside, ignore_errors=True)


def wait_until_stopped(data_dir: Path, seconds: float = 20.0) -> None:
    """Wait until an embedded store that nobody uses has ended, supervisor and all."""
    folder = StoreFolder(data_dir / "postgres")
    deadline = time.monotonic() + seconds
    while folder.is_supervised():
        assert time.monotonic() < deadline, folder.supervisor_log.read_text()
        time.sleep(0.05)
