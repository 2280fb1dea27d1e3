"""All connections to deployments: those in use, those that wait for the next request, and new ones."""

import asyncio
import socket
import ssl
from collections.abc import Sequence
from typing import Final

from aiohappyeyeballs import AddrInfoType, start_connection
from typing_extensions import override

from gateway.upstreams import upstream_failed
from gateway.upstreams.answer_heads import AnswerHeads
from gateway.upstreams.connection import ConnectionKey, ConnectionOwner, UpstreamConnection

#: Seconds between two checks for expired idle connections.
_EXPIRY_INTERVAL: Final = 5.0
#: Seconds for which an answer of the resolver is cached.
_BELIEVED: Final = 30.0
#: Seconds until the next address is tried in parallel (RFC 8305).
_NEXT_ADDRESS: Final = 0.25

_Lookup = asyncio.Future[Sequence[AddrInfoType]]


class ConnectionPool(ConnectionOwner):
    """The connections. The last used is used first. Created inside a running event loop, uvloop's or asyncio's."""

    def __init__(self) -> None:
        self.heads = AnswerHeads()
        self._addresses = _HostAddresses()
        self._loop = asyncio.get_running_loop()
        self._open: set[UpstreamConnection] = set()
        #: With their expiry times, in order of last use.
        self._idle: dict[ConnectionKey, dict[UpstreamConnection, float]] = {}
        self._expiry_timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    def take(self, key: ConnectionKey) -> UpstreamConnection | None:
        """Return an idle connection that can be used, or None."""
        idle = self._idle.get(key)
        while idle:
            connection, until = idle.popitem()
            if connection.is_open and self._loop.time() < until:
                connection.idle_until = until
                return connection
            connection.abort()
        return None

    def put_back(self, connection: UpstreamConnection) -> None:
        """Put a connection back that was taken and not used."""
        self._idle[connection.key][connection] = connection.idle_until

    def close(self) -> None:
        """Close all connections, also those in use."""
        self._is_closed = True
        self._addresses.close()
        if self._expiry_timer is not None:
            self._expiry_timer.cancel()
        for connection in list(self._open):
            connection.cut()

    async def connect(self, key: ConnectionKey, seconds: float) -> UpstreamConnection:
        """Open a connection within some seconds.

        Raises
        ------
        UpstreamFailed
            The deployment cannot be reached.
        """
        try:
            async with asyncio.timeout(seconds):
                return await self._reach(key)
        except TimeoutError:
            raise upstream_failed("upstream_connect_timeout") from None
        except ssl.SSLError:
            raise upstream_failed("upstream_tls") from None
        except (socket.gaierror, UnicodeError):
            raise upstream_failed("upstream_dns") from None
        except OSError:
            raise upstream_failed("upstream_connect") from None

    async def _reach(self, key: ConnectionKey) -> UpstreamConnection:
        host, port, context = key
        sock = await self._addresses.connect(host, port)
        name = host.rstrip(".") if context else None
        _, connection = await self._loop.create_connection(
            lambda: UpstreamConnection(self, key), sock=sock, ssl=context, server_hostname=name
        )
        return connection

    @override
    def opened(self, connection: UpstreamConnection) -> None:
        self._open.add(connection)

    @override
    def give_back(self, connection: UpstreamConnection, seconds: float) -> None:
        if self._is_closed or seconds <= 0:
            connection.abort()
            return
        idle = self._idle.get(connection.key)
        if idle is None:
            idle = self._idle[connection.key] = {}
        idle[connection] = self._loop.time() + seconds
        if self._expiry_timer is None:
            self._expiry_timer = self._loop.call_later(_EXPIRY_INTERVAL, self._close_expired)

    @override
    def lost(self, connection: UpstreamConnection) -> None:
        self._open.discard(connection)
        self._idle.get(connection.key, {}).pop(connection, None)

    def _close_expired(self) -> None:
        now = self._loop.time()
        for key, idle in list(self._idle.items()):
            for connection in [connection for connection, until in idle.items() if until <= now]:
                del idle[connection]
                connection.abort()
            if not idle:
                del self._idle[key]
        self._expiry_timer = self._loop.call_later(_EXPIRY_INTERVAL, self._close_expired) if self._idle else None


class _HostAddresses:
    """Connects to hosts by name. Simultaneous requests for one name share a lookup; addresses are tried in parallel."""

    def __init__(self) -> None:
        self._lookups: dict[tuple[str, int], _Lookup] = {}

    async def connect(self, host: str, port: int) -> socket.socket:
        """Connect to the first address of the host that answers.

        Raises
        ------
        OSError
            The name is not known (`socket.gaierror`), or none of its addresses answers.
        """
        # Shielded, because other requests may wait for the same lookup.
        addresses = await asyncio.shield(self._lookups.get((host, port)) or self._look_up(host, port))
        return await start_connection(addresses, happy_eyeballs_delay=_NEXT_ADDRESS)

    def close(self) -> None:
        """Cancel pending lookups."""
        for lookup in self._lookups.values():
            lookup.cancel()

    def _look_up(self, host: str, port: int) -> _Lookup:
        loop = asyncio.get_running_loop()
        lookup: _Lookup = asyncio.ensure_future(loop.getaddrinfo(host, port, type=socket.SOCK_STREAM))

        def remember(done: _Lookup) -> None:
            unknown = done.cancelled() or done.exception() is not None
            loop.call_later(0.0 if unknown else _BELIEVED, self._lookups.pop, (host, port), None)

        lookup.add_done_callback(remember)
        self._lookups[host, port] = lookup
        return lookup
