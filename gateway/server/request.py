"""A request as it comes in, as its handler sees it."""

import asyncio
from typing import Protocol
from urllib.parse import unquote, urlsplit

from gateway.errors import BadRequest


class Client(Protocol):
    """Where a request comes from, and its answer goes."""

    @property
    def is_gone(self) -> bool:
        """Whether the client has left."""

    @property
    def is_full(self) -> bool:
        """Whether the client takes no more for now."""

    def ends_after(self, request: "Request") -> bool:
        """Say whether the connection ends with the answer to a request."""

    def write(self, data: bytes) -> None:
        """Send bytes."""

    async def drain(self) -> None:
        """Wait until the client takes more."""

    def go_on(self) -> None:
        """Read on, if that was paused."""

    def cut(self) -> None:
        """End the connection at once, in the middle of an answer."""


class Request:
    """A request whose head has arrived; its body may still be coming.

    Attributes
    ----------
    method, target
        As they stand in the request's first line.
    headers
        Names in lower case; of a field that comes twice the first counts.
    minor
        0 for HTTP/1.0, 1 for HTTP/1.1.
    stays
        Whether the client would go on with the connection.
    is_whole
        Whether all of it has arrived.
    """

    __slots__ = ("_is_broken", "_pieces", "_waiter", "client", "headers", "held", "is_whole", "method", "minor",
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
        self.held = 0  #: bytes of the body that have arrived and were not read
        self._is_broken = False
        self._pieces: list[bytes] = []
        self._waiter: asyncio.Future[None] | None = None

    @property
    def path(self) -> str:
        """The path alone, with escapes resolved.

        >>> Request(None, "GET", "/v1/models/a%2Fb?x=1", {}, minor=1, stays=True).path
        '/v1/models/a/b'
        """
        target = self.target
        if not target.startswith("/"):  # a proxy's form, or none that has a path
            try:
                target = urlsplit(target).path
            except ValueError:
                return ""
        return unquote(target.partition("?")[0].partition("#")[0])

    async def body(self, limit: int) -> bytes:
        """Read the whole body.

        Raises
        ------
        BadRequest
            It is, or says that it is, larger than ``limit`` bytes, or is no HTTP in its middle.
        """
        if int(self.headers.get("content-length", 0)) > limit:
            raise _too_large(limit)
        pieces: list[bytes] = []
        size = 0
        while True:
            pieces += self._pieces
            size += self.held
            self._pieces, self.held = [], 0
            if size > limit:
                raise _too_large(limit)
            if self.is_whole:
                return pieces[0] if len(pieces) == 1 else b"".join(pieces)
            if self._is_broken:
                raise BadRequest("The request's body is not valid HTTP.", code="http_error")
            self.client.go_on()
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None

    def feed(self, piece: bytes) -> None:
        """Take a piece of the body."""
        self._pieces.append(piece)
        self.held += len(piece)
        self._wake()

    def end(self) -> None:
        """Take note that nothing more comes."""
        self.is_whole = True
        self._wake()

    def break_off(self) -> None:
        """Take note that the rest cannot be read."""
        self._is_broken = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def _too_large(limit: int) -> BadRequest:
    return BadRequest(f"The request body is larger than {limit} bytes.", code="request_too_large", status=413)
