"""Where clients come in: a listening socket, and the connections that it has accepted."""

import asyncio
import socket
from functools import partial

from typing_extensions import override

from gateway.server.connection import LOOK, Connection, Handler, Owner


class Site(Owner):
    """Serves one listening socket. Made inside a running event loop.

    Parameters
    ----------
    handler
        Answers the requests.

    Attributes
    ----------
    draining
        Whether each connection ends with the answer that it is at, or gives next.
    """

    def __init__(self, handler: Handler) -> None:
        self.handler = handler
        self.draining = False
        self._loop = asyncio.get_running_loop()
        self._connections: set[Connection] = set()
        self._server: asyncio.Server | None = None
        self._looking: asyncio.TimerHandle | None = None

    async def listen(self, listening: socket.socket) -> None:
        """Accept connections from now on."""
        self._server = await self._loop.create_server(partial(Connection, self), sock=listening, backlog=1024)
        self._look_later()

    @property
    def tasks(self) -> "list[asyncio.Task[None]]":
        """Those that are answering a request."""
        return [connection.task for connection in self._connections if connection.task is not None]

    def stop(self) -> None:
        """Accept no more connections."""
        if self._server is not None:
            self._server.close()

    async def close(self, seconds: float) -> None:
        """End all connections; those that are answering a request once that is done, or so many seconds are over."""
        self.stop()
        self.draining = True
        for connection in list(self._connections):
            connection.end_if_idle()
        if tasks := self.tasks:
            await asyncio.wait(tasks, timeout=seconds)
        if self._looking is not None:
            self._looking.cancel()
        for connection in list(self._connections):
            connection.abort()

    @override
    def opened(self, connection: Connection) -> None:
        self._connections.add(connection)

    @override
    def lost(self, connection: Connection) -> None:
        self._connections.discard(connection)

    def look(self) -> None:
        """End the connections that have waited too long for their clients. Is called every `LOOK` seconds."""
        for connection in list(self._connections):
            connection.look()

    def _look_later(self) -> None:
        self._looking = self._loop.call_later(LOOK, self._look)

    def _look(self) -> None:
        self.look()
        self._look_later()
