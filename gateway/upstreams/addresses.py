"""Addresses of hosts: looked up once for simultaneous requests, and tried in parallel."""

import asyncio
import socket
from collections.abc import Sequence
from typing import Final

from aiohappyeyeballs import AddrInfoType, start_connection

#: Seconds for which an answer of the resolver is cached.
_BELIEVED: Final = 30.0
#: Seconds until the next address is tried in parallel (RFC 8305).
_NEXT_ADDRESS: Final = 0.25

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
        addresses = await asyncio.shield(self._lookups.get((host, port)) or self._look_up(host, port))
        return await start_connection(addresses, happy_eyeballs_delay=_NEXT_ADDRESS)

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
