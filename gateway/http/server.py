"""The server: a listening socket, and the connections that it has accepted.

Where file descriptors lack, room is made by closing connections that wait for their clients, and a few new connections
get descriptors of a reserve (`_Reserve`). So operators are answered whatever clients hold.
"""

import asyncio
import logging
import math
import os
import resource
import socket
from collections.abc import Callable, Collection, Coroutine
from functools import partial
from typing import Any, Final

from typing_extensions import override

from gateway.errors import Saturated
from gateway.http.answer import WholeAnswer
from gateway.http.connection import CHECK_EVERY, ClientConnection, ClientConnectionOwner, Handler
from gateway.http.head_cache import RequestCache
from gateway.http.request import Request

log = logging.getLogger(__name__)

#: The part of the file descriptors that is kept for connections to deployments, the spool and other files.
_KEPT: Final = 0.25
#: The part, of these, that new connections get while no other is free.
_RESERVED: Final = 0.25
#: The part of the file descriptors that is made free at once.
_FREED: Final = 0.125
#: Seconds for which a connection may wait for its client before it is closed for others.
_SPARED: Final = 1.0
#: Seconds between two checks for free file descriptors, and between two log lines about their lack.
_RETRY_EVERY = 0.5
_LOG_EVERY = 30.0
#: The answer to who would wait for a descriptor longer.
_FULL: Final = Saturated("The gateway has no free connection.", code="connections_exceeded", retry_after=1)
#: Seconds between two checks whether requests are being answered.
_IDLE_CHECK: Final = 0.05


class Server(ClientConnectionOwner):
    """Serves one listening socket. Made inside a running event loop.

    While a quarter of the file descriptors or less is free, it accepts connections into the reserve alone. Twice a
    second it then closes connections that have waited for their clients for a second: those without a request first,
    then unfinished requests, each time the oldest. Connections to deployments and the spool need the rest.

    Parameters
    ----------
    handler
        The handler of requests.
    first_byte
        Returns the seconds that a new connection has for its first byte.
    cache
        Is offered each request before it is parsed.
    operators
        Paths that are answered also while file descriptors lack.

    Attributes
    ----------
    draining
        Whether each connection ends with its current or next answer.
    """

    def __init__(
        self,
        handler: Handler,
        first_byte: Callable[[], float],
        cache: RequestCache | None = None,
        operators: Collection[str] = (),
    ) -> None:
        self.handler = handler
        self.cache = cache
        self.first_byte = first_byte
        self.operators = operators
        self.draining = False
        self._loop = asyncio.get_running_loop()
        self._connections: set[ClientConnection] = set()
        self._listening: socket.socket
        self._server: asyncio.Server | None = None  # None while no connections are accepted
        self._is_stopped = False
        self._checking: asyncio.TimerHandle | None = None
        self._reserve = _Reserve(self)
        self._limit = math.inf  # of file descriptors
        self._logged = -math.inf
        self._accepting: set[asyncio.Task[Any]] = set()

    async def listen(self, listening: socket.socket) -> None:
        """Start to accept connections."""
        self._listening = listening
        listening.setblocking(False)
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if limit != resource.RLIM_INFINITY:
            self._limit = limit
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

    @override
    def lost(self, connection: ClientConnection) -> None:
        self._connections.discard(connection)

    async def _accept(self) -> None:
        # A copy, because closing the server also closes its socket.
        sock = self._listening.dup()
        server = await self._loop.create_server(partial(ClientConnection, self), sock=sock, backlog=1024)
        if self._is_stopped:
            server.close()
        else:
            self._server = server

    # -- a lack of file descriptors -----------------------------------------------------------------------------------

    @property
    def _most_descriptors(self) -> float:
        return self._limit * (1 - _KEPT)

    @property
    def has_room(self) -> bool:
        """Whether a file descriptor is free that is not kept for something else."""
        try:
            free = os.dup(self._listening.fileno())
        except OSError:
            return False
        os.close(free)
        return free < self._most_descriptors

    def _pause(self, used: int) -> None:
        assert self._server is not None
        self._server.close()
        self._server = None
        if self._loop.time() - self._logged > _LOG_EVERY:
            self._logged = self._loop.time()
            log.warning(
                "more than %d file descriptors are in use: connections that wait for their clients are closed, and new "
                "ones wait until at most %d are; raise the limit of open files",
                used,
                self._most_descriptors,
            )
        self._loop.call_later(_RETRY_EVERY, self._make_room)

    def _make_room(self) -> None:
        """Close connections that wait for their clients, and then accept others."""
        self._reserve.close_waiting()
        before = self._loop.time() - _SPARED
        waiting = [connection for connection in self._connections if connection.waiting_since < before]
        waiting.sort(key=lambda connection: (not connection.is_unused, connection.waiting_since))
        for connection in waiting[: int(self._limit * _FREED)]:
            connection.abort()
        self._loop.call_soon(self._accept_more)  # their descriptors are free by then

    def _accept_more(self) -> None:
        if self._is_stopped:
            return
        self._accept_reserved(int(self._limit * _KEPT * _RESERVED))
        if self.has_room:
            self._start(self._accept())
        else:
            self._loop.call_later(_RETRY_EVERY, self._make_room)

    def _accept_reserved(self, most: int) -> None:
        """Accept connections that have waited until now, as long as the reserve has fewer than ``most``."""
        for _ in range(most - len(self._reserve.connections)):
            try:
                accepted, _ = self._listening.accept()
            except OSError:  # none waits, or no descriptor is free at all
                return
            self._start(self._loop.connect_accepted_socket(partial(ClientConnection, self._reserve), accepted))

    def _start(self, accepting: Coroutine[Any, Any, object]) -> None:
        task = self._loop.create_task(accepting)
        self._accepting.add(task)
        task.add_done_callback(self._accepting.discard)

    # -- connections that wait for their clients ----------------------------------------------------------------------

    def look(self) -> None:
        """Close connections that have waited too long for their clients. Called every `CHECK_EVERY` seconds."""
        for connection in list(self._connections):
            connection.look()

    def _look_later(self) -> None:
        self._checking = self._loop.call_later(CHECK_EVERY, self._look)

    def _look(self) -> None:
        self.look()
        self._look_later()


class _Reserve(ClientConnectionOwner):
    """Connections that are accepted although file descriptors lack. Each ends with its first answer.

    Requests of operators are answered, others only if descriptors have become free. Connections that have sent no whole
    request by the next check are closed, so that others get their places.
    """

    cache = None
    draining = True

    def __init__(self, server: Server) -> None:
        self._server = server
        self.connections: set[ClientConnection] = set()
        self.handler = self._answer
        self.first_byte = server.first_byte

    def close_waiting(self) -> None:
        """Close the connections that have not sent a whole request."""
        for connection in list(self.connections):
            if connection.waiting_since < math.inf:
                connection.abort()

    @override
    def opened(self, connection: ClientConnection) -> None:
        self.connections.add(connection)
        self._server.opened(connection)

    @override
    def lost(self, connection: ClientConnection) -> None:
        self.connections.discard(connection)
        self._server.lost(connection)

    async def _answer(self, request: Request) -> bool:
        server = self._server
        if request.path in server.operators:
            return await server.handler(request)
        if server.has_room:
            assert isinstance(request.client, ClientConnection)
            self.connections.discard(request.client)
            return await server.handler(request)
        headers = {"content-type": "application/json", **_FULL.headers()}
        return WholeAnswer(_FULL.http_status, headers, _FULL.body()).send(request)
