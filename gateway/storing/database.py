"""A connection of the shipper to the store: opened when it is needed, checked, and opened again after a failure."""

import contextlib

import asyncpg

from auditor.domain.schema import SCHEMA_VERSION
from auditor.errors import StoreUnavailable

_CONNECT_TIMEOUT = 5.0  # seconds

#: The store is down, or refuses the connection or a statement. All of it may be temporary.
UNREACHABLE = (
    StoreUnavailable,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    TimeoutError,
)


class WrongSchema(Exception):  # noqa: N818 -- a state of the store
    """The store's schema is not this release's."""


class Database:
    """One connection to the store.

    Parameters
    ----------
    url
        The URL of the database.
    lock_timeout, command_timeout
        Seconds that a statement may wait for a lock, and may take altogether.
    """

    def __init__(self, url: str, *, lock_timeout: float, command_timeout: float) -> None:
        self._url = url
        self._lock_timeout = lock_timeout
        self._command_timeout = command_timeout
        self._connection: asyncpg.Connection | None = None

    async def connect(self) -> asyncpg.Connection:
        """Return the connection, which is opened if there is none or it broke.

        Raises
        ------
        WrongSchema
            The store belongs to another release.
        StoreUnavailable, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError
            It cannot be opened.
        """
        if self._connection is None or self._connection.is_closed():
            try:
                self._connection = await asyncpg.connect(
                    self._url, timeout=_CONNECT_TIMEOUT, command_timeout=self._command_timeout, statement_cache_size=0
                )
                await _check_schema(self._connection)
                await self._connection.execute(f"SET lock_timeout = {round(1000 * self._lock_timeout)}")
            except BaseException as error:
                self.close()
                if isinstance(error, OSError) and not isinstance(error, TimeoutError):
                    # To distinguish it from errors of the spool's files.
                    raise StoreUnavailable(str(error)) from error
                raise
        return self._connection

    def close(self) -> None:
        """Close the connection at once."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(*UNREACHABLE, OSError):
                connection.terminate()


async def _check_schema(connection: asyncpg.Connection) -> None:
    try:
        version = await connection.fetchval("SELECT version_num FROM alembic_version")
    except asyncpg.UndefinedTableError:
        version = None
    if version != SCHEMA_VERSION:
        has = f"has schema {version}" if version else "has no schema yet"
        raise WrongSchema(f"the store {has}, this release needs {SCHEMA_VERSION}; run: biasmeter migrate -c FILE")
