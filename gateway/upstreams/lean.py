"""The lean upstream: an HTTP/1.1 client with pooled connections on `httptools`, directly on the event loop."""

import asyncio
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from aiohappyeyeballs import AddrInfoType, start_connection
from typing_extensions import override
from yarl import URL

from gateway.errors import UpstreamFailed
from gateway.upstreams import Upstream, UpstreamAnswer, UpstreamRequest, tls, upstream_failed
from gateway.upstreams.connection import ConnectionKey, ConnectionOwner, HungUp, UpstreamConnection

#: Framing fields, which `write_head` writes itself.
_FRAMING = frozenset({"content-length", "transfer-encoding"})
_BODILESS = frozenset({"GET", "HEAD"})


@dataclass(frozen=True, slots=True)
class RequestTarget:
    """The parts of a URL that a request needs."""

    host: str
    port: int
    secure: bool
    path: str  #: with the query
    authority: str  #: the value of ``host``


@lru_cache(maxsize=1024)
def parse_url(url: str) -> RequestTarget:
    """Parse a URL.

    >>> parse_url("https://models.example:8443/v1/models?api-version=1")
    RequestTarget(host='models.example', port=8443, secure=True, path='/v1/models?api-version=1', \
authority='models.example:8443')
    """
    parts = URL(url)
    assert parts.raw_host is not None
    assert parts.port is not None
    assert parts.host_port_subcomponent is not None
    return RequestTarget(
        parts.raw_host, parts.port, parts.scheme == "https", parts.raw_path_qs, parts.host_port_subcomponent
    )


def write_head(target: RequestTarget, request: UpstreamRequest) -> bytes:
    r"""Return the head of a request, including its empty line.

    Raises
    ------
    UpstreamFailed
        A field contains a line break or a NUL.

    >>> write_head(parse_url("http://h/v1/models"), UpstreamRequest("", {"accept": "*/*"}, b"", 5, method="GET"))
    b'GET /v1/models HTTP/1.1\r\nhost: h\r\naccept: */*\r\n\r\n'
    """
    lines = [f"{request.method} {target.path} HTTP/1.1"]
    if "host" not in request.headers:
        lines.append(f"host: {target.authority}")
    lines += [f"{name}: {value}" for name, value in request.headers.items() if name not in _FRAMING]
    if request.body or request.method not in _BODILESS:
        lines.append(f"content-length: {len(request.body)}")
    head = "\r\n".join(lines)
    if head.count("\r") >= len(lines) or head.count("\n") >= len(lines) or "\0" in head:
        raise UpstreamFailed("The request to the deployment cannot be written as HTTP.", code="upstream_protocol")
    return head.encode("utf-8", "surrogateescape") + b"\r\n\r\n"


#: Seconds for which an answer of the resolver is cached.
_BELIEVED = 30.0
#: Seconds until the next address is tried in parallel (RFC 8305).
_NEXT_ADDRESS = 0.25

Lookup = asyncio.Future[Sequence[AddrInfoType]]


class HostAddresses:
    """Connects to hosts by name. Simultaneous requests for one name share a lookup."""

    def __init__(self) -> None:
        self._lookups: dict[tuple[str, int], Lookup] = {}

    async def connect(self, host: str, port: int) -> socket.socket:
        """Connect to the first address of the host that answers.

        Raises
        ------
        OSError
            The name is not known (`socket.gaierror`), or none of its addresses answers.
        """
        # Shielded, because other requests may wait for the same lookup.
        found = await asyncio.shield(self._lookups.get((host, port)) or self._look_up(host, port))
        return await start_connection(found, happy_eyeballs_delay=_NEXT_ADDRESS)

    def close(self) -> None:
        """Cancel pending lookups."""
        for lookup in self._lookups.values():
            lookup.cancel()

    def _look_up(self, host: str, port: int) -> Lookup:
        loop = asyncio.get_running_loop()
        lookup: Lookup = asyncio.ensure_future(loop.getaddrinfo(host, port, type=socket.SOCK_STREAM))

        def remember(done: Lookup) -> None:
            unknown = done.cancelled() or done.exception() is not None
            loop.call_later(0.0 if unknown else _BELIEVED, self._lookups.pop, (host, port), None)

        lookup.add_done_callback(remember)
        self._lookups[host, port] = lookup
        return lookup


#: Seconds between two checks for expired idle connections.
_EXPIRY_INTERVAL: Final = 5.0


class ConnectionPool(ConnectionOwner):
    """All connections of a client. The last used is used first. Created inside a running event loop."""

    def __init__(self) -> None:
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
        if self._expiry_timer is not None:
            self._expiry_timer.cancel()
        for connection in list(self._open):
            connection.abort()

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


class LeanUpstream(Upstream):
    """Sends requests to deployments. Created inside a running event loop, uvloop's or asyncio's."""

    def __init__(self) -> None:
        self.pool = ConnectionPool()
        self._addresses = HostAddresses()

    @override
    async def send(self, request: UpstreamRequest) -> UpstreamAnswer:
        target = parse_url(request.url)
        head, is_head = write_head(target, request), request.method == "HEAD"
        key = (target.host, target.port, tls.context(request.ca_file) if target.secure else None)
        kept = self.pool.take(key)
        if kept is not None:
            try:
                return await kept.ask(head, request.body, is_head=is_head)
            except HungUp:
                # A server may close an idle connection at the moment of its reuse: retry on a new connection.
                del kept
        fresh = await self._connect(key, request.connect_timeout)
        try:
            return await fresh.ask(head, request.body, is_head=is_head)
        except HungUp:
            raise upstream_failed("upstream_reset") from None

    @override
    async def close(self) -> None:
        self._addresses.close()
        self.pool.close()

    async def _connect(self, key: ConnectionKey, seconds: float) -> UpstreamConnection:
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
        loop = asyncio.get_running_loop()
        _, made = await loop.create_connection(
            lambda: UpstreamConnection(self.pool, key), sock=sock, ssl=context, server_hostname=name
        )
        return made
