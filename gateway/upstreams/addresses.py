"""Where hosts are, remembered for a while."""

import asyncio
import socket
from collections.abc import Sequence

from aiohappyeyeballs import AddrInfoType, start_connection

#: Seconds for which an answer of the resolver is believed.
_BELIEVED = 30.0
#: Seconds until the next address is tried beside the one that does not answer (RFC 8305).
_NEXT_ADDRESS = 0.25

Lookup = asyncio.Future[Sequence[AddrInfoType]]


class Addresses:
    """Reaches hosts by name. A name is looked up once for all who want it at the same time."""

    def __init__(self) -> None:
        self._lookups: dict[tuple[str, int], Lookup] = {}

    async def connect(self, host: str, port: int) -> socket.socket:
        """Connect to the first of the host's addresses that answers.

        Raises
        ------
        OSError
            The name is not known (`socket.gaierror`), or none of its addresses answers.
        """
        # Shielded: the one who gives up waiting is not the only one who waits.
        found = await asyncio.shield(self._lookups.get((host, port)) or self._look_up(host, port))
        return await start_connection(found, happy_eyeballs_delay=_NEXT_ADDRESS)

    def close(self) -> None:
        """Give up what is still being looked up."""
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
