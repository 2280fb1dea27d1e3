"""One connection to a deployment: a request out, its answer in, and again for as long as both sides keep it."""

import asyncio
import re
import ssl
from typing import Final, Protocol, cast

import httptools
from typing_extensions import override

from gateway.upstreams.answer import Answer
from gateway.upstreams.failures import Code, failed

#: Host, port, and whose certificates are accepted; None: no TLS.
Key = tuple[str, int, ssl.SSLContext | None]

#: Bytes that may come without one of a body among them: the head (some put long policies there), chunk sizes, trailers.
_MAX_OVERHEAD: Final = 64 << 10
_MAX_FIELDS: Final = 128
#: Bytes of a body that may wait to be read.
_MAX_HELD: Final = 128 << 10
#: Bytes of a request that are written before the transport is asked whether it takes more.
_PIECE: Final = 256 << 10
#: Seconds for which an unused connection is kept, and how much earlier than its server would we let it go.
_KEPT: Final = 30.0
_MARGIN: Final = 1.0
_NOTHING: Final = memoryview(b"")
_TIMEOUT: Final = re.compile(r"timeout=(\d{1,9})")


class HungUp(Exception):  # noqa: N818 -- never leaves this package
    """The connection ended before any byte of an answer."""


class _NotHttp(Exception):  # noqa: N818 -- never leaves this file
    """The deployment says what no answer can hold."""


class Keeper(Protocol):
    """Whom a connection tells how it is."""

    def opened(self, connection: "Connection") -> None:
        """Note that it can be used."""

    def rests(self, connection: "Connection", seconds: float) -> None:
        """Keep it, for so long at most: an answer has come whole, and the next request can be sent."""

    def lost(self, connection: "Connection") -> None:
        """Note that it has ended."""


class Connection(asyncio.Protocol):
    """A connection that carries one request at a time.

    Parameters
    ----------
    keeper
        Told when the connection can be used, can be used again, and has ended.
    key
        Where it leads: host, port, and whose certificates are accepted.
    """

    def __init__(self, keeper: Keeper, key: Key) -> None:
        self.key = key
        self._keeper = keeper
        self._transport: asyncio.Transport
        self._parser: httptools.HttpResponseParser
        self._answer: Answer | None = None
        self._fields: list[tuple[str, str]] = []
        self._unsent = _NOTHING
        self._is_full = False  # the transport takes no more
        self._is_paused = False  # we take no more
        self._is_kept = False  # the server would go on after this answer
        self._is_head = False  # the answer has the head of one with a body, and none
        self._overhead = 0

    @property
    def is_open(self) -> bool:
        """Whether nobody has ended it."""
        return not self._transport.is_closing()

    async def ask(self, head: bytes, body: bytes, *, is_head: bool = False) -> Answer:
        """Send a request and wait for the head of its answer.

        Raises
        ------
        HungUp
            The connection ended before any byte of an answer.
        UpstreamFailed
            It ended in the head, or what came is not HTTP.
        """
        if not self.is_open:
            raise HungUp
        answer = self._answer = Answer(self)
        self._is_head, self._overhead = is_head, 0
        self._transport.write(head + body[:_PIECE])
        if len(body) > _PIECE:
            self._unsent = memoryview(body)[_PIECE:]
            self._write()
        try:
            while not answer.status and answer.failure is None:
                await answer.change()
        except asyncio.CancelledError:
            self.abort()
            raise
        if not answer.status:
            assert answer.failure is not None
            raise HungUp if answer.failure == "upstream_reset" and not self._overhead else failed(answer.failure)
        return answer

    def abort(self, code: Code = "upstream_cut") -> None:
        """End it at once; an answer that has not ended fails."""
        answer, self._answer = self._answer, None
        self._unsent = _NOTHING
        self._transport.abort()
        if answer is not None and not answer.ended:
            answer.fail(code)

    def go_on(self) -> None:
        """Read on, if that was paused."""
        if self._is_paused and self.is_open:
            self._is_paused = False
            self._transport.resume_reading()

    # -- what the transport says ---------------------------------------------------------------------------------

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._keeper.opened(self)
        self._parser = httptools.HttpResponseParser(self)
        # What real servers do and nobody can be harmed by: as lenient as aiohttp's client is.
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )

    @override
    def data_received(self, data: bytes) -> None:
        answer = self._answer
        if answer is None:  # nobody has asked anything
            self.abort()
            return
        self._overhead += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self.abort(_not_understood(answer))
            return
        if answer.ended:
            self._rest(answer)
        elif self._overhead > _MAX_OVERHEAD:
            self.abort(_not_understood(answer))
        elif answer.held > _MAX_HELD and not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        answer, self._answer = self._answer, None
        self._unsent = _NOTHING
        del self._parser  # it and this would hold one another
        if answer is not None:
            if exc is None and answer.status and _ends_with_connection(answer.headers):
                answer.end()
            else:
                answer.fail("upstream_cut" if answer.status else "upstream_reset")
        self._keeper.lost(self)

    @override
    def pause_writing(self) -> None:
        self._is_full = True

    @override
    def resume_writing(self) -> None:
        self._is_full = False
        self._write()

    # -- what the parser says ------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Begin an answer, or an interim one before it; a second one answers nothing."""
        if self._answer is None or self._answer.ended:
            raise _NotHttp
        self._fields = []

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a field of the head; one of the trailer is dropped."""
        if self._answer is None or self._answer.status:
            return
        # With a blank before its colon a length is none to the parser, and may be one to whoever reads on.
        if len(self._fields) == _MAX_FIELDS or b"\0" in value or name.endswith((b" ", b"\t")):
            raise _NotHttp
        self._fields.append((name.decode("latin-1").lower(), value.rstrip(b" \t").decode("utf-8", "surrogateescape")))

    def on_headers_complete(self) -> None:
        """Take the head; an interim one says nothing to us. We have not asked for another protocol (101)."""
        assert self._answer is not None
        status = self._parser.get_status_code()
        if status < 100 or status == 101 or (self._overhead > _MAX_OVERHEAD and _size(self._fields) > _MAX_OVERHEAD):
            raise _NotHttp
        if status < 200:
            return
        self._overhead = 1  # something was heard
        self._answer.begin(status, self._fields)
        if self._is_head:
            self._is_kept = False
            self._answer.end()

    def on_body(self, piece: bytes) -> None:
        """Take a piece of the body."""
        self._overhead = 1
        assert self._answer is not None
        self._answer.feed(piece)

    def on_message_complete(self) -> None:
        """Note that an answer is whole; what else came with it is looked at first."""
        assert self._answer is not None
        if self._answer.status:
            self._is_kept = self._parser.should_keep_alive()
            self._answer.end()

    # -- what follows --------------------------------------------------------------------------------------------

    def _write(self) -> None:
        while self._unsent and not self._is_full:
            piece, self._unsent = self._unsent[:_PIECE], self._unsent[_PIECE:]
            self._transport.write(piece)
        if not self._unsent:
            self._unsent = _NOTHING  # an empty view would hold the whole body

    def _rest(self, answer: Answer) -> None:
        """Let others use the connection, unless one of the sides is not done with it."""
        self._answer = None
        self.go_on()
        if self._is_kept and not self._unsent and not self._transport.get_write_buffer_size():
            self._keeper.rests(self, _seconds_kept(answer.headers))
        else:
            self.abort()


def _not_understood(answer: Answer) -> Code:
    return "upstream_cut" if answer.status else "upstream_protocol"


def _size(fields: list[tuple[str, str]]) -> int:
    return sum(len(name) + len(value) for name, value in fields)


def _ends_with_connection(headers: list[tuple[str, str]]) -> bool:
    """Say whether nothing in the head says where the body ends (RFC 9112, section 6.3)."""
    return not any(
        name == "content-length"
        or (name == "transfer-encoding" and value.rpartition(",")[2].strip().lower() == "chunked")
        for name, value in headers
    )


def _seconds_kept(headers: list[tuple[str, str]]) -> float:
    """Say how long the connection may be kept: 30 s, or a little less than the server says it will."""
    for name, value in headers:
        if name == "keep-alive" and (said := _TIMEOUT.search(value)):
            return min(_KEPT, int(said[1]) - _MARGIN)
    return _KEPT
