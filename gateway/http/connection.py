"""One client connection: it parses requests and has them answered in order, until one side closes it."""

import asyncio
import logging
import math
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import lru_cache
from typing import Final, Protocol, cast

import httptools
from typing_extensions import override

from gateway.errors import INTERNAL_ERROR, BadRequest, GatewayError
from gateway.http.answer import WholeAnswer
from gateway.http.request import Client, Request, framing_error

log = logging.getLogger(__name__)

#: Answers a request, possibly with an error, and returns whether the connection ends with that.
Handler = Callable[[Request], Awaitable[bool]]

#: Maximum bytes without a body byte: a head, chunk sizes, a trailer.
_MAX_OVERHEAD: Final = 64 << 10
_MAX_FIELDS: Final = 128
#: Maximum number of requests that wait behind the current one.
_MAX_WAITING: Final = 100
#: Maximum bytes of a body that wait to be read.
_MAX_HELD: Final = 256 << 10
#: Seconds between two checks of connections that wait for their clients.
CHECK_EVERY: Final = 5.0
#: Seconds for which a connection may be unused before it is closed when file descriptors are needed.
_UNUSED: Final = 1.0
#: Number of checks after which a waiting connection is closed. Between requests it is longer than load balancers keep
#: connections, because they could otherwise use one at the moment at which it is closed. The others: within a head,
#: since the last bytes of a body, since the client took the last bytes of an answer, and after an early answer, while
#: the client finishes writing.
_IDLE: Final = 3600 / CHECK_EVERY
_IN_HEAD: Final = 60 / CHECK_EVERY
IN_BODY: Final = 60 / CHECK_EVERY
_UNREAD: Final = 600 / CHECK_EVERY
_LINGERING: Final = 10 / CHECK_EVERY

_NOT_HTTP: Final = BadRequest("This is not a valid HTTP/1.1 request.", code="http_error")
_TOO_MUCH: Final = BadRequest("The request's header fields are too large.", code="headers_too_large", status=431)


class ClientConnectionOwner(Protocol):
    """The server that a connection belongs to."""

    handler: Handler
    draining: bool  #: whether connections end after the current answer
    first_byte: Callable[[], float]  #: returns the seconds that a new connection has for its first byte

    def opened(self, connection: "ClientConnection") -> None:
        """Register the connection."""

    def lost(self, connection: "ClientConnection") -> None:
        """Remove the connection, which has ended."""


class _NotHttp(Exception):  # noqa: N818 -- never leaves this file
    """The received bytes are not a request that can be answered."""


class ClientConnection(asyncio.Protocol, Client):
    """A connection that answers one request at a time.

    Parameters
    ----------
    owner
        The server; it knows the handler.
    """

    def __init__(self, owner: ClientConnectionOwner) -> None:
        self._owner = owner
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._parser: httptools.HttpRequestParser
        self.task: asyncio.Task[None] | None = None  # answers the current request
        self._coming: Request | None = None  # its body is incomplete
        self._waiting: list[Request] = []  # behind the current request
        self._target = b""
        self._headers: dict[str, str] = {}
        self._fields = 0
        self._head_bytes = 0
        self._overhead = 0
        self._ticks_left: float = math.ceil(owner.first_byte() / CHECK_EVERY) + 1
        self._unused_since = self._loop.time()  # infinite while there is a request
        self.descriptor = -1
        self._input_closed = False  # further input is ignored
        self._is_half_closed = False  # the last answer has been sent; the client may still write
        self._is_paused = False  # reading is paused
        self._is_lost = False
        self._can_write: asyncio.Future[None] | None = None  # set while the write buffer is full
        self.has_begun = False  # some of the current answer has been written

    # -- interface for requests and answers -----------------------------------------------------------------------

    @property
    @override
    def is_gone(self) -> bool:
        return self._is_lost

    @property
    @override
    def is_full(self) -> bool:
        return self._can_write is not None

    @override
    def ends_after(self, request: Request) -> bool:
        return not request.stays or not request.is_whole or self._input_closed or self._owner.draining

    @override
    def write(self, data: bytes) -> None:
        if self._transport.is_closing():
            raise ConnectionResetError("The client has disconnected.")
        self.has_begun = True
        self._transport.write(data)

    @override
    def let_continue(self) -> None:
        if not self._transport.is_closing():
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    @override
    async def drain(self) -> None:
        if self._can_write is not None:
            self._ticks_left = _UNREAD
            await self._can_write
            self._ticks_left = math.inf

    @override
    def resume(self) -> None:
        if self._is_paused and not self._transport.is_closing():
            self._is_paused = False
            self._transport.resume_reading()

    @override
    def cut(self) -> None:
        self._transport.close()

    # -- interface for the server -------------------------------------------------------------------------------------

    def look(self) -> None:
        """Count one check, and close a connection that has waited too long for its client."""
        self._ticks_left -= 1
        if self._ticks_left <= 0:
            self.abort()

    def end_if_unused(self) -> None:
        """Close the connection at once if it has had no request for a second."""
        if self._loop.time() - self._unused_since > _UNUSED:
            self.abort()

    def hand_over(self) -> None:
        """Have the current request answered by a task, if it is not yet."""

    def end_if_idle(self) -> None:
        """Close the connection if no request is being answered."""
        if self.task is None:
            self._transport.close()

    @override
    def abort(self) -> None:
        self._transport.abort()

    # -- callbacks of the transport ---------------------------------------------------------------------------------

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        peer: socket.socket = transport.get_extra_info("socket")
        self.descriptor = peer.fileno()
        with suppress(OSError):  # the client has already disconnected
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._parser = httptools.HttpRequestParser(self)
        self._owner.opened(self)

    @override
    def data_received(self, data: bytes) -> None:
        if self._input_closed:
            return
        self._overhead += len(data)
        try:
            self._parse(data)
        except httptools.HttpParserError:
            self._refuse(_NOT_HTTP)
            return
        if self._overhead > _MAX_OVERHEAD:
            self._refuse(_TOO_MUCH)
        elif self._coming is not None and self._coming.held > _MAX_HELD:
            self._pause()

    def _parse(self, data: bytes) -> None:
        while data:
            try:
                self._parser.feed_data(data)
            except httptools.HttpParserUpgrade as upgrade:
                data = self._head_without_offer() + data[upgrade.args[0] :]
            else:
                return

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._is_lost = True
        del self._parser  # avoids a reference cycle, which would keep the requests in memory
        self._coming = None
        self._waiting.clear()
        self.resume_writing()
        if self.task is not None:
            self.task.cancel()
        self._owner.lost(self)

    @override
    def pause_writing(self) -> None:
        self._can_write = self._loop.create_future()

    @override
    def resume_writing(self) -> None:
        waiting, self._can_write = self._can_write, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    # -- callbacks of the parser ------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Start a new request."""
        self._target = b""
        self._headers = {}
        self._fields = 0
        self._head_bytes = 0
        self._unused_since = math.inf
        if self.task is None:
            self._ticks_left = _IN_HEAD
        else:
            self._pause()

    def on_url(self, piece: bytes) -> None:
        """Append a piece of the request target."""
        self._target += piece
        self._head_bytes += len(piece)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a field of the head; fields of the trailer are dropped."""
        if self._coming is not None:
            return
        self._fields += 1
        self._head_bytes += len(name) + len(value)
        if self._fields > _MAX_FIELDS or self._head_bytes > _MAX_OVERHEAD:  # also if it arrived in one piece
            self._refuse(_TOO_MUCH)
            raise _NotHttp
        lower = _lower(name)
        if lower not in self._headers:
            self._headers[lower] = value.rstrip(b" \t").decode("utf-8", "surrogateescape")
        elif lower in {"host", "transfer-encoding"}:
            raise _NotHttp

    def on_headers_complete(self) -> None:
        """Create the request from its head."""
        version = self._parser.get_http_version()
        if version not in {"1.1", "1.0"}:
            raise _NotHttp
        if self._parser.should_upgrade():
            return
        if ("host" not in self._headers or "transfer-encoding" in self._headers) and (
            error := framing_error(version, self._headers)
        ):
            self._refuse(error)
            raise _NotHttp
        request = self._coming = Request(
            self,
            self._parser.get_method().decode("ascii"),
            self._target.decode("utf-8", "surrogateescape"),
            self._headers,
            minor=1 if version == "1.1" else 0,
            stays=self._parser.should_keep_alive(),
        )
        if self.task is None:
            self._begin(request)
        elif len(self._waiting) < _MAX_WAITING:
            self._waiting.append(request)
        else:
            raise _NotHttp

    def on_body(self, piece: bytes) -> None:
        """Add a piece of the body."""
        self._overhead = 0
        assert self._coming is not None
        if self._is_half_closed:
            return
        if not self._waiting:
            self._ticks_left = IN_BODY
        self._coming.feed(piece)

    def on_message_complete(self) -> None:
        """Mark the request as complete."""
        self._overhead = 0
        request, self._coming = self._coming, None
        if request is None:  # see `_head_without_offer`
            return
        request.end()
        if self._is_half_closed:
            self._transport.close()
        elif self.task is not None:
            self._ticks_left = math.inf

    def _head_without_offer(self) -> bytes:
        """Return the last head without its offer of another protocol.

        Otherwise the parser would take the body for that protocol. The parser has already refused fields with line
        breaks, so the head cannot contain others.
        """
        if self._parser.get_method() == b"CONNECT":
            raise httptools.HttpParserError
        fields = {name: value for name, value in self._headers.items() if name not in {"connection", "upgrade"}}
        offered = self._headers["connection"].lower().split(",")
        if any(token.strip() == "close" for token in offered):
            fields["connection"] = "close"
        first = b"%b %b HTTP/%b" % (self._parser.get_method(), self._target, self._parser.get_http_version().encode())
        lines = [first, *[f"{name}: {value}".encode("utf-8", "surrogateescape") for name, value in fields.items()]]
        return b"\r\n".join(lines) + b"\r\n\r\n"

    # -- answering --------------------------------------------------------------------------------------------

    def _begin(self, request: Request, handler: Handler | None = None) -> None:
        self._ticks_left = math.inf if request.is_whole else IN_BODY
        self.has_begun = False
        self.task = self._loop.create_task(self._answer(request, handler or self._owner.handler))

    async def _answer(self, request: Request, handler: Handler) -> None:
        try:
            ends = await handler(request)
            if self._can_write is not None:
                await self.drain()
        except (ConnectionResetError, asyncio.CancelledError):
            # An error that left the task would keep its frames, and with them the request, in memory.
            ends = True
        except Exception:
            log.exception("%s %r failed", request.method, request.path)
            self._fail()
            ends = True
        self.task = None
        if self._is_lost:
            return
        if ends or self._input_closed:
            self._end()
        elif self._waiting:
            self._begin(self._waiting.pop(0))
        else:
            self._rest()

    def _rest(self) -> None:
        """Wait for the next request."""
        self._ticks_left = _IDLE
        self._unused_since = self._loop.time()
        if self._is_paused:
            self.resume()

    def _fail(self) -> None:
        """Answer 500 to a request whose handler failed, or cut the answer if some of it has been sent."""
        if self.has_begun:
            self.cut()
        elif not self._transport.is_closing():
            self._send_error(INTERNAL_ERROR)

    def _end(self) -> None:
        """Close the connection after an answer. A client that is still writing gets time to read the answer."""
        if self._transport.is_closing() or (self._coming is None and not self._input_closed):
            self._transport.close()
            return
        self._is_half_closed = True
        self._ticks_left = _LINGERING
        self._transport.write_eof()
        self.resume()

    def _pause(self) -> None:
        if not self._is_paused and not self._transport.is_closing():
            self._is_paused = True
            self._transport.pause_reading()

    def _refuse(self, error: GatewayError) -> None:
        """Accept no further input. An error in the body of a request is reported by that request, in its turn."""
        if self._input_closed:
            return
        self._input_closed = True
        if self._coming is not None:
            self._coming.break_off()
        elif self.task is None:
            self._send_error(error)
            self._end()

    def _send_error(self, error: GatewayError) -> None:
        """Answer with an error, as the last answer of this connection."""
        placeholder = Request(self, "", "", {}, minor=1, stays=False)
        WholeAnswer(error.http_status, {"content-type": "application/json"}, error.body()).send(placeholder)


@lru_cache(maxsize=1000)  # clients use few different names
def _lower(name: bytes) -> str:
    return name.decode("latin-1").lower()
