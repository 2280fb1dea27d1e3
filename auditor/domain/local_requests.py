"""Tell requests of programs on this machine from those that a web page causes.

A server on a loopback address that asks for no key trusts every local program. A browser is one too: a page may let its
own host name resolve to this machine, or send a request whose answer it cannot read.
"""

import re

_LOCAL = re.compile(r"(?:localhost|127(?:\.[0-9]{1,3}){3}|\[::1\])(?::[0-9]{1,5})?", re.IGNORECASE)


def is_local_host(host: str) -> bool:
    """Return whether a ``Host`` field names this machine: localhost or a loopback address, with any port.

    >>> is_local_host("127.0.0.1:4000"), is_local_host("[::1]"), is_local_host("localhost.example")
    (True, True, False)
    """
    return _LOCAL.fullmatch(host) is not None


def is_same_origin(origin: str, scheme: str, host: str) -> bool:
    """Return whether an ``Origin`` field is that of the server's own pages.

    >>> is_same_origin("http://localhost:4001", "http", "localhost:4001")
    True
    >>> is_same_origin("null", "http", "localhost:4001")
    False
    """
    return origin == f"{scheme}://{host}"
