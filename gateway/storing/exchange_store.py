"""The tables of exchanges as the shipper writes them: batches of rows by COPY, each row once, a partition per day."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path

import asyncpg

from auditor.domain.ids import day_bounds
from auditor.errors import StoreUnavailable
from gateway.storing.copy_rows import CONTENT, FACTS, ExchangeRow, copy_data

_EPOCH = date(1970, 1, 1)
_TABLES = {"exchanges": FACTS, "exchange_content": CONTENT}


@dataclass(slots=True)
class ExchangeStore:
    """The store as the shipper uses it: one connection, and the days after 1970 that are known to have partitions.

    ``logged`` holds the segments whose failure has been logged, so that each is logged once. ``unmarked`` holds the
    positions up to which segments have been shipped where that cannot be recorded on disk.
    """

    connection: asyncpg.Connection
    days: set[int] = field(default_factory=set)
    logged: set[Path] = field(default_factory=set)
    unmarked: dict[Path, int] = field(default_factory=dict)

    async def prepare(self) -> None:
        """Create this connection's temporary tables, into which batches with rows that exist are copied."""
        for table in _TABLES:
            await self.connection.execute(
                f"CREATE TEMP TABLE incoming_{table} (LIKE {table} INCLUDING DEFAULTS) ON COMMIT DELETE ROWS"
            )

    async def write(self, rows: list[ExchangeRow]) -> None:
        """Write a batch in one transaction. Rows that exist already stay as they are.

        Raises
        ------
        StoreUnavailable
            The connection broke; the batch may have been stored or not.
        """
        days = {row.day for row in rows}
        try:
            try:
                await self._write(rows, days - self.days)
            except asyncpg.CheckViolationError:
                if not days & self.days:
                    raise
                # A row has no partition: a known one has been dropped since.
                await self._write(rows, days)
        except OSError as error:  # to distinguish it from errors of the spool's files
            raise StoreUnavailable(f"the store went away: {error}") from error

    async def _write(self, rows: list[ExchangeRow], new_days: set[int]) -> None:
        for day in new_days:
            await self._make_day(day)
        try:
            await self._insert(rows, self._copy)
        except asyncpg.UniqueViolationError:
            # An earlier shipper died between the commit and the mark.
            await self._insert(rows, self._copy_missing)

    async def _insert(self, rows: list[ExchangeRow], copy: Callable[[str, bytes], Awaitable[None]]) -> None:
        content = [row.content for row in rows if row.content]
        planned = sorted((row.planned, row.id) for row in rows if row.planned is not None)
        async with self.connection.transaction():
            # In the order in which partitions are made; rows of this table come last.
            await self.connection.execute("LOCK TABLE exchanges IN ROW EXCLUSIVE MODE")
            if content:
                await copy("exchange_content", copy_data(content))
            if planned:
                # The first complete row of a planned instance is the one that counts.
                await self.connection.executemany(
                    "INSERT INTO planned_instances (ref, exchange_id) VALUES ($1, $2) ON CONFLICT DO NOTHING", planned
                )
            # The batches of all hosts follow one another from here to the commit.
            await copy("exchanges", copy_data(row.facts for row in rows))

    async def _copy(self, table: str, data: bytes, into: str = "") -> None:
        # As one buffer: a file would be read in a thread by an object in a cycle, which keeps the batch for a while.
        await self.connection.copy_to_table(
            f"{into}{table}", source=memoryview(data), columns=_TABLES[table], format="binary"
        )

    async def _copy_missing(self, table: str, data: bytes) -> None:
        """Copy the rows that do not exist, by way of a temporary table: COPY itself refuses all if one exists."""
        await self._copy(table, data, "incoming_")
        names = ", ".join(_TABLES[table])
        await self.connection.execute(
            f"INSERT INTO {table} ({names}) SELECT {names} FROM incoming_{table} ON CONFLICT DO NOTHING"  # noqa: S608 -- constants
        )

    async def _make_day(self, day: int) -> None:
        calendar_day = _EPOCH + timedelta(days=day)
        low, high = day_bounds(calendar_day)
        async with self.connection.transaction():
            # Shippers of several hosts may do this at the same time, and CREATE ... IF NOT EXISTS alone can then fail.
            await self.connection.execute("SELECT pg_advisory_xact_lock(hashtext('biasmeter partitions'))")
            for table in _TABLES:
                await self.connection.execute(
                    f"CREATE TABLE IF NOT EXISTS {table}_{calendar_day:%Y%m%d} PARTITION OF {table} "
                    f"FOR VALUES FROM ('{low}') TO ('{high}')"
                )
        self.days.add(day)
