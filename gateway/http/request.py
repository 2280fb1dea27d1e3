"""A request for its handler; its body may still be arriving."""

import asyncio
from collections.abc import Mapping
from typing import Protocol
from urllib.parse import unquote, urlsplit

from gateway.errors import BadRequest
from gateway.pieces import Pieces


class Client(Protocol):
    """The connection that a request came from."""

    def let_continue(self) -> None:
        """Ask the client for the body of its request."""

    def ends_after(self, request: "Request") -> bool:
        """Return whether the connection ends with the answer to a request."""

    def write(self, data: bytes) -> None:
        """Write bytes to the client, unless it has disconnected."""

    def resume(self) -> None:
        """Resume reading, if it was paused."""


class Request:
    """A request whose head has arrived; its body may still be arriving.

    Attributes
    ----------
    method, target
        The values of the request's first line.
    headers
        Names in lower case; of a field that appears twice, the first counts.
    minor
        0 for HTTP/1.0, 1 for HTTP/1.1.
    stays
        Whether the client wants to keep the connection.
    is_whole
        Whether the request has arrived completely.
    """

    __slots__ = ("_body", "_is_broken", "_waiter", "client", "headers", "held", "is_whole", "method", "minor",
                 "stays", "target")  # fmt: skip

    def __init__(
        self, client: Client, method: str, target: str, headers: dict[str, str], *, minor: int, stays: bool
    ) -> None:
        self.client = client
        self.method = method
        self.target = target
        self.headers = headers
        self.minor = minor
        self.stays = stays
        self.is_whole = False
        self.held = 0  #: bytes of the body that have arrived and have not been read
        self._is_broken = False
        self._body = Pieces()
        self._waiter: asyncio.Future[None] | None = None

    @property
    def path(self) -> str:
        """The path alone, with escapes resolved.

        >>> Request(None, "GET", "/v1/models/a%2Fb?x=1", {}, minor=1, stays=True).path
        '/v1/models/a/b'
        """
        target = self.target
        if not target.startswith("/"):  # the form for proxies, or a target without a path
            try:
                target = urlsplit(target).path
            except ValueError:
                return ""
        return unquote(target.partition("?")[0].partition("#")[0])

    async def body(self, limit: int, seconds: float) -> bytes:
        """Read the whole body.

        Raises
        ------
        BadRequest
            It is larger than ``limit`` bytes, or announces that, or is invalid HTTP, or does not arrive within
            ``seconds``.
        """
        if int(self.headers.get("content-length", 0)) > limit:
            raise _too_large(limit)
        if self.is_whole:
            return await self._read(limit)
        try:
            async with asyncio.timeout(seconds):
                return await self._read(limit)
        except TimeoutError:
            raise BadRequest(
                f"The request's body did not arrive within {seconds:g} s.", code="request_timeout", status=408
            ) from None

    async def _read(self, limit: int) -> bytes:
        while True:
            self.held = 0
            if self._body.size > limit:
                self._body.clear()
                raise _too_large(limit)
            if self.is_whole:
                return self._body.whole()
            if self._is_broken:
                raise BadRequest("The request's body is not valid HTTP.", code="http_error")
            self.client.resume()
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None

    def feed(self, piece: bytes) -> None:
        """Add a piece of the body."""
        self._body.add(piece)
        self.held += len(piece)
        self._wake()

    def end(self) -> None:
        """Mark the body as complete."""
        self.is_whole = True
        self._wake()

    def break_off(self) -> None:
        """Mark the rest of the body as unreadable."""
        self._is_broken = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def framing_error(version: str, headers: Mapping[str, str]) -> BadRequest | None:
    """Return why a head must be refused: its body cannot be read, or HTTP/1.1 requires a host.

    >>> framing_error("1.1", {"host": "h", "transfer-encoding": "gzip, chunked"}).http_status
    501
    """
    coding = headers.get("transfer-encoding")
    if coding is not None and version == "1.0":
        return BadRequest("HTTP/1.0 has no transfer codings.", code="http_error")
    if coding is not None and coding.lower() != "chunked":
        return BadRequest("The only transfer coding that is known is 'chunked'.", code="http_error", status=501)
    if version == "1.1" and "host" not in headers:
        return BadRequest("An HTTP/1.1 request needs the header 'host'.", code="http_error")
    return None


def _too_large(limit: int) -> BadRequest:
    return BadRequest(f"The request body is larger than {limit} bytes.", code="request_too_large", status=413)
