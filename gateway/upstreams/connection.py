"""One connection to a deployment, which carries one request at a time until one side closes it."""

import asyncio
import re
import ssl
from typing import Final, Protocol, cast

import httptools
from typing_extensions import override

from gateway.upstreams import UpstreamFailureCode, upstream_failed
from gateway.upstreams.answer import PooledAnswer

#: Host, port, and TLS context; None: no TLS.
ConnectionKey = tuple[str, int, ssl.SSLContext | None]

#: Maximum bytes without a body byte: the head (some servers send long policies there), chunk sizes, trailers.
_MAX_OVERHEAD: Final = 64 << 10
_MAX_FIELDS: Final = 128
#: Maximum bytes of a body that wait to be read.
_MAX_HELD: Final = 128 << 10
#: Bytes of a request that are written before the write buffer is checked.
_PIECE: Final = 256 << 10
#: Seconds for which an idle connection is kept, and how many seconds before its server would close it.
KEPT: Final = 30.0
_MARGIN: Final = 1.0
_NOTHING: Final = memoryview(b"")
_TIMEOUT: Final = re.compile(r"timeout=(\d{1,9})")


class HungUp(Exception):  # noqa: N818 -- never leaves this package
    """The connection ended before any byte of an answer."""


class _NotHttp(Exception):  # noqa: N818 -- never leaves this file
    """The received bytes are not a valid answer."""


class AnswerFollower(Protocol):
    """Reads the bytes of one answer in place of the parser (`UpstreamConnection.follow`)."""

    def received(self, data: bytes) -> None:
        """Take bytes of the answer."""

    def upstream_lost(self) -> None:
        """Call `UpstreamConnection.parse`, because the connection has ended."""


class ConnectionOwner(Protocol):
    """The owner of connections, which is notified of their state."""

    def opened(self, connection: "UpstreamConnection") -> None:
        """Register a connection that can be used."""

    def give_back(self, connection: "UpstreamConnection", seconds: float) -> None:
        """Keep an idle connection for the next request, for at most ``seconds``."""

    def lost(self, connection: "UpstreamConnection") -> None:
        """Remove a connection that has ended."""


class UpstreamConnection(asyncio.Protocol):
    """A connection that carries one request at a time.

    Parameters
    ----------
    keeper
        Notified when the connection can be used, is idle again, and has ended.
    key
        Its host, port and TLS context.

    Attributes
    ----------
    idle_until
        When its owner closes it if nobody uses it, in the event loop's time. Its owner sets it.
    """

    def __init__(self, keeper: ConnectionOwner, key: ConnectionKey) -> None:
        self.key = key
        self.idle_until = 0.0
        self._owner = keeper
        self._transport: asyncio.Transport
        self._parser: httptools.HttpResponseParser
        self._answer: PooledAnswer | None = None
        self._follower: AnswerFollower | None = None
        self._fields: list[tuple[str, str]] = []
        self._unsent = _NOTHING
        self._is_full = False  # the write buffer is full
        self._is_paused = False  # reading is paused
        self._is_kept = False  # the server keeps the connection after this answer
        self._is_head = False  # the request is HEAD: the answer has no body, whatever its head says
        self._overhead = 0

    @property
    def is_open(self) -> bool:
        """Whether the connection is open."""
        return not self._transport.is_closing()

    async def ask(self, head: bytes, body: bytes, *, is_head: bool = False) -> PooledAnswer:
        """Send a request and wait for the head of its answer.

        Raises
        ------
        HungUp
            The connection ended before any byte of an answer.
        UpstreamFailed
            It ended within the head, or the answer is not HTTP.
        """
        if not self.is_open:
            raise HungUp
        answer = self._answer = PooledAnswer(self)
        self._is_head, self._overhead = is_head, 0
        self._transport.write(head + body[:_PIECE])
        if len(body) > _PIECE:
            self._unsent = memoryview(body)[_PIECE:]
            self._write()
        return await self.wait_for_head(answer)

    async def wait_for_head(self, answer: PooledAnswer) -> PooledAnswer:
        """Wait for the head of an answer.

        Raises
        ------
        HungUp, UpstreamFailed
            As of `ask`.
        """
        try:
            while not answer.status and answer.failure is None:
                await answer.change()
        except asyncio.CancelledError:
            # If the answer has already ended, the connection may serve another request by now.
            if self._answer is answer:
                self.abort()
            raise
        if not answer.status:
            assert answer.failure is not None
            raise (
                HungUp if answer.failure == "upstream_reset" and not self._overhead else upstream_failed(answer.failure)
            )
        return answer

    def follow(self, follower: AnswerFollower) -> None:
        """Have a follower get what comes from now on."""
        self._follower = follower

    def send(self, request: bytes) -> None:
        """Send a whole request; the follower gets the bytes of the answer as they come."""
        self._transport.write(request)

    def parse(self, data: bytes) -> PooledAnswer:
        """Read an answer with the parser, from its first bytes, which a follower has taken."""
        self._follower, self._is_head, self._overhead = None, False, 0
        answer = self._answer = PooledAnswer(self)
        if data:
            self.data_received(data)
        return answer

    def rest(self, seconds: float) -> None:
        """Return the connection to its owner for at most ``seconds``: a follower has taken the whole answer."""
        self._follower = None
        if self._transport.get_write_buffer_size():
            self.abort()
        else:
            self._owner.give_back(self, seconds)

    def abort(self, code: UpstreamFailureCode = "upstream_cut") -> None:
        """Close the connection at once; an answer that has not ended fails."""
        answer, self._answer = self._answer, None
        self._follower = None
        self._unsent = _NOTHING
        self._transport.abort()
        if answer is not None and not answer.ended:
            answer.fail(code)

    def resume(self) -> None:
        """Resume reading, if it was paused."""
        if self._is_paused and self.is_open:
            self._is_paused = False
            self._transport.resume_reading()

    # -- callbacks of the transport ---------------------------------------------------------------------------------

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._owner.opened(self)
        self._parser = httptools.HttpResponseParser(self)
        # Accept harmless deviations of real servers, as aiohttp's client does.
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )

    @override
    def data_received(self, data: bytes) -> None:
        if self._follower is not None:
            self._follower.received(data)
            return
        answer = self._answer
        if answer is None:  # no request was sent
            self.abort()
            return
        self._overhead += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self.abort(_not_understood(answer))
            return
        if answer.ended:
            self._give_back(answer)
        elif self._overhead > _MAX_OVERHEAD:
            self.abort(_not_understood(answer))
        elif answer.held > _MAX_HELD and not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if self._follower is not None:
            self._follower.upstream_lost()
        answer, self._answer = self._answer, None
        self._unsent = _NOTHING
        del self._parser  # avoids a reference cycle
        if answer is not None:
            if exc is None and answer.status and _ends_with_connection(answer.headers):
                answer.end()
            else:
                answer.fail("upstream_cut" if answer.status else "upstream_reset")
        self._owner.lost(self)

    @override
    def pause_writing(self) -> None:
        self._is_full = True

    @override
    def resume_writing(self) -> None:
        self._is_full = False
        self._write()

    # -- callbacks of the parser ------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Start an answer or an interim one before it; a second answer is an error."""
        if self._answer is None or self._answer.ended:
            raise _NotHttp
        self._fields = []

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a field of the head; fields of the trailer are dropped."""
        if self._answer is None or self._answer.status:
            return
        # With a space before its colon the parser ignores a length, and another reader may not.
        if len(self._fields) == _MAX_FIELDS or b"\0" in value or name.endswith((b" ", b"\t")):
            raise _NotHttp
        self._fields.append((name.decode("latin-1").lower(), value.rstrip(b" \t").decode("utf-8", "surrogateescape")))

    def on_headers_complete(self) -> None:
        """Set the head. Interim answers are ignored. Status 101 is an error: no other protocol was requested."""
        assert self._answer is not None
        status = self._parser.get_status_code()
        if status < 100 or status == 101 or (self._overhead > _MAX_OVERHEAD and _size(self._fields) > _MAX_OVERHEAD):
            raise _NotHttp
        if status < 200:
            return
        self._overhead = 1  # the head has arrived
        self._answer.begin(status, self._fields)
        if self._is_head:
            self._is_kept = False
            self._answer.end()

    def on_body(self, piece: bytes) -> None:
        """Add a piece of the body."""
        self._overhead = 1
        assert self._answer is not None
        self._answer.feed(piece)

    def on_message_complete(self) -> None:
        """Mark the answer as complete. `data_received` then checks what else has arrived."""
        assert self._answer is not None
        if self._answer.status:
            self._is_kept = self._parser.should_keep_alive()
            self._answer.end()

    # -- writing and reuse --------------------------------------------------------------------------------------------

    def _write(self) -> None:
        while self._unsent and not self._is_full:
            piece, self._unsent = self._unsent[:_PIECE], self._unsent[_PIECE:]
            self._transport.write(piece)
        if not self._unsent:
            self._unsent = _NOTHING  # an empty view would keep the whole body in memory

    def _give_back(self, answer: PooledAnswer) -> None:
        """Return the connection to its owner for other requests, unless one side has not finished."""
        self._answer = None
        self.resume()
        if self._is_kept and not self._unsent and not self._transport.get_write_buffer_size():
            self._owner.give_back(self, seconds_kept(answer.headers))
        else:
            self.abort()


def _not_understood(answer: PooledAnswer) -> UpstreamFailureCode:
    return "upstream_cut" if answer.status else "upstream_protocol"


def _size(fields: list[tuple[str, str]]) -> int:
    return sum(len(name) + len(value) for name, value in fields)


def _ends_with_connection(headers: list[tuple[str, str]]) -> bool:
    """Return whether the body ends with the connection (RFC 9112, section 6.3)."""
    return not any(
        name == "content-length"
        or (name == "transfer-encoding" and value.rpartition(",")[2].strip().lower() == "chunked")
        for name, value in headers
    )


def seconds_kept(headers: list[tuple[str, str]]) -> float:
    """Return the seconds to keep the connection: 30, or a little less than the server announces."""
    for name, value in headers:
        if name == "keep-alive" and (said := _TIMEOUT.search(value)):
            return min(KEPT, int(said[1]) - _MARGIN)
    return KEPT
