"""Connect the auditor to PostgreSQL: one small SQLAlchemy engine for each process, over asyncpg."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

import asyncpg
from sqlalchemy import MetaData
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from auditor.errors import StoreUnavailable

metadata = MetaData()
#: What the driver raises if a session cannot be opened or used. Its `InternalClientError` is no error of the client: it
#: comes at the statement after the server has ended the session, if the end of the connection is still to come.
DRIVER_ERRORS: Final = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)


def make_engine(database_url: str, pool_size: int = 4) -> AsyncEngine:
    """Make an engine for ``postgresql://...``, without connecting yet.

    Connections cache no statements: cached ones fail behind PgBouncer and after a change of the schema.
    """
    return create_async_engine(
        database_url.replace("postgresql://", "postgresql+asyncpg://", 1),
        pool_size=pool_size,
        max_overflow=0,
        pool_pre_ping=True,
        connect_args={"statement_cache_size": 0, "prepared_statement_cache_size": 0, "timeout": 5},
    )


@asynccontextmanager
async def transaction(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    """Open a connection for one transaction, and commit it at the end of the block.

    Raises
    ------
    StoreUnavailable
        PostgreSQL does not answer.
    """
    with store_errors():
        async with engine.begin() as connection:
            yield connection


@contextmanager
def store_errors() -> Iterator[None]:
    """Raise ``StoreUnavailable`` in place of whatever says that PostgreSQL does not answer."""
    try:
        yield
    except (OSError, TimeoutError, InterfaceError, OperationalError) as error:
        raise StoreUnavailable(f"the store does not answer: {_first_line(error)}") from error
    except DBAPIError as error:
        cause = error.orig.__cause__ if error.orig is not None else None
        if getattr(cause, "sqlstate", None) in _AWAY or isinstance(cause, _ENDED):
            raise StoreUnavailable(f"the store does not answer: {cause}") from error
        if error.connection_invalidated:
            raise StoreUnavailable(f"the store went away: {_first_line(error)}") from error
        raise


#: PostgreSQL starts, recovers or stops, or has no connection left.
_AWAY = frozenset({"57P01", "57P02", "57P03", "53300"})
#: The session ended before or during a statement. SQLAlchemy notices it itself only once the session is open.
_ENDED = (asyncpg.InternalClientError, asyncpg.PostgresConnectionError)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
