"""One connection of a client: requests in, answered one after another, for as long as both sides keep it."""

import asyncio
import math
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import lru_cache
from typing import Final, Protocol, cast

import httptools
from typing_extensions import override

from gateway.errors import BadRequest, GatewayError
from gateway.server.answer import WholeAnswer
from gateway.server.request import Client, Request

#: Answers a request, be it with an error, and says whether the connection ends with that.
Handler = Callable[[Request], Awaitable[bool]]

#: Bytes that may come without one of a body among them: a head, chunk sizes, a trailer.
_MAX_OVERHEAD: Final = 64 << 10
_MAX_FIELDS: Final = 128
#: Requests that may wait behind the one that is answered; who sends so many at once does not wait for answers.
_MAX_WAITING: Final = 100
#: Bytes of a body that may wait to be read.
_MAX_HELD: Final = 256 << 10
#: How often, in seconds, connections are looked at that wait for their clients.
LOOK: Final = 5.0
#: Looks that a connection lasts: between requests, longer than the balancers and pools before it keep theirs, or they
#: would use it at the moment at which it is ended; in a head; since the last bytes of a body; since it took the last
#: of an answer; behind an answer that came before the request's end, for a client that reads when it has written all.
_RESTING: Final = 3600 / LOOK
_IN_HEAD: Final = 60 / LOOK
_IN_BODY: Final = 60 / LOOK
_UNREAD: Final = 600 / LOOK
_LINGERING: Final = 10 / LOOK

_NOT_HTTP: Final = BadRequest("This is not a valid HTTP/1.1 request.", code="http_error")
_TOO_MUCH: Final = BadRequest("The request's header fields are too large.", code="headers_too_large", status=431)


class Owner(Protocol):
    """Whom a connection belongs to."""

    handler: Handler
    draining: bool  #: whether connections end with the answer that they are at

    def opened(self, connection: "Connection") -> None:
        """Take note of it."""

    def lost(self, connection: "Connection") -> None:
        """Take note that it has ended."""


class _NotHttp(Exception):  # noqa: N818 -- never leaves this file
    """What came is no request that can be answered."""


class Connection(asyncio.Protocol, Client):
    """A connection that answers one request at a time.

    Parameters
    ----------
    owner
        Knows who answers.
    """

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._parser: httptools.HttpRequestParser
        self.task: asyncio.Task[None] | None = None  # answers a request
        self._coming: Request | None = None  # its body is not whole yet
        self._waiting: list[Request] = []  # behind the one that is answered
        self._target = b""
        self._headers: dict[str, str] = {}
        self._fields = 0
        self._head_bytes = 0
        self._overhead = 0
        self._looks = _RESTING
        self._is_deaf = False  # what still comes is not looked at
        self._is_lingering = False  # the last answer is out
        self._is_paused = False  # we take no more
        self._is_lost = False
        self._can_write: asyncio.Future[None] | None = None  # the transport takes no more

    # -- what a request and its answer ask -----------------------------------------------------------------------

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
        return not request.stays or not request.is_whole or self._is_deaf or self._owner.draining

    @override
    def write(self, data: bytes) -> None:
        if self._transport.is_closing():
            raise ConnectionResetError("The client has left.")
        self._transport.write(data)

    @override
    async def drain(self) -> None:
        if self._can_write is not None:
            self._looks = _UNREAD
            await self._can_write
            self._looks = math.inf

    @override
    def go_on(self) -> None:
        if self._is_paused and not self._transport.is_closing():
            self._is_paused = False
            self._transport.resume_reading()

    @override
    def cut(self) -> None:
        self._transport.close()

    # -- what the owner asks -------------------------------------------------------------------------------------

    def look(self) -> None:
        """End a connection that has waited too long for its client."""
        self._looks -= 1
        if self._looks <= 0:
            self.abort()

    def end_if_idle(self) -> None:
        """End it if nothing is being answered."""
        if self.task is None:
            self._transport.close()

    def abort(self) -> None:
        """End it at once."""
        self._transport.abort()

    # -- what the transport says ---------------------------------------------------------------------------------

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        peer: socket.socket = transport.get_extra_info("socket")
        with suppress(OSError):  # it has left already
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._parser = httptools.HttpRequestParser(self)
        self._owner.opened(self)

    @override
    def data_received(self, data: bytes) -> None:
        if self._is_deaf:
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
        del self._parser  # it and this would hold one another, as would the requests
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

    # -- what the parser says ------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Begin a request."""
        self._target = b""
        self._headers = {}
        self._fields = 0
        self._head_bytes = 0
        if self.task is None:
            self._looks = _IN_HEAD
        else:
            self._pause()

    def on_url(self, piece: bytes) -> None:
        """Take a piece of what is asked for."""
        self._target += piece
        self._head_bytes += len(piece)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a field of the head; one of the trailer is dropped."""
        if self._coming is not None:
            return
        self._fields += 1
        self._head_bytes += len(name) + len(value)
        if self._fields > _MAX_FIELDS or self._head_bytes > _MAX_OVERHEAD:  # also where it came in one piece
            self._refuse(_TOO_MUCH)
            raise _NotHttp
        lower = _lower(name)
        if lower not in self._headers:
            self._headers[lower] = value.rstrip(b" \t").decode("utf-8", "surrogateescape")
        elif lower == "transfer-encoding":
            raise _NotHttp

    def on_headers_complete(self) -> None:
        """Take the head."""
        version = self._parser.get_http_version()
        if version not in {"1.1", "1.0"}:
            raise _NotHttp
        if self._parser.should_upgrade():
            return
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
        """Take a piece of the body."""
        self._overhead = 0
        assert self._coming is not None
        if self._is_lingering:
            return
        if not self._waiting:
            self._looks = _IN_BODY
        self._coming.feed(piece)

    def on_message_complete(self) -> None:
        """Take note that a request is whole."""
        self._overhead = 0
        request, self._coming = self._coming, None
        if request is None:  # see `_head_without_offer`
            return
        request.end()
        if self._is_lingering:
            self._transport.close()
        elif self.task is not None:
            self._looks = math.inf

    def _head_without_offer(self) -> bytes:
        """Write the last head anew, as if it offered no other protocol: to the parser, its body would be of that one.

        The line breaks that it would need to say something else are none that the parser has let through.
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

    # -- what follows --------------------------------------------------------------------------------------------

    def _begin(self, request: Request) -> None:
        self._looks = math.inf if request.is_whole else _IN_BODY
        self.task = self._loop.create_task(self._answer(request))

    async def _answer(self, request: Request) -> None:
        try:
            ends = await self._owner.handler(request)
            if self._can_write is not None:
                await self.drain()
        except (ConnectionResetError, asyncio.CancelledError):
            # An error that left the task would hold its frames, and they the request, until the next collection.
            ends = True
        self.task = None
        if self._is_lost:
            return
        if ends or self._is_deaf:
            self._end()
        elif self._waiting:
            self._begin(self._waiting.pop(0))
        else:
            self._looks = _RESTING
            self.go_on()

    def _end(self) -> None:
        """End the connection behind an answer; a client that is still writing may read it first."""
        if self._transport.is_closing() or (self._coming is None and not self._is_deaf):
            self._transport.close()
            return
        self._is_lingering = True
        self._looks = _LINGERING
        self._transport.write_eof()
        self.go_on()

    def _pause(self) -> None:
        if not self._is_paused and not self._transport.is_closing():
            self._is_paused = True
            self._transport.pause_reading()

    def _refuse(self, error: GatewayError) -> None:
        """Take nothing more. Whose body breaks is told in its turn, and what follows a request is not answered."""
        if self._is_deaf:
            return
        self._is_deaf = True
        if self._coming is not None:
            self._coming.break_off()
        elif self.task is None:
            nobodys = Request(self, "", "", {}, minor=1, stays=False)
            WholeAnswer(error.http_status, {"content-type": "application/json"}, error.body()).send(nobodys)
            self._end()


@lru_cache(maxsize=1000)  # the names that clients use are few
def _lower(name: bytes) -> str:
    return name.decode("latin-1").lower()
