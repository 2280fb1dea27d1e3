"""Migrate the store to this release's schema, and refuse to work on another version."""

from importlib.resources import files

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, inspect, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from auditor.domain.schema import SCHEMA_VERSION
from auditor.errors import SchemaMismatch
from auditor.store.engine import transaction

#: If two ``migrate`` run at once, the second waits and finds nothing to do.
_LOCK = "SELECT pg_advisory_xact_lock(hashtext('biasmeter migrate'))"


async def migrate(engine: AsyncEngine) -> tuple[str | None, str]:
    """Bring the store to this release's schema in one transaction; return the version before and after.

    Raises
    ------
    SchemaMismatch
        The store has a version that this release does not know.
    """
    async with transaction(engine) as connection:
        await connection.execute(text(_LOCK))
        before = await _version(connection)
        try:
            await connection.run_sync(_upgrade)
        except CommandError:  # Alembic does not know the version
            raise SchemaMismatch(
                f"the store has schema {before}, which this release (schema {SCHEMA_VERSION}) cannot migrate; "
                "use the release that made the store, or an empty database"
            ) from None
        after = await _version(connection)
    assert after is not None
    return before, after


async def check_version(engine: AsyncEngine) -> None:
    """Refuse a store of another version.

    Raises
    ------
    SchemaMismatch
        The message names the version of the store and the command to run.
    """
    async with transaction(engine) as connection:
        version = await _version(connection)
    if version != SCHEMA_VERSION:
        has = f"has schema {version}" if version else "has no schema yet"
        raise SchemaMismatch(f"the store {has}, this release needs {SCHEMA_VERSION}; run: biasmeter migrate -c FILE")


def newest_revision() -> str | None:
    """Return the newest revision in the migrations folder."""
    return ScriptDirectory.from_config(_alembic()).get_current_head()


def _alembic() -> Config:
    config = Config()
    config.set_main_option("script_location", str(files("auditor.store") / "migrations"))
    return config


def _upgrade(connection: Connection) -> None:
    config = _alembic()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


async def _version(connection: AsyncConnection) -> str | None:
    if not await connection.run_sync(lambda sync: inspect(sync).has_table("alembic_version")):
        return None
    version: str | None = (await connection.execute(text("SELECT version_num FROM alembic_version"))).scalar()
    return version
