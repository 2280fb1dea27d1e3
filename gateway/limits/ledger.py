"""Exchange of what client keys have spent between this host and the store.

The host's total of each key only grows, and the store keeps the largest value, so writing a total twice does no harm.
A host whose file was lost begins a new ledger; the totals of the lost one count as spent elsewhere.

Separate from `gateway.limits.key_limits`, because workers must not import the database driver.
"""

import time
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import asyncpg

from gateway.limits.key_limits import FULL_AT, REQUESTS, SPENT, TOKENS, WIDTH
from gateway.limits.minute_window import MinuteWindow
from gateway.shared import SharedTable

#: A key that the store does not know is skipped.
_WRITE = """
    INSERT INTO key_spending AS stored (key_id, ledger, nano_usd, updated_at)
    SELECT told.key_id, $1, told.nano_usd, now()
    FROM unnest($2::text[], $3::bigint[]) AS told (key_id, nano_usd) JOIN client_keys ON client_keys.id = told.key_id
    ON CONFLICT (key_id, ledger) DO UPDATE SET nano_usd = excluded.nano_usd, updated_at = excluded.updated_at
    WHERE stored.nano_usd < excluded.nano_usd
"""
_ELSEWHERE = "SELECT key_id, sum(nano_usd) AS nano_usd FROM key_spending WHERE ledger <> $1 GROUP BY key_id"


#: Seconds for which a limit that was reached shows that a key needs more.
_LATELY = 5
_SECOND = 1_000_000_000  # nanoseconds


class KeyUse(NamedTuple):
    """What a key has used on this host in the last minute, and whether a limit was reached in the last seconds."""

    requests: int
    tokens: int
    was_full: bool


class Ledger:
    """The spending of this host's keys; ``path`` is the file of `gateway.limits.key_limits`."""

    def __init__(self, path: Path) -> None:
        self._table = SharedTable(path, WIDTH)
        self._written: dict[str, int] = {}

    @property
    def id(self) -> UUID:
        """The id of this host's file."""
        return self._table.id

    def use_of(self, key_id: str) -> KeyUse:
        """Return what a key has used in the last minute."""
        with self._table.locked(key_id) as row:
            second = time.monotonic_ns() // _SECOND
            requests, tokens = MinuteWindow(row[REQUESTS]), MinuteWindow(row[TOKENS])
            was_full = 0 <= second - row[FULL_AT] < _LATELY and row[FULL_AT] > 0
            return KeyUse(max(requests.used(second), 0), max(tokens.used(second), 0), was_full)

    async def write_spending(self, connection: asyncpg.Connection) -> None:
        """Write the totals that have grown since the last call."""
        spent = {key_id: row[SPENT] for key_id, row in self._table.rows()}
        grown = {key_id: nano_usd for key_id, nano_usd in spent.items() if nano_usd > self._written.get(key_id, 0)}
        if grown:
            await connection.execute(_WRITE, self._table.id, list(grown), list(grown.values()))
            self._written = spent

    async def spent_elsewhere(self, connection: asyncpg.Connection) -> dict[str, int]:
        """Return what keys have spent according to all other ledgers, in nano-USD."""
        rows = await connection.fetch(_ELSEWHERE, self._table.id)
        return {row["key_id"]: int(row["nano_usd"]) for row in rows}

    def close(self) -> None:
        """Close the file."""
        self._table.close()
