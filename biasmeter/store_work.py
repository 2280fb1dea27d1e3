"""Run work on the store of a configuration."""

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from auditor.config import Config, load_without_upstream_keys
from auditor.postgres.embedded import open_store
from auditor.store.engine import make_engine, transaction
from auditor.store.schema import check_version
from biasmeter.coroutines import run_coroutine

T = TypeVar("T")


def in_store(loaded: Config, work: Callable[[AsyncEngine], Awaitable[T]]) -> T:
    """Run ``work`` on the store of a configuration; an embedded store runs as long as the work.

    Raises
    ------
    StoreUnavailable
        It does not answer.
    SchemaMismatch
        It is of another version.
    """

    async def run(database_url: str) -> T:
        engine = make_engine(database_url)
        try:
            await check_version(engine)
            return await work(engine)
        finally:
            await engine.dispose()

    with open_store(loaded.data_dir, loaded.database_url(os.environ)) as database_url:
        return run_coroutine(run(database_url))


def in_transaction(config: Path, work: Callable[[Config, AsyncConnection], Awaitable[T]]) -> T:
    """Run ``work`` in one transaction on the store of the configuration in a file.

    Raises
    ------
    StoreUnavailable, SchemaMismatch
        ``in_store`` raises it.
    """
    loaded = load_without_upstream_keys(config, os.environ)

    async def run(engine: AsyncEngine) -> T:
        async with transaction(engine) as connection:
            return await work(loaded, connection)

    return in_store(loaded, run)
