"""An answer that is arriving: its bytes so far, and a reader that may wait for more."""

import asyncio
from typing import Protocol

from gateway.upstreams import UpstreamFailureCode, upstream_failed


class Source(Protocol):
    """The connection of an answer."""

    def resume(self) -> None:
        """Resume reading, if it was paused."""

    def abort(self) -> None:
        """Close the connection at once."""


class PooledAnswer:
    """An answer; its ``status`` is 0 until its head has arrived. See `gateway.upstreams.UpstreamAnswer`."""

    __slots__ = ("_pieces", "_source", "_waiter", "ended", "failure", "headers", "held", "status")

    def __init__(self, source: Source) -> None:
        self.status = 0
        self.headers: list[tuple[str, str]] = []
        self.held = 0  #: bytes that have arrived and have not been read
        self.ended = False
        self.failure: UpstreamFailureCode | None = None
        self._pieces: list[bytes] = []
        self._source: Source | None = source
        self._waiter: asyncio.Future[None] | None = None

    async def read(self) -> bytes:
        """Return the bytes that have arrived, or ``b""`` at the end."""
        while not self._pieces:
            if self.failure is not None:
                raise upstream_failed(self.failure)
            if self.ended:
                return b""
            await self.change()
        pieces, self._pieces, self.held = self._pieces, [], 0
        if self._source is not None:
            self._source.resume()
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def close(self) -> None:
        """Close the connection, if the answer has not ended."""
        if self._source is not None:
            self._source.abort()

    def change(self) -> "asyncio.Future[None]":
        """Return a future that is done at the next change of the answer. Only one reader may wait."""
        self._waiter = asyncio.get_running_loop().create_future()
        return self._waiter

    def begin(self, status: int, headers: list[tuple[str, str]]) -> None:
        """Set the head."""
        self.status, self.headers = status, headers
        self._wake()

    def feed(self, piece: bytes) -> None:
        """Add a piece of the body."""
        self._pieces.append(piece)
        self.held += len(piece)
        self._wake()

    def end(self) -> None:
        """Mark the answer as complete."""
        self.ended, self._source = True, None
        self._wake()

    def fail(self, code: UpstreamFailureCode) -> None:
        """Mark the answer as failed. What has arrived can still be read."""
        self.failure, self._source = code, None
        self._wake()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)
