"""Free ports of the loopback."""

import random
import socket


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
