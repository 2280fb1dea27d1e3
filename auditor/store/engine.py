"""The way to PostgreSQL for the auditor: one small SQLAlchemy engine a process, over asyncpg."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from auditor.errors import StoreUnavailable


def make_engine(database_url: str, pool_size: int = 4) -> AsyncEngine:
    """Make an engine for ``postgresql://...``. Nothing is connected yet.

    Statements are not cached by the server connection: behind PgBouncer, and across a schema change, they would break.
    """
    return create_async_engine(
        database_url.replace("postgresql://", "postgresql+asyncpg://", 1),
        pool_size=pool_size,
        max_overflow=0,
        pool_pre_ping=True,
        connect_args={"statement_cache_size": 0, "prepared_statement_cache_size": 0, "timeout": 5},
    )


@asynccontextmanager
async def reading(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    """Open a connection for one piece of work, and commit it at the end.

    Raises
    ------
    StoreUnavailable
        PostgreSQL does not answer.
    """
    try:
        async with engine.begin() as connection:
            yield connection
    except (OSError, TimeoutError, InterfaceError, OperationalError) as error:
        raise StoreUnavailable(f"the store does not answer: {_first_line(error)}") from error
    except DBAPIError as error:
        if error.connection_invalidated:
            raise StoreUnavailable(f"the store went away: {_first_line(error)}") from error
        raise


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
