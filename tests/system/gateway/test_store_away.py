"""PostgreSQL that answers every new connection with "not now", as it does while it starts, recovers or stops."""

import asyncio
import os
import re
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import asyncpg
import pytest
from support.servers.product import Product, installation, settings
from support.stores.postgres import create_database, remove_store
from support.waiting import eventually

from auditor.postgres.embedded import attach
from auditor.postgres.folder import StoreFolder
from auditor.store.engine import make_engine
from auditor.store.schema import migrate


@pytest.fixture
def store() -> Iterator[tuple[Path, str]]:
    """A server of this test's own: its folder and URL."""
    folder = Path(tempfile.mkdtemp(prefix="bias-"))
    folder.chmod(0o755)
    try:
        with attach(folder) as attached:
            yield folder, attached.url
        remove_store(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def postmaster(folder: Path) -> int:
    pointer = StoreFolder(folder / "postgres").pointer
    homes = [folder, Path(pointer.read_text().splitlines()[0])] if pointer.exists() else [folder]
    (found,) = [path for home in homes for path in home.rglob("postmaster.pid")]
    return int(found.read_text().split()[0])


@asynccontextmanager
async def not_now(folder: Path, url: str) -> AsyncIterator[None]:
    """Let the server wait for one last session before it ends: new connections get 57P03, and old ones are ended."""
    last = await asyncpg.connect(url)
    os.kill(postmaster(folder), signal.SIGTERM)
    ours = "usename = current_user AND pid <> pg_backend_pid()"
    await last.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {ours}")

    async def refuses() -> bool:
        try:
            connection = await asyncpg.connect(url, timeout=10)
        except asyncpg.CannotConnectNowError:
            return True
        await connection.close()
        return False

    try:
        await eventually(refuses, 60)
        yield
    finally:
        await last.close()


async def test_while_postgres_takes_no_connections_the_api_answers_503_and_commands_one_line(
    store: tuple[Path, str], tmp_path: Path
) -> None:
    folder, server = store
    url = create_database(server, "away")
    engine = make_engine(url)
    await migrate(engine)
    await engine.dispose()
    with installation(tmp_path, settings("http://127.0.0.1:9/v1"), url) as product:
        with product.running("auditor", until="listening on") as running:
            async with not_now(folder, url), aiohttp.ClientSession() as client:
                for _ in range(30):
                    async with client.get(f"{product.api}/api/exchanges") as answer:
                        assert answer.status == 503
                        assert int(answer.headers["retry-after"]) > 0
                        assert (await answer.json())["error"]["code"] == "store_unavailable"
                await check_commands(product)
            said = running.said()
        assert "Traceback" not in said
        # The API says it at most every 30 s, the jobs now and then.
        assert 1 <= said.count("the store does not answer: the database system is") < 100


async def check_commands(product: Product) -> None:
    for command in (("key", "list"), ("migrate",), ("auditor",), ("check",)):
        done = await asyncio.to_thread(product.run, *command, "-c", str(product.config), check=False)
        said = done.stderr + done.stdout
        assert done.returncode != 0, command
        assert "Traceback" not in said
        if command[0] != "check":
            assert re.fullmatch(r"biasmeter: the store does not answer: the database system is [a-z ]+\n", said), said
