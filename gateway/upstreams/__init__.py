"""The way to a deployment: one narrow interface, behind which a client library or our own connection pool stands.

An implementation translates its library's errors into `UpstreamFailed`, and does nothing else: no timeouts but the
one for connecting, no retries but the one below, no reading of content. Everything it hands over is bytes as they came.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import msgspec


class UpstreamRequest(msgspec.Struct, frozen=True):
    """One request to a deployment."""

    url: str
    headers: dict[str, str]  #: names in lower case; how long the body is, is not theirs to say
    body: bytes
    connect_timeout: float  #: seconds
    method: str = "POST"
    ca_file: Path | None = None  #: who may have signed the deployment's certificate; None: whom the system trusts


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
        """Bytes of the body that `read` gives without waiting, as far as that is known."""

    async def read(self) -> bytes:
        """Give the bytes of the body that have arrived, at least one; ``b""`` at its end.

        Raises
        ------
        UpstreamFailed
            The connection ended before the body did.
        """

    def close(self) -> None:
        """Let the connection go; one whose answer was not read to its end is closed."""


class Upstream(Protocol):
    """Asks deployments."""

    async def send(self, request: UpstreamRequest) -> UpstreamAnswer:
        """Send a request and wait for the head of its answer.

        A pooled connection that turns out to be closed before any byte of an answer is replaced.

        Raises
        ------
        UpstreamFailed
            The deployment cannot be reached, or hung up without an answer.
        """

    async def close(self) -> None:
        """Close all connections."""
