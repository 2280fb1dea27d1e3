"""The schema's version: bringing the store to this release's, and refusing to work on another."""

from importlib.resources import files

from alembic import command
from alembic.config import Config as AlembicConfig
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from auditor.domain.schema import SCHEMA_VERSION
from auditor.errors import SchemaMismatch
from auditor.store.engine import reading

#: Two ``migrate`` at once: the second waits, and finds nothing to do.
_LOCK = "SELECT pg_advisory_xact_lock(hashtext('tiltmeter migrate'))"


async def migrate(engine: AsyncEngine) -> tuple[str | None, str]:
    """Bring the store to this release's schema; give the version before and after. All of it happens, or nothing."""
    async with reading(engine) as connection:
        await connection.execute(text(_LOCK))
        before = await _version(connection)
        await connection.run_sync(_upgrade)
        after = await _version(connection)
    assert after is not None
    return before, after


async def check_version(engine: AsyncEngine) -> None:
    """Refuse a store of another version.

    Raises
    ------
    SchemaMismatch
        It says which version the store has, and which command helps.
    """
    async with reading(engine) as connection:
        found = await _version(connection)
    if found != SCHEMA_VERSION:
        has = f"has schema {found}" if found else "has no schema yet"
        raise SchemaMismatch(f"the store {has}, this release needs {SCHEMA_VERSION}; run: tiltmeter migrate -c FILE")


def newest_revision() -> str | None:
    """Name the newest revision in the migrations folder."""
    return ScriptDirectory.from_config(_alembic()).get_current_head()


def _alembic() -> AlembicConfig:
    config = AlembicConfig()
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
