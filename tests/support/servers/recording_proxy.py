"""A TCP proxy that records: it stands between a client and a server, changes nothing, and keeps every byte.

Two shims, one before the gateway and one behind it, show whether what a client got is what the upstream sent.
It can cut what it forwards into small segments, so that characters and events are split over packets.
"""

import asyncio
import itertools
import socket
import struct
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Literal

import h11

Side = Literal["client", "server"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpMessage:
    """One request or response out of a recorded stream.

    `raw` are its bytes as they passed, `body` those of its content with the chunked framing taken off. Header
    names are lower case. `complete` is False where the stream ended, or stopped being HTTP, before the message did.
    """

    start: bytes  # the request's "METHOD TARGET", the response's status
    headers: tuple[tuple[str, str], ...]
    body: bytes
    raw: bytes
    complete: bool

    @property
    def status(self) -> int:
        """A response's status."""
        return int(self.start)

    def header(self, name: str) -> str | None:
        """Give the first header of this name."""
        return next((value for key, value in self.headers if key == name.lower()), None)


@dataclass(slots=True, kw_only=True, eq=False)
class Exchange:
    """Everything that passed over one connection."""

    request: bytearray = field(default_factory=bytearray)
    response: bytearray = field(default_factory=bytearray)
    #: who ended it first: the client, the server, or nobody yet
    closed_by: Side | None = None
    #: whether either side ended it with a reset
    reset: bool = False
    #: whether it is over
    done: asyncio.Event = field(default_factory=asyncio.Event)

    def requests(self) -> list[HttpMessage]:
        """Split what the client sent into requests."""
        return split_requests(bytes(self.request))

    def responses(self) -> list[HttpMessage]:
        """Split what the server sent into responses, each read as the answer to its request."""
        methods = [message.start.split(b" ")[0] for message in self.requests()]
        return split_responses(bytes(self.response), methods)


def split_requests(stream: bytes) -> list[HttpMessage]:
    """Split a recorded stream into HTTP/1.1 requests."""
    messages = []
    while stream:
        message, stream = _read(h11.Connection(h11.SERVER), stream)
        if message is None:
            break
        messages.append(message)
    return messages


def split_responses(stream: bytes, methods: Sequence[bytes] = ()) -> list[HttpMessage]:
    """Split a recorded stream into HTTP/1.1 responses.

    `methods` are those of the requests, in order (default GET): an answer to HEAD has no body whatever it promises.
    Interim answers (1xx) are left out of the list; their bytes are in the `raw` of the answer they precede.
    """
    messages = []
    for method in itertools.chain(methods, itertools.repeat(b"GET")):
        if not stream:
            break
        parser = h11.Connection(h11.CLIENT)
        parser.send(h11.Request(method=method, target="/", headers=[("host", "shim")]))
        parser.send(h11.EndOfMessage())
        message, stream = _read(parser, stream)
        if message is None:
            break
        messages.append(message)
    return messages


def _read(parser: h11.Connection, stream: bytes) -> tuple[HttpMessage | None, bytes]:
    """Read one message off a stream with a fresh parser; give it and the bytes behind it."""
    parser.receive_data(stream)
    head: h11.Request | h11.Response | None = None
    body, complete = bytearray(), False
    with suppress(h11.RemoteProtocolError):
        while not complete:
            match parser.next_event():
                case h11.Request() | h11.Response() as head:
                    pass
                case h11.Data(data=data):
                    body += data
                case h11.EndOfMessage():
                    complete = True
                case h11.NEED_DATA:
                    parser.receive_data(b"")  # the recording ends here, as a body without a length may
                case h11.PAUSED | h11.ConnectionClosed():
                    break
    rest = parser.trailing_data[0] if complete else b""
    if head is None:
        return None, rest
    start = head.method + b" " + head.target if isinstance(head, h11.Request) else str(head.status_code).encode()
    headers = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in head.headers)
    raw = stream[: len(stream) - len(rest)]
    return HttpMessage(start=start, headers=headers, body=bytes(body), raw=raw, complete=complete), rest


class RecordingShim:
    """The proxy; `segments` (sizes in turn, for ever) cuts what goes to the client, None leaves packets as they are.

    Plain sockets rather than streams: asyncio's reader drops what it holds when a reset arrives.
    """

    def __init__(self, target: tuple[str, int], segments: Sequence[int] | None, pause: float) -> None:
        self.exchanges: list[Exchange] = []
        self.segments = segments
        self.pause = pause
        self._target = target
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self._listening.setblocking(False)
        self.port: int = self._listening.getsockname()[1]
        self._tasks = {asyncio.create_task(self._accept())}

    @property
    def url(self) -> str:
        """Base URL, as clients of OpenAI want it."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def responses(self) -> list[HttpMessage]:
        """Every response so far, in the order of connections."""
        return [message for exchange in self.exchanges for message in exchange.responses()]

    async def close(self) -> None:
        """Stop listening and end what is still open."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._listening.close()

    async def _accept(self) -> None:
        while True:
            client, _ = await asyncio.get_running_loop().sock_accept(self._listening)
            exchange = Exchange()
            self.exchanges.append(exchange)
            task = asyncio.create_task(self._join(exchange, client))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _join(self, exchange: Exchange, client: socket.socket) -> None:
        """Reach the target and forward both ways until both sides have ended."""
        with client, socket.socket() as target:
            try:
                for sock in (client, target):
                    sock.setblocking(False)
                    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                await self._reach(exchange, target)
                async with asyncio.TaskGroup() as group:
                    group.create_task(_pump(exchange, "client", client, target, exchange.request))
                    cut = itertools.cycle(self.segments) if self.segments else None
                    group.create_task(_pump(exchange, "server", target, client, exchange.response, cut, self.pause))
            except* OSError:
                exchange.reset = True
                for sock in (client, target):  # closing a socket set so sends RST
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            finally:
                exchange.done.set()

    async def _reach(self, exchange: Exchange, target: socket.socket) -> None:
        try:
            await asyncio.get_running_loop().sock_connect(target, self._target)
        except OSError:
            exchange.closed_by = "server"
            raise


async def _pump(
    exchange: Exchange,
    name: Side,
    source: socket.socket,
    sink: socket.socket,
    record: bytearray,
    cut: "itertools.cycle[int] | None" = None,
    pause: float = 0.0,
) -> None:
    """Forward one direction, and its end (FIN); a reset of either side is left to the caller."""
    loop = asyncio.get_running_loop()
    ending = name
    try:
        while data := await loop.sock_recv(source, 65536):
            record += data
            ending = "server" if name == "client" else "client"  # who is to blame if sending fails
            for segment in _segments(data, cut):
                await loop.sock_sendall(sink, segment)
                if cut is not None:
                    await asyncio.sleep(pause)
            ending = name
    except OSError:
        exchange.closed_by = exchange.closed_by or ending
        raise
    exchange.closed_by = exchange.closed_by or name
    with suppress(OSError):  # the sink may be gone altogether
        sink.shutdown(socket.SHUT_WR)


def _segments(data: bytes, cut: "itertools.cycle[int] | None") -> Iterator[bytes]:
    if cut is None:
        yield data
        return
    at = 0
    while at < len(data):
        size = next(cut)
        yield data[at : at + size]
        at += size


@asynccontextmanager
async def recording_shim(
    target_host: str, target_port: int, *, segments: Sequence[int] | None = None, pause: float = 0.0
) -> AsyncIterator[RecordingShim]:
    """Run a shim before a target until the block ends; what it recorded stays readable.

    After each segment it sleeps for `pause` seconds; with 0 it only lets others run.
    """
    shim = RecordingShim((target_host, target_port), segments, pause)
    try:
        yield shim
    finally:
        await shim.close()
