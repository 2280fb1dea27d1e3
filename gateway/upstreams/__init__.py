"""The interface to deployments, with two implementations: our own HTTP client, and aiohttp's.

An implementation translates errors into `UpstreamFailed` and returns bytes as they arrive. It has no timeout except for
connecting, no retry except the one of `Upstream.send`, and does not read content.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal, Protocol

import msgspec

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


class UpstreamRequest(msgspec.Struct, frozen=True):
    """One request to a deployment."""

    url: str
    headers: dict[str, str]  #: names in lower case, without the length of the body
    body: bytes
    connect_timeout: float  #: seconds
    method: str = "POST"
    ca_file: Path | None = None  #: certificates of the accepted authorities; None: those that the system trusts


class UpstreamAnswer(Protocol):
    """An answer whose head has arrived."""

    @property
    def status(self) -> int:
        """The HTTP status."""

    @property
    def headers(self) -> Sequence[tuple[str, str]]:
        """Header fields in the order they came, names in lower case."""

    @property
    def held(self) -> int:
        """Bytes of the body that `read` returns without waiting, if that is known."""

    async def read(self) -> bytes:
        """Return the bytes of the body that have arrived, at least one, or ``b""`` at its end.

        Raises
        ------
        UpstreamFailed
            The connection ended before the body did.
        """

    def close(self) -> None:
        """Release the connection; it is closed if the answer was not read to its end."""


class Upstream(Protocol):
    """Sends requests to deployments."""

    async def send(self, request: UpstreamRequest) -> UpstreamAnswer:
        """Send a request and wait for the head of its answer.

        A pooled connection that is closed before any byte of the answer is replaced once.

        Raises
        ------
        UpstreamFailed
            The deployment cannot be reached, or closed the connection without an answer.
        """

    async def close(self) -> None:
        """Close all connections."""
