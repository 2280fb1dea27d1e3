"""Connections to deployments: an HTTP/1.1 client on `httptools`, directly on the event loop.

A `ConnectionPool` keeps the connections. An `UpstreamConnection` carries one request at a time, and gives its follower
the head of the answer and the bytes of its body as they arrive. Nothing here reads content, waits for an answer, or
sends a request again.
"""

from typing import Final, Literal

from gateway.errors import UpstreamFailed

UpstreamFailureCode = Literal[
    "upstream_connect_timeout", "upstream_tls", "upstream_dns", "upstream_connect",
    "upstream_reset", "upstream_protocol", "upstream_cut",
]  # fmt: skip

_WHY: Final[dict[UpstreamFailureCode, str]] = {
    "upstream_connect_timeout": "The deployment could not be reached in time.",
    "upstream_tls": "The deployment's TLS certificate was not accepted.",
    "upstream_dns": "The deployment's host name is not known.",
    "upstream_connect": "The deployment could not be reached.",
    "upstream_reset": "The deployment closed the connection without an answer.",
    "upstream_protocol": "The deployment's answer is not HTTP.",
    "upstream_cut": "The deployment closed the connection in the middle of its answer.",
}


def upstream_failed(code: UpstreamFailureCode) -> UpstreamFailed:
    """Return the error for the client."""
    return UpstreamFailed(_WHY[code], code=code)
