"""One client connection: it reads requests and has them answered in order, until one side closes it."""

import asyncio
import logging
import math
import socket
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, Protocol, cast

from typing_extensions import override

from gateway.errors import INTERNAL_ERROR, GatewayError
from gateway.http.answer import WholeAnswer
from gateway.http.head_cache import Offer, RequestCache
from gateway.http.parser import Receiver, RequestParser
from gateway.http.request import Request

log = logging.getLogger(__name__)

#: Answers a request, possibly with an error, and returns whether the connection ends with that; or hands the connection
#: over to an exchange.
Handler = Callable[[Request], Awaitable[bool]]

#: Maximum number of requests that wait behind the current one.
_MAX_WAITING: Final = 100
#: Maximum bytes of a body that wait to be read.
_MAX_HELD: Final = 256 << 10
#: Seconds between two checks of connections that wait for their clients.
CHECK_EVERY: Final = 5.0
#: Number of checks after which a waiting connection is closed. Between requests it is longer than load balancers keep
#: connections, because they could otherwise use one at the moment at which it is closed. The others: within a head,
#: since the last bytes of a body, since the client took the last bytes of an answer, and after an early answer, while
#: the client finishes writing.
_IDLE: Final = 3600 / CHECK_EVERY
_IN_HEAD: Final = 60 / CHECK_EVERY
_IN_BODY: Final = 60 / CHECK_EVERY
_UNREAD: Final = 600 / CHECK_EVERY
_LINGERING: Final = 10 / CHECK_EVERY


class Answering(Protocol):
    """An exchange that answers the current request of a connection, without a task."""

    def client_lost(self) -> None:
        """End it: the client has disconnected."""

    def client_ready(self) -> None:
        """Go on: the client accepts more data."""

    def stop(self) -> None:
        """End it at once, as far as the client can still be told: this process must end."""


_TAKEN: Final = Offer.TAKEN  # members are looked up in Python, and each request asks for it


class ClientConnectionOwner(Protocol):
    """The server that a connection belongs to."""

    handler: Handler
    cache: RequestCache | None
    draining: bool  #: whether connections end after the current answer
    first_byte: Callable[[], float]  #: returns the seconds that a new connection has for its first byte

    def opened(self, connection: "ClientConnection") -> None:
        """Register the connection."""

    def lost(self, connection: "ClientConnection") -> None:
        """Remove the connection, which has ended."""


class ClientConnection(asyncio.Protocol, Receiver):
    """A connection that answers one request at a time.

    Parameters
    ----------
    owner
        The server; it knows the handler.

    Attributes
    ----------
    exchange
        Answers the current request, if no task does.
    is_last
        Whether the connection ends with the current answer, whatever the client wants.
    waiting_since
        Since when a request has been waited for, or the rest of one, in the event loop's time. Infinite while a whole
        request is being answered.
    """

    def __init__(self, owner: ClientConnectionOwner) -> None:
        self._owner = owner
        self._transport: asyncio.Transport
        self._parser = RequestParser(self)
        self.exchange: Answering | None = None
        self._task: asyncio.Task[None] | None = None  # answers the current request
        self._held = bytearray()  # an incomplete request for the cache, or what follows the current one
        self._missing = 0  # bytes of that request
        self._held_since = 0  # nanoseconds since 1970
        self._declined: Request | None = None  # the first request that the parser has read from what was declined
        self._is_declined = False  # the parser is reading that
        self._waiting: list[Request] = []  # behind the current request
        self._ticks_left: float = math.ceil(owner.first_byte() / CHECK_EVERY) + 1
        self.waiting_since = asyncio.get_running_loop().time()
        self.descriptor = -1
        self._input_closed = False  # further input is ignored
        self.is_last = owner.draining
        self._is_half_closed = False  # the last answer has been sent; the client may still write
        self._is_paused = False  # reading is paused
        self._is_lost = False
        self.is_full = False  #: whether the write buffer is full
        self._is_unread = False  # the client has not taken the last answer yet
        self._ends = False  # the connection ends with that

    # -- interface for requests and answers -----------------------------------------------------------------------

    @override
    def ends_after(self, request: Request) -> bool:
        return self.is_last or not request.stays or not request.is_whole

    @override
    def write(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(data)

    def finish(self, data: bytes, *, ends: bool) -> None:
        """Send the last bytes of the exchange's answer; ``ends``: whether the connection ends with them."""
        self.exchange = None
        if self._transport.is_closing():
            return
        self._transport.write(data)
        if self._task is not None:  # the handler that has begun the exchange goes on
            self._ends = ends
        else:
            self._answered(ends=ends)

    def finish_and_rest(self, data: bytes) -> None:
        """Do the same; the connection does not end with them."""
        if self._task is not None or self.is_full or self._input_closed or self._waiting:
            self.finish(data, ends=False)
            return
        self.exchange = None
        if not self._transport.is_closing():
            self._transport.write(data)
            self._rest()

    def cut(self) -> None:
        """Close the connection in the middle of the exchange's answer, when the client has read what was written."""
        self.exchange = None
        self._transport.close()

    def abort(self) -> None:
        """Close the connection at once."""
        self._transport.abort()

    @override
    def let_continue(self) -> None:
        if not self._transport.is_closing():
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    @override
    def resume(self) -> None:
        if self._is_paused and not self._transport.is_closing():
            self._is_paused = False
            self._transport.resume_reading()

    # -- interface for the server -------------------------------------------------------------------------------------

    def look(self) -> None:
        """Count one check, and close a connection that has waited too long for its client."""
        self._parse_held()
        self._ticks_left -= 1
        if self._ticks_left <= 0:
            self.abort()

    @property
    def is_unused(self) -> bool:
        """Whether no byte of a request has come since the last answer."""
        return not (self._held or self._parser.is_in_message or self.is_busy or self._is_half_closed)

    @property
    def is_busy(self) -> bool:
        """Whether a request is being answered, or the client has not taken the answer yet."""
        return self.exchange is not None or self._task is not None or self._is_unread

    def drain(self) -> None:
        """End with the current or next answer. A request that has arrived in part is the next one."""
        self.is_last = True
        self._parse_held()

    def stop(self) -> None:
        """End the current answer at once, as far as the client can still be told."""
        if self.exchange is not None:
            self.exchange.stop()
        elif self._task is not None:
            self._task.cancel()

    def end_if_idle(self) -> None:
        """Close the connection if no request is being answered."""
        if not self.is_busy:
            self._transport.close()

    # -- callbacks of the transport ---------------------------------------------------------------------------------

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        peer: socket.socket = transport.get_extra_info("socket")
        self.descriptor = peer.fileno()
        with suppress(OSError):  # the client has already disconnected
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._owner.opened(self)

    @override
    def data_received(self, data: bytes) -> None:
        if self._input_closed:
            return
        cache = self._owner.cache
        if self._parser.is_in_message or cache is None:
            self._parse(data)
            return
        if self.exchange is not None or self._task is not None or self._is_unread:
            self._held += data
            self._pause()
            return
        arrived_ns = 0
        if self._held:
            self._held += data
            self._missing -= len(data)
            if self._missing > 0:
                self._ticks_left = _IN_BODY
                return
            data, arrived_ns = self._take_held(), self._held_since
        offer = cache.take(self, data, arrived_ns)
        if offer is _TAKEN:
            self._ticks_left = self.waiting_since = math.inf
        elif isinstance(offer, int):
            self._held += data
            self._missing, self._held_since = offer, arrived_ns or time.time_ns()
            self._ticks_left, self.waiting_since = _IN_BODY, asyncio.get_running_loop().time()
        elif offer is Offer.DECLINED:
            self._is_declined = True
            self._parse(data)
            self._is_declined = False
            request, self._declined = self._declined, None
            if request is not None:
                cache.remember(data, request)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._is_lost = True
        self._parser.close()
        self._held.clear()
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()
        self._owner.lost(self)
        exchange, self.exchange = self.exchange, None
        if exchange is not None:
            exchange.client_lost()

    @override
    def pause_writing(self) -> None:
        self.is_full = True
        if self.exchange is not None:
            self._ticks_left = _UNREAD

    @override
    def resume_writing(self) -> None:
        self.is_full = False
        if self._is_unread:
            self._is_unread = False
            self._answered(ends=self._ends)
        elif self.exchange is not None:
            self._ticks_left = math.inf
            self.exchange.client_ready()

    # -- reading ------------------------------------------------------------------------------------------------------

    def _parse_held(self) -> None:
        """Have the parser read a request that has arrived in part: its handler limits the time of the body."""
        if self._held and not self.is_busy:
            self._parse(self._take_held())

    def _take_held(self) -> bytes:
        held = bytes(self._held)
        self._held.clear()
        return held

    def _parse(self, data: bytes) -> None:
        try:
            self._parser.feed(data)
        except GatewayError as error:
            self._refuse(error)
            return
        coming = self._parser.coming
        if coming is not None and coming.held > _MAX_HELD:
            self._pause()

    @override
    def request_began(self) -> None:
        if self.is_busy:
            self._pause()
        else:
            self._ticks_left, self.waiting_since = _IN_HEAD, asyncio.get_running_loop().time()

    @override
    def head_came(self, request: Request) -> bool:
        if not self.is_busy:
            self._begin(request)
        elif len(self._waiting) < _MAX_WAITING:
            self._waiting.append(request)
        else:
            return False
        return True

    @override
    def body_came(self, request: Request, piece: bytes) -> None:
        if self._is_half_closed:
            return
        if not self._waiting:
            self._ticks_left = _IN_BODY
        request.feed(piece)

    @override
    def request_ended(self, request: Request) -> None:
        if self._is_half_closed:
            self._transport.close()
        elif self._task is not None:
            self._ticks_left = self.waiting_since = math.inf

    # -- answering --------------------------------------------------------------------------------------------

    def _begin(self, request: Request) -> None:
        if request.is_whole:
            self._ticks_left = self.waiting_since = math.inf
        else:
            self._ticks_left, self.waiting_since = _IN_BODY, min(self.waiting_since, asyncio.get_running_loop().time())
        self._ends = False
        if self._is_declined and self._declined is None:
            self._declined = request
        self._task = asyncio.get_running_loop().create_task(self._answer(request))

    async def _answer(self, request: Request) -> None:
        try:
            ends = await self._owner.handler(request)
        except asyncio.CancelledError:
            # An error that left the task would keep its frames, and with them the request, in memory.
            ends = True
        except Exception:
            log.exception("%s %r failed", request.method, request.path)
            if not self._transport.is_closing():
                self._send_error(INTERNAL_ERROR)
            ends = True
        self._task = None
        if self.exchange is None and not self._is_lost:
            self._answered(ends=ends or self._ends)

    def _answered(self, *, ends: bool) -> None:
        """Go on after an answer, as soon as the client has taken it."""
        if self.is_full:
            self._is_unread, self._ends, self._ticks_left = True, ends, _UNREAD
        elif ends or self._input_closed:
            self._end()
        elif self._waiting:
            self._begin(self._waiting.pop(0))
        else:
            self._rest()

    def _rest(self) -> None:
        """Wait for the next request."""
        self._ticks_left = _IDLE
        self.waiting_since = asyncio.get_running_loop().time()
        if self._is_paused:
            self.resume()
        if self._held:
            self.data_received(self._take_held())

    def _end(self) -> None:
        """Close the connection after an answer. A client that is still writing gets time to read the answer."""
        if self._transport.is_closing() or (self._parser.coming is None and not self._input_closed):
            self._transport.close()
            return
        self._is_half_closed = True
        self._ticks_left, self.waiting_since = _LINGERING, asyncio.get_running_loop().time()
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
        self._input_closed = self.is_last = True
        if self._parser.coming is not None:
            self._parser.coming.break_off()
        elif not self.is_busy:
            self._send_error(error)
            self._end()

    def _send_error(self, error: GatewayError) -> None:
        """Answer with an error, as the last answer of this connection."""
        placeholder = Request(self, "", "", {}, minor=1, stays=False)
        WholeAnswer(error.http_status, {"content-type": "application/json"}, error.body()).send(placeholder)
