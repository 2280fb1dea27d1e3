"""A way to PostgreSQL that a test can cut: one host loses the store while others keep it.

It can also hold back that the server has closed a connection, so that a client meets what comes just before.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit, urlunsplit


class StoreLine:
    """Relays connections to the server of ``url``, under a URL of its own."""

    def __init__(self, url: str, *, holds_end: bool = False) -> None:
        self._holds_end = holds_end
        self._parts = urlsplit(url)
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._relays: set[asyncio.Task[None]] = set()
        self._port = 0

    @property
    def url(self) -> str:
        """The URL through this line."""
        user = self._parts.netloc.rpartition("@")[0]
        return urlunsplit(self._parts._replace(netloc=f"{user}@127.0.0.1:{self._port}"))

    async def join(self) -> None:
        """Relay, on the same port as before."""
        self._server = await asyncio.start_server(self._relay, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        """Refuse connections, and end those that are open or being made."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self._abort()
        if self._relays:
            await asyncio.wait(self._relays)

    def _abort(self) -> None:
        for writer in self._open:
            writer.transport.abort()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._relays.add(task)
        task.add_done_callback(self._relays.discard)
        far_reader, far_writer = await asyncio.open_connection(self._parts.hostname, self._parts.port)
        ends = {writer, far_writer}
        self._open |= ends
        if self._server is None:  # it was cut meanwhile
            self._abort()
        with suppress(ConnectionError):
            await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer, closes=not self._holds_end))
        self._open -= ends
        for end in ends:
            end.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, closes: bool = True) -> None:
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    finally:
        if closes:
            writer.close()


@asynccontextmanager
async def store_line(url: str, *, holds_end: bool = False) -> AsyncIterator[StoreLine]:
    """A line that is joined; it is cut at the end of the block."""
    line = StoreLine(url, holds_end=holds_end)
    await line.join()
    try:
        yield line
    finally:
        await line.cut()
