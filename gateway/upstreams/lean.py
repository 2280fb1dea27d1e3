"""The lean upstream: a pool of connections on `httptools`, and nothing between them and the event loop."""

import asyncio
import socket
import ssl

from typing_extensions import override

from gateway.upstreams import Upstream, UpstreamAnswer, UpstreamRequest, tls
from gateway.upstreams.addresses import Addresses
from gateway.upstreams.connection import Connection, HungUp, Key
from gateway.upstreams.failures import failed
from gateway.upstreams.head import target_of, write_head
from gateway.upstreams.pool import Pool


class LeanUpstream(Upstream):
    """Asks deployments. Made inside a running event loop, uvloop's or asyncio's."""

    def __init__(self) -> None:
        self._pool = Pool()
        self._addresses = Addresses()

    @override
    async def send(self, request: UpstreamRequest) -> UpstreamAnswer:
        target = target_of(request.url)
        head, is_head = write_head(target, request), request.method == "HEAD"
        key = (target.host, target.port, tls.context(request.ca_file) if target.secure else None)
        kept = self._pool.take(key)
        if kept is not None:
            try:
                return await kept.ask(head, request.body, is_head=is_head)
            except HungUp:
                # A server may close a kept connection at the very moment we use it: that is no answer of its own.
                del kept
        fresh = await self._connect(key, request.connect_timeout)
        try:
            return await fresh.ask(head, request.body, is_head=is_head)
        except HungUp:
            raise failed("upstream_reset") from None

    @override
    async def close(self) -> None:
        self._addresses.close()
        self._pool.close()

    async def _connect(self, key: Key, seconds: float) -> Connection:
        try:
            async with asyncio.timeout(seconds):
                return await self._reach(key)
        except TimeoutError:
            raise failed("upstream_connect_timeout") from None
        except ssl.SSLError:
            raise failed("upstream_tls") from None
        except (socket.gaierror, UnicodeError):
            raise failed("upstream_dns") from None
        except OSError:
            raise failed("upstream_connect") from None

    async def _reach(self, key: Key) -> Connection:
        host, port, context = key
        sock = await self._addresses.connect(host, port)
        name = host.rstrip(".") if context else None
        loop = asyncio.get_running_loop()
        _, made = await loop.create_connection(
            lambda: Connection(self._pool, key), sock=sock, ssl=context, server_hostname=name
        )
        return made
