"""Remove what is older than the configuration allows: partitions as a whole, rows of other tables in batches.

The bounds are days (UTC). Everything of a day is kept until the whole day is older than allowed, so rows are removed up
to one day later than configured, and never earlier.
"""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from auditor.domain.ids import day_bounds
from auditor.store.chain import expire_facts, forget_batches
from auditor.store.engine import transaction
from auditor.store.lifetimes import Lifetime
from auditor.store.tallies import expire_tiles

#: Tables with one partition a day, in the order of removal.
PARTITIONED: Final[Mapping[str, Lifetime]] = {
    "exchange_content": Lifetime.CONTENT,
    "answer_words": Lifetime.CONTENT,
    "votes": Lifetime.FACTS,
    "codings": Lifetime.FACTS,
    "exchanges": Lifetime.FACTS,
}
#: DROP waits for open readers, and everybody who comes later waits for DROP, so it gives up soon and tries again.
_LOCK_TIMEOUT: Final = "200ms"
_PAUSES: Final = (0.5, 1.0, 2.0, 4.0)  # seconds
_LOCKED: Final = "55P03"
#: One run at a time in each step.
_TURN: Final = text("SELECT pg_advisory_xact_lock(hashtext('biasmeter retention'))")
_BATCH: Final = 5000
_DAY: Final = re.compile(r"_(\d{8})$")


def first_kept_day(now: datetime, seconds: float) -> date:
    """Return the oldest day (UTC) of which anything is kept, if it is kept for so many seconds.

    Examples
    --------
    >>> first_kept_day(datetime(2026, 3, 31, 12, tzinfo=UTC), 30 * 86400)
    datetime.date(2026, 3, 1)
    """
    return (now - timedelta(seconds=seconds)).astimezone(UTC).date()


@dataclass(frozen=True, kw_only=True, slots=True)
class RetentionBounds:
    """The oldest days (UTC) of which content and facts are kept."""

    content: date
    facts: date

    @classmethod
    def at(cls, now: datetime, content: float, facts: float) -> "RetentionBounds":
        """Return the bounds at a moment, from the configured ages in seconds."""
        return cls(content=first_kept_day(now, content), facts=first_kept_day(now, facts))

    def day_of(self, lifetime: Lifetime) -> date:
        """Return the oldest day that is kept."""
        return self.content if lifetime is Lifetime.CONTENT else self.facts

    @property
    def parameters(self) -> dict[str, UUID | datetime]:
        """The parameters of the queries: first ids and first moments that are kept."""
        return {
            "content_id": day_bounds(self.content)[0],
            "facts_id": day_bounds(self.facts)[0],
            "facts_at": datetime.combine(self.facts, time(), UTC),
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Expired:
    """A partition, or rows of a table, that are due."""

    what: str  #: the partition; or the table, with the column that is emptied
    rows: int
    bytes: int
    lifetime: Lifetime  #: the rule by which it is due
    before: date  #: everything older than this day is due
    partition: bool = False
    blocked: bool = False  #: somebody used it for so long that it was left for the next run


@dataclass(frozen=True, kw_only=True, slots=True)
class _Step:
    """Rows of a table that are due: they are deleted, or one of their columns is emptied."""

    table: str
    where: str
    lifetime: Lifetime = Lifetime.FACTS
    column: str | None = None  #: the column to empty
    values: str = ""  #: assignments that empty the column
    key: str = "ctid"

    @property
    def name(self) -> str:
        return f"{self.table}.{self.column}" if self.column else self.table

    @property
    def size(self) -> str:
        value = self.column or f"{self.table}.*"
        return f"SELECT count(*), coalesce(sum(pg_column_size({value})), 0) FROM {self.table} WHERE {self.where}"  # noqa: S608 -- names of our own

    @property
    def removal(self) -> str:
        listed = f"SELECT {self.key} FROM {self.table} WHERE {self.where} LIMIT {_BATCH}"  # noqa: S608 -- names of our own
        verb = f"UPDATE {self.table} SET {self.values}" if self.column else f"DELETE FROM {self.table}"  # noqa: S608 -- as above
        return f"{verb} WHERE {self.key} = ANY(ARRAY({listed})) AND ({self.where})"


_CONTENT: Final = Lifetime.CONTENT
#: A plan is due when its newest answer is: all calls of a plan that is in use stay answered.
_OLD_PLANS: Final = """
    SELECT p.id FROM plans p WHERE p.created_at < :facts_at AND NOT EXISTS (
        SELECT FROM planned_calls c JOIN planned_instances i ON i.ref = c.ref
        WHERE c.plan_id = p.id AND i.exchange_id >= :facts_id)
"""
_OLD_ROUNDS: Final = "SELECT id FROM peer_rounds WHERE created_at < :facts_at"
_OLD_DRAWS: Final = "SELECT id FROM review_draws WHERE drawn_at < :facts_at"
_OF_CLIENTS: Final = """
    EXISTS (SELECT FROM exchanges e WHERE e.id = peer_vectors.exchange_id AND e.origin IN ('client', 'peer'))
"""
_OF_NO_CALL: Final = f"""
    NOT EXISTS (
        SELECT FROM planned_calls c WHERE c.ref = planned_instances.ref AND c.plan_id NOT IN ({_OLD_PLANS})
    ) AND NOT EXISTS (
        SELECT FROM peer_calls c WHERE c.ref = planned_instances.ref AND c.round_id NOT IN ({_OLD_ROUNDS})
    )
"""  # noqa: S608 -- constants
#: In this order: rows before the row that they refer to.
_STEPS: Final = (
    _Step(
        table="votes", column="rationale", values="rationale = ''", key="exchange_id", lifetime=_CONTENT,
        where="exchange_id >= :facts_id AND exchange_id < :content_id AND rationale <> ''",
    ),
    _Step(
        table="reviews", column="note", values="note = NULL", lifetime=_CONTENT,
        where="exchange_id >= :facts_id AND exchange_id < :content_id AND note IS NOT NULL",
    ),
    _Step(
        table="peer_scores", column="justification", values="justification = ''", lifetime=_CONTENT,
        where="exchange_id >= :facts_id AND exchange_id < :content_id AND justification <> ''",
    ),
    _Step(
        table="peer_vectors", column="vector", values="vector = NULL, missing = 'expired'", lifetime=_CONTENT,
        where=f"exchange_id >= :facts_id AND exchange_id < :content_id AND vector IS NOT NULL AND {_OF_CLIENTS}",
    ),
    _Step(table="peer_vectors", where="exchange_id < :facts_id"),
    _Step(table="peer_scores", where="exchange_id < :facts_id"),
    _Step(table="peer_passed_over", where="exchange_id < :facts_id"),
    _Step(table="peer_calls", where=f"round_id IN ({_OLD_ROUNDS})"),
    _Step(table="peer_questions", where=f"round_id IN ({_OLD_ROUNDS})"),
    _Step(table="peer_rounds", where="created_at < :facts_at"),
    _Step(table="reviews", where="exchange_id < :facts_id"),
    _Step(table="review_locks", where=f"draw_id IN ({_OLD_DRAWS})"),
    _Step(table="review_draw_items", where=f"draw_id IN ({_OLD_DRAWS})"),
    _Step(table="review_draws", where="drawn_at < :facts_at"),
    # The plan's answers are removed last, so that the plan stays due until all its calls are gone.
    _Step(table="planned_calls", where=f"plan_id IN ({_OLD_PLANS})"),
    _Step(table="plans", where=f"id IN ({_OLD_PLANS})"),
    _Step(table="planned_instances", where=f"exchange_id < :facts_id AND {_OF_NO_CALL}"),
    _Step(table="exposures", where="concluded_at < :facts_at"),
    _Step(table="webhook_deliveries", where="created_at < :facts_at"),
    _Step(table="stale_tiles", where="hour < :facts_at"),
    _Step(table="unsent_codings", where="exchange_id < :facts_id"),
    _Step(table="erased_exchanges", where="exchange_id < :facts_id"),
    _Step(table="exchange_counts", where="day < (CAST(:facts_at AS timestamptz) AT TIME ZONE 'UTC')::date"),
)  # fmt: skip
#: Tiles go together with the windows that contain them.
_TILES: Final = (
    _Step(table="tallies", where="hour < :facts_at"),
    _Step(table="ballots", where="hour < :facts_at"),
    _Step(table="windows", where="since < :facts_at"),
)
#: The oldest batches of the chain, up to the first with an exchange that is kept.
_BATCHES: Final = _Step(table="chain", where="newest < :facts_id")
#: The tables whose rows are removed one by one.
STEPPED: Final = frozenset(step.table for step in (*_STEPS, _BATCHES, *_TILES))


async def find_expired(engine: AsyncEngine, bounds: RetentionBounds) -> list[Expired]:
    """List what is due.

    Raises
    ------
    StoreUnavailable
        The store does not answer.
    """
    async with transaction(engine) as connection:
        expired = [
            partition
            for table, lifetime in PARTITIONED.items()
            for partition in await _expired_partitions(connection, table, lifetime, bounds.day_of(lifetime))
        ]
        for step in (*_STEPS, _BATCHES, *_TILES):
            rows, size = (await connection.execute(text(step.size), _used(step.size, bounds))).one()
            if rows:
                expired.append(_expired_rows(step, bounds, rows, int(size)))
    return expired


async def remove_expired(engine: AsyncEngine, bounds: RetentionBounds) -> list[Expired]:
    """Remove what is due, and return what was removed; each step is a transaction of its own.

    A partition that somebody uses for longer than a few seconds is left for the next run.

    Raises
    ------
    StoreUnavailable
        The store does not answer; what has been removed stays removed.
    """
    async with transaction(engine) as connection:
        partitions = [
            partition
            for table, lifetime in PARTITIONED.items()
            for partition in await _expired_partitions(connection, table, lifetime, bounds.day_of(lifetime))
        ]
        await expire_facts(connection, day_bounds(bounds.facts)[0])
    removed = [
        partition if await _drop(engine, partition.what) else replace(partition, blocked=True)
        for partition in partitions
    ]
    for step in _STEPS:
        removed += await _remove_rows(engine, step, bounds)
    if not any(partition.blocked for partition in removed):  # a batch stays as long as one of its exchanges may
        removed += await _remove_batches(engine, bounds)
    return removed + await _remove_tiles(engine, bounds)


async def _expired_partitions(
    connection: AsyncConnection, table: str, lifetime: Lifetime, first_kept: date
) -> list[Expired]:
    query = text("""
        SELECT c.relname AS name, pg_total_relation_size(c.oid) AS bytes
        FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = CAST(:table AS regclass) ORDER BY c.relname
    """)
    expired = []
    for row in (await connection.execute(query, {"table": table})).all():
        named = _DAY.search(row.name)
        if named and datetime.strptime(named[1], "%Y%m%d").replace(tzinfo=UTC).date() < first_kept:
            rows = await connection.scalar(text(f"SELECT count(*) FROM {row.name}"))  # noqa: S608 -- a partition's name
            expired.append(
                Expired(
                    what=row.name, rows=rows or 0, bytes=row.bytes, lifetime=lifetime, before=first_kept, partition=True
                )
            )
    return expired


async def _drop(engine: AsyncEngine, partition: str) -> bool:
    """Drop a partition, unless somebody keeps using it."""
    for pause in (*_PAUSES, None):
        try:
            async with transaction(engine) as connection:
                await connection.execute(text(f"SET LOCAL lock_timeout = '{_LOCK_TIMEOUT}'"))
                await connection.execute(text(f"DROP TABLE IF EXISTS {partition}"))
            return True
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) != _LOCKED:
                raise
        if pause is not None:
            await asyncio.sleep(pause)
    return False


async def _remove_rows(engine: AsyncEngine, step: _Step, bounds: RetentionBounds) -> list[Expired]:
    async with transaction(engine) as connection:
        await connection.execute(_TURN)
        rows, size = (await connection.execute(text(step.size), _used(step.size, bounds))).one()
    left = rows
    while left > 0:
        async with transaction(engine) as connection:
            await connection.execute(_TURN)
            removal = await connection.execute(text(step.removal), _used(step.removal, bounds))
        left = removal.rowcount
    return [_expired_rows(step, bounds, rows, int(size))] if rows else []


async def _remove_tiles(engine: AsyncEngine, bounds: RetentionBounds) -> list[Expired]:
    removed = []
    async with transaction(engine) as connection:
        await connection.execute(_TURN)
        for step in _TILES:
            rows, size = (await connection.execute(text(step.size), _used(step.size, bounds))).one()
            removed += [_expired_rows(step, bounds, rows, int(size))] if rows else []
        if removed:
            await expire_tiles(connection, datetime.combine(bounds.facts, time(), UTC))
    return removed


async def _remove_batches(engine: AsyncEngine, bounds: RetentionBounds) -> list[Expired]:
    async with transaction(engine) as connection:
        rows, size = (await connection.execute(text(_BATCHES.size), _used(_BATCHES.size, bounds))).one()
        if rows:
            await forget_batches(connection, day_bounds(bounds.facts)[0])
    return [_expired_rows(_BATCHES, bounds, rows, int(size))] if rows else []


def _expired_rows(step: _Step, bounds: RetentionBounds, rows: int, size: int) -> Expired:
    return Expired(what=step.name, rows=rows, bytes=size, lifetime=step.lifetime, before=bounds.day_of(step.lifetime))


def _used(query: str, bounds: RetentionBounds) -> dict[str, Any]:
    return {name: value for name, value in bounds.parameters.items() if f":{name}" in query}
