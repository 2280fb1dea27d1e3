"""Publishes the client keys of the store, actions on routes and stopped arms in the snapshot, on its own connection.

Nothing that holds up the shipping of exchanges, such as a lock on their tables, delays a revocation. It also exchanges
what keys have spent (`gateway.limits.ledger`).
"""

import logging

import asyncpg

from auditor.domain.actions import RouteAction
from auditor.domain.keys import Key
from auditor.trials.assignment import stop_key
from gateway import bootstrap, snapshot
from gateway.limits.ledger import Ledger
from gateway.limits.shares import KeyShares
from gateway.rare_log import RareLog
from gateway.storing.database import Database

log = logging.getLogger(__name__)

#: Seconds between two readings of the keys. A revocation takes effect within 5 s (docs/gateway.md): this time, half a
#: second in the workers, and the time that the store takes.
EVERY = 2.0
_Published = tuple[tuple[Key, ...], dict[str, int], tuple[RouteAction, ...], frozenset[str]]
_LOCK_TIMEOUT, _COMMAND_TIMEOUT = 2.0, 5.0  # seconds


class KeyPublisher:
    """Keeps the snapshot of the client keys up to date.

    Parameters
    ----------
    database_url
        The URL of the database.
    folders
        The files of the gateway's processes.
    ledger
        Ledger of what the keys of this host have spent.
    """

    def __init__(self, database_url: str, folders: bootstrap.Folders, ledger: Ledger) -> None:
        self._database = Database(database_url, lock_timeout=_LOCK_TIMEOUT, command_timeout=_COMMAND_TIMEOUT)
        self._snapshot = folders.snapshot
        self._ledger = ledger
        self._shares = KeyShares(ledger)
        self._published: _Published | None = None
        self._rare = RareLog(log)

    async def publish(self) -> int:
        """Publish the keys and what they have spent elsewhere, and write what they have spent here to the store.

        Returns the number of keys that are not revoked. A snapshot that cannot be written is logged and tried again at
        the next call.

        Raises
        ------
        gateway.database.WrongSchema, and the errors in gateway.database.UNREACHABLE
            The store cannot be used.
        """
        connection = await self._database.connect()
        keys = await _read_keys(connection)
        shared = await self._shares.take(connection, keys)
        elsewhere = await self._ledger.spent_elsewhere(connection)
        self._write((shared, elsewhere, await _read_actions(connection), await _read_stopped(connection)))
        await self._ledger.write_spending(connection)
        return sum(not key.revoked for key in keys)

    def _write(self, published: _Published) -> None:
        try:
            if published != self._published:
                snapshot.write(self._snapshot, *published)
                self._published = published
                self._shares.published(published[0])
            snapshot.confirm(self._snapshot)
        except OSError as error:
            self._rare.warning("%s: %s; the client keys stay as they are, and it is tried again", self._snapshot, error)

    def close(self) -> None:
        """Close the connection. The next call of `publish` opens another."""
        self._database.close()


async def _read_keys(connection: asyncpg.Connection) -> tuple[Key, ...]:
    rows = await connection.fetch(
        "SELECT id, name, hash, models, rights, rpm, tpm, budget, expires_at, revoked_at IS NOT NULL AS revoked "
        "FROM client_keys ORDER BY id"
    )
    return tuple(Key.of_row(row, revoked=row["revoked"]) for row in rows)


async def _read_actions(connection: asyncpg.Connection) -> tuple[RouteAction, ...]:
    rows = await connection.fetch(
        'SELECT id, route, deployment, kind, "to", share, expires_at FROM route_actions '
        "WHERE ended_at IS NULL AND NOT dry_run AND kind <> 'notify' ORDER BY began_at, id"
    )
    return tuple(RouteAction(**{**row, "to": tuple(row["to"])}) for row in rows)


async def _read_stopped(connection: asyncpg.Connection) -> frozenset[str]:
    rows = await connection.fetch("SELECT trial, arm FROM arm_stops WHERE NOT dry_run")
    return frozenset(stop_key(row["trial"], row["arm"]) for row in rows)
