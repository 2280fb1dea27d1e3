"""The server: a listening socket, and the connections that it has accepted."""

import asyncio
import logging
import math
import os
import resource
import socket
from collections.abc import Callable
from functools import partial
from typing import Final

from typing_extensions import override

from gateway.http.connection import CHECK_EVERY, ClientConnection, ClientConnectionOwner, Handler
from gateway.http.head_cache import RequestCache

log = logging.getLogger(__name__)

#: The part of the file descriptors that is kept for connections to deployments, the spool and other files.
_RESERVE = 0.25
#: Seconds between two checks for free file descriptors, and between two log lines about their lack.
_RETRY_EVERY = 0.5
_LOG_EVERY = 30.0
#: Seconds between two checks whether requests are being answered.
_IDLE_CHECK: Final = 0.05


class Server(ClientConnectionOwner):
    """Serves one listening socket. Made inside a running event loop.

    It accepts no connection while a quarter of the file descriptors or less is free, and closes unused connections
    then. Connections to deployments and the spool need the rest.

    Parameters
    ----------
    handler
        The handler of requests.
    first_byte
        Returns the seconds that a new connection has for its first byte.
    cache
        Is offered each request before it is parsed.

    Attributes
    ----------
    draining
        Whether each connection ends with its current or next answer.
    """

    def __init__(self, handler: Handler, first_byte: Callable[[], float], cache: RequestCache | None = None) -> None:
        self.handler = handler
        self.cache = cache
        self.first_byte = first_byte
        self.draining = False
        self._loop = asyncio.get_running_loop()
        self._connections: set[ClientConnection] = set()
        self._listening: socket.socket
        self._server: asyncio.Server | None = None  # None while no connections are accepted
        self._is_stopped = False
        self._checking: asyncio.TimerHandle | None = None
        self._most_descriptors = math.inf
        self._logged = -math.inf
        self._accepting: asyncio.Task[None] | None = None

    async def listen(self, listening: socket.socket) -> None:
        """Start to accept connections."""
        self._listening = listening
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if limit != resource.RLIM_INFINITY:
            self._most_descriptors = limit - int(limit * _RESERVE)
        await self._accept()
        self._look_later()

    @property
    def is_busy(self) -> bool:
        """Whether a request is being answered."""
        return any(connection.is_busy for connection in self._connections)

    async def wait_until_idle(self, seconds: float) -> None:
        """Wait until no request is being answered, at most for some seconds."""
        deadline = self._loop.time() + seconds
        while self.is_busy and self._loop.time() < deadline:  # noqa: ASYNC110 -- the end of the last answer is no event
            await asyncio.sleep(_IDLE_CHECK)

    def drain(self) -> None:
        """End each connection with its current or next answer."""
        self.draining = True
        for connection in list(self._connections):
            connection.drain()

    def stop_answers(self) -> None:
        """End all answers at once, as far as the clients can still be told."""
        for connection in list(self._connections):
            connection.stop()

    def stop(self) -> None:
        """Stop accepting connections."""
        self._is_stopped = True
        if self._server is not None:
            self._server.close()
            self._server = None
        self._listening.close()

    async def close(self, seconds: float) -> None:
        """Close all connections. Those that are answering a request get up to ``seconds`` to finish."""
        self.stop()
        self.drain()
        for connection in list(self._connections):
            connection.end_if_idle()
        await self.wait_until_idle(seconds)
        if self._checking is not None:
            self._checking.cancel()
        for connection in list(self._connections):
            connection.abort()

    @override
    def opened(self, connection: ClientConnection) -> None:
        self._connections.add(connection)
        # A new descriptor gets the lowest free number, so at least as many are in use.
        if connection.descriptor >= self._most_descriptors and self._server is not None:
            self._pause(connection.descriptor)

    async def _accept(self) -> None:
        # A copy, because closing the server also closes its socket.
        sock = self._listening.dup()
        server = await self._loop.create_server(partial(ClientConnection, self), sock=sock, backlog=1024)
        if self._is_stopped:
            server.close()
        else:
            self._server = server

    def _pause(self, used: int) -> None:
        assert self._server is not None
        self._server.close()
        self._server = None
        if self._loop.time() - self._logged > _LOG_EVERY:
            self._logged = self._loop.time()
            log.warning(
                "more than %d file descriptors are in use: new connections wait until at most %d are; raise the limit "
                "of open files",
                used,
                self._most_descriptors,
            )
        self._resume_later()

    def _resume_later(self) -> None:
        self._loop.call_later(_RETRY_EVERY, self._resume)

    def _resume(self) -> None:
        if self._is_stopped:
            return
        for connection in list(self._connections):
            connection.end_if_unused()
        if self._lowest_free() < self._most_descriptors:
            self._accepting = self._loop.create_task(self._accept())
        else:
            self._resume_later()

    def _lowest_free(self) -> float:
        """Return the lowest free file descriptor, infinite if there is none."""
        try:
            free = os.dup(self._listening.fileno())
        except OSError:
            return math.inf
        os.close(free)
        return free

    @override
    def lost(self, connection: ClientConnection) -> None:
        self._connections.discard(connection)

    def look(self) -> None:
        """Close connections that have waited too long for their clients. Called every `CHECK_EVERY` seconds."""
        for connection in list(self._connections):
            connection.look()

    def _look_later(self) -> None:
        self._checking = self._loop.call_later(CHECK_EVERY, self._look)

    def _look(self) -> None:
        self.look()
        self._look_later()
