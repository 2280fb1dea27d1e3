"""Free ports of the loopback."""

import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager


def free_port(further: int = 0) -> int:
    """Return a port that is free now, as are so many after it; below those that the system gives to connections."""
    while True:
        port = random.SystemRandom().randrange(12_000, 32_000)
        try:
            for candidate in range(port, port + further + 1):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", candidate))
        except OSError:
            continue
        return port


@contextmanager
def held_port() -> Iterator[int]:
    """A port that `free_port` gives to nobody until the block ends, for servers that come and go on it."""
    with socket.socket() as holder:
        # A server that reuses addresses, as asyncio's do, may listen beside a socket that does not.
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        port = free_port()
        holder.bind(("127.0.0.1", port))
        yield port
