"""Name the tables of the job queue (pgqueuer's), and read what waits and which chunks somebody holds.

``biasmeter migrate`` creates them, like every other table. ``auditor.jobs`` works on them through pgqueuer.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from uuid import UUID

from pgqueuer.adapters.persistence import schema_ddl
from pgqueuer.domain.schema.declaration import target
from pgqueuer.domain.settings import DBSettings, Durability
from pgqueuer.domain.types import Channel
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

#: All names are set, because pgqueuer reads missing ones from environment variables such as CHANNEL or TRIGGER.
SETTINGS: Final = DBSettings(
    db_schema=None,
    prefix="biasmeter_",
    channel=Channel("biasmeter_jobs"),
    function="fn_biasmeter_jobs_changed",
    statistics_table="biasmeter_jobs_statistics",
    queue_status_type="biasmeter_jobs_status",
    queue_table="biasmeter_jobs",
    queue_table_log="biasmeter_jobs_log",
    trigger="tg_biasmeter_jobs_changed",
    schedules_table="biasmeter_jobs_schedules",
    durability=Durability.durable,
)
#: The queues. ``code`` carries chunks of exchanges, the others carry nothing.
FIND: Final = "find"
CODE: Final = "code"
COUNT: Final = "count"
ESTIMATE: Final = "estimate"


def install_statements() -> Iterator[str]:
    """Yield pgqueuer's DDL, one statement at a time, because the driver prepares statements."""
    schema = target(SETTINGS)
    yield from (schema_ddl.render_enum(each, SETTINGS) for each in schema.enums)
    yield from (schema_ddl.render_table(each, SETTINGS) for each in schema.tables)
    yield from (schema_ddl.render_index(each, SETTINGS) for each in schema.indexes)
    yield from (schema_ddl.render_function(each, SETTINGS) for each in schema.functions)
    yield from (schema_ddl.render_trigger(each, SETTINGS) for each in schema.triggers)


@dataclass(frozen=True, kw_only=True, slots=True)
class Chunk:
    """Exchanges to be coded by one coder: the content of a job of the queue ``code``."""

    coder: str
    ids: tuple[UUID, ...]

    def pack(self) -> bytes:
        """Write the payload."""
        return json.dumps({"coder": self.coder, "ids": [str(each) for each in self.ids]}).encode()

    @classmethod
    def unpack(cls, payload: bytes | None) -> "Chunk":
        """Read the payload."""
        document = json.loads(payload or b"{}")
        return cls(coder=document["coder"], ids=tuple(UUID(each) for each in document["ids"]))


async def held_chunks(connection: AsyncConnection, alive: timedelta | None = None) -> list[Chunk]:
    """Read the chunks that are queued or being coded; with ``alive``, only those with a recent heartbeat."""
    where = "status IN ('queued', 'picked')"
    if alive is not None:
        where = "status = 'picked' AND heartbeat > now() - make_interval(secs => :seconds)"
    query = text(f"SELECT payload FROM biasmeter_jobs WHERE entrypoint = :code AND {where}")  # noqa: S608 -- constants
    seconds = alive.total_seconds() if alive is not None else 0.0
    rows = await connection.execute(query, {"code": CODE} | ({"seconds": seconds} if alive is not None else {}))
    return [Chunk.unpack(row.payload) for row in rows]


async def ask_for(connection: AsyncConnection, queue: str, key: str) -> bool:
    """Enqueue a job unless the same one is queued already, and return whether it was enqueued.

    A running job may have read its input already, so a request made meanwhile is another job, with the running one
    in its key.
    """
    query = text("""
        INSERT INTO biasmeter_jobs (priority, entrypoint, dedupe_key, status)
        SELECT 1, CAST(:queue AS text), concat_ws(':', CAST(:key AS text), max(id)), 'queued'
        FROM biasmeter_jobs WHERE entrypoint = CAST(:queue AS text) AND status = 'picked'
        ON CONFLICT DO NOTHING RETURNING id
    """)
    return (await connection.execute(query, {"queue": queue, "key": key})).first() is not None


async def queue_sizes(connection: AsyncConnection) -> dict[tuple[str, str], int]:
    """Count the jobs by queue and state."""
    query = text("SELECT entrypoint, status::text AS state, count(*) AS n FROM biasmeter_jobs GROUP BY 1, 2")
    return {(row.entrypoint, row.state): row.n for row in await connection.execute(query)}


async def forget_finished(connection: AsyncConnection, older_than: timedelta) -> None:
    """Delete the log of finished jobs, which the queue itself never deletes."""
    for table in ("biasmeter_jobs_log", "biasmeter_jobs_statistics"):
        query = text(f"DELETE FROM {table} WHERE created < now() - make_interval(secs => :seconds)")  # noqa: S608 -- constants
        await connection.execute(query, {"seconds": older_than.total_seconds()})
