"""An answer as it comes in: what has arrived, and one who may wait for more."""

import asyncio
from typing import Protocol

from gateway.upstreams.failures import Code, failed


class Source(Protocol):
    """What an answer comes from."""

    def go_on(self) -> None:
        """Read on, if that was paused."""

    def abort(self) -> None:
        """End it at once."""


class Answer:
    """An answer; its ``status`` is 0 until its head has arrived. See `gateway.upstreams.UpstreamAnswer`."""

    __slots__ = ("_pieces", "_source", "_waiter", "ended", "failure", "headers", "held", "status")

    def __init__(self, source: Source) -> None:
        self.status = 0
        self.headers: list[tuple[str, str]] = []
        self.held = 0  #: bytes that have arrived and were not read
        self.ended = False
        self.failure: Code | None = None
        self._pieces: list[bytes] = []
        self._source: Source | None = source
        self._waiter: asyncio.Future[None] | None = None

    async def read(self) -> bytes:
        """Give the bytes that have arrived; ``b""`` at the end."""
        while not self._pieces:
            if self.failure is not None:
                raise failed(self.failure)
            if self.ended:
                return b""
            await self.change()
        pieces, self._pieces, self.held = self._pieces, [], 0
        if self._source is not None:
            self._source.go_on()
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def close(self) -> None:
        """End the connection, if the answer has not ended."""
        if self._source is not None:
            self._source.abort()

    def change(self) -> "asyncio.Future[None]":
        """Give what is done when something has happened to the answer. One at a time may wait."""
        self._waiter = asyncio.get_running_loop().create_future()
        return self._waiter

    def begin(self, status: int, headers: list[tuple[str, str]]) -> None:
        """Take the head."""
        self.status, self.headers = status, headers
        self._wake()

    def feed(self, piece: bytes) -> None:
        """Take a piece of the body."""
        self._pieces.append(piece)
        self.held += len(piece)
        self._wake()

    def end(self) -> None:
        """There is no more, and there shall not be."""
        self.ended, self._source = True, None
        self._wake()

    def fail(self, code: Code) -> None:
        """There is no more, though there should be. What has arrived can still be read."""
        self.failure, self._source = code, None
        self._wake()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)
