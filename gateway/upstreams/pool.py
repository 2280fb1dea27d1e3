"""Connections that are kept for the next request to the same address. The one used last is used first."""

import asyncio
from typing import Final

from typing_extensions import override

from gateway.upstreams.connection import Connection, Keeper, Key

#: Seconds between two looks for connections that have been kept too long.
_SWEEP: Final = 5.0


class Pool(Keeper):
    """All connections of a client, those in use and those that rest. Made inside a running event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._open: set[Connection] = set()
        self._resting: dict[Key, dict[Connection, float]] = {}  # until when, in the order in which they were used
        self._sweeping: asyncio.TimerHandle | None = None
        self._is_closed = False

    def take(self, key: Key) -> Connection | None:
        """Take a connection that can be used at once."""
        resting = self._resting.get(key)
        while resting:
            connection, until = resting.popitem()
            if connection.is_open and self._loop.time() < until:
                return connection
            connection.abort()
        return None

    def close(self) -> None:
        """End all connections, also those in use."""
        self._is_closed = True
        if self._sweeping is not None:
            self._sweeping.cancel()
        for connection in list(self._open):
            connection.abort()

    @override
    def opened(self, connection: Connection) -> None:
        self._open.add(connection)

    @override
    def rests(self, connection: Connection, seconds: float) -> None:
        if self._is_closed or seconds <= 0:
            connection.abort()
            return
        self._resting.setdefault(connection.key, {})[connection] = self._loop.time() + seconds
        if self._sweeping is None:
            self._sweeping = self._loop.call_later(_SWEEP, self._sweep)

    @override
    def lost(self, connection: Connection) -> None:
        self._open.discard(connection)
        self._resting.get(connection.key, {}).pop(connection, None)

    def _sweep(self) -> None:
        now = self._loop.time()
        for key, resting in list(self._resting.items()):
            for connection in [connection for connection, until in resting.items() if until <= now]:
                del resting[connection]
                connection.abort()
            if not resting:
                del self._resting[key]
        self._sweeping = self._loop.call_later(_SWEEP, self._sweep) if self._resting else None
