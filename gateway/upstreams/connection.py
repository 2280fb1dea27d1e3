"""One connection to a deployment, which carries one request at a time until one side closes it.

The head and the chunks of a plain answer are read here, and remembered (`gateway.upstreams.answer_heads`,
`gateway.upstreams.chunks`). Everything else is read by a parser. A follower does not notice which of them reads.
"""

import asyncio
import ssl
from typing import Final, Protocol, cast

from typing_extensions import override

from gateway.upstreams import UpstreamFailureCode
from gateway.upstreams.answer_heads import AnswerHead, AnswerHeads
from gateway.upstreams.chunks import SIZE_LINE, read_complete, read_size
from gateway.upstreams.parser import AnswerParser

#: Host, port, and TLS context; None: no TLS.
ConnectionKey = tuple[str, int, ssl.SSLContext | None]

#: Bytes of a request that are written before the write buffer is checked.
_PIECE: Final = 256 << 10
#: Bytes of an incomplete chunk that are held; the parser passes on the pieces of a larger one.
_MOST_HELD: Final = 16 << 10
_NOTHING: Final = memoryview(b"")


class AnswerFollower(Protocol):
    """Gets one answer as it arrives. After `ended`, `failed` or `UpstreamConnection.abort` it gets nothing more."""

    def answered(self, head: AnswerHead, body: bytes) -> None:
        """Take a whole answer that has come at once, in place of `began`, `received` and `ended`."""
        self.began(head)
        if body:
            self.received(body, b"")
        self.ended()

    def began(self, head: AnswerHead) -> None:
        """Take the head."""

    def received(self, payload: bytes, chunk: bytes) -> None:
        """Take bytes of the body, at least one; ``chunk``: the chunk they came in, if they are just one chunk."""

    def ended(self) -> None:
        """Take note that the body is complete. The connection may serve another request already."""

    def failed(self, code: UpstreamFailureCode) -> None:
        """Take note that the connection ended before the answer did."""

    def broken(self, error: Exception) -> None:
        """End after an error of another method."""


class ConnectionOwner(Protocol):
    """The owner of connections, which is notified of their state."""

    heads: AnswerHeads  #: reads the heads of all answers

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
    owner
        Notified when the connection can be used, is idle again, and has ended.
    key
        Its host, port and TLS context.

    Attributes
    ----------
    idle_until
        Time at which its owner closes it if nobody uses it, in the event loop's time. Its owner sets it.
    """

    def __init__(self, owner: ConnectionOwner, key: ConnectionKey) -> None:
        self.key = key
        self.idle_until = 0.0
        self._owner = owner
        self._transport: asyncio.Transport
        self._parser: AnswerParser | None = None  # of an answer that is not plain
        self._follower: AnswerFollower | None = None
        self._head: AnswerHead | None = None  # of the answer
        self._missing = 0  # bytes of a body with a length
        self._held = bytearray()  # an incomplete chunk
        self._needed = 0  # bytes of it that are held before it is read again
        self._is_between_chunks = False  # of a plain answer, the last of which has not come
        self._unsent = _NOTHING
        self._is_full = False  # the write buffer is full
        self._is_paused = False  # reading is paused

    @property
    def is_open(self) -> bool:
        """Whether the connection is open."""
        return not self._transport.is_closing()

    @property
    def is_unanswered(self) -> bool:
        """Whether no byte has come since the last request was sent."""
        return self._head is None and self._parser is None

    def send(self, head: bytes, body: bytes, follower: AnswerFollower) -> bool:
        """Send a request. The connection is idle; the follower gets the answer.

        Returns
        -------
        bool
            False, with nothing done, if the connection has been closed.
        """
        if self._transport.is_closing():
            return False
        self._follower = follower
        if len(body) <= _PIECE:
            self._transport.write(head + body)
        else:
            self._transport.write(head)
            self._unsent = memoryview(body)
            self._write()
        return True

    def follow(self, follower: AnswerFollower) -> None:
        """Give what comes from now on of the answer to another follower."""
        self._follower = follower

    def pause(self) -> None:
        """Pause reading until `resume`. A little may come all the same."""
        if not self._is_paused and self._follower is not None and self.is_open:
            self._is_paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        """Resume reading, if it was paused."""
        if self._is_paused and self.is_open:
            self._is_paused = False
            self._transport.resume_reading()

    def flush(self) -> None:
        """Give the follower what has come of an incomplete chunk."""
        if self._held:
            held = bytes(self._held)
            self._held.clear()
            self._parse_rest(held)

    def abort(self) -> None:
        """Close the connection at once. The follower is not told."""
        self._follower = None
        self._unsent = _NOTHING
        self._transport.abort()

    def cut(self) -> None:
        """Close the connection at once. The answer that is under way fails."""
        self._fail("upstream_cut")

    # -- callbacks of the transport ---------------------------------------------------------------------------------

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._owner.opened(self)

    @override
    def data_received(self, data: bytes) -> None:
        follower = self._follower
        if follower is None:  # no request was sent
            self.abort()
            return
        try:
            if self._is_between_chunks and data.endswith(b"\r\n"):
                line = data.find(b"\r\n", 0, SIZE_LINE)
                size = read_size(data[:line]) if line > 0 else None
                if size and line + size + 4 == len(data):
                    follower.received(data[line + 2 : -2], data)
                    return
            if self._parser is not None:
                self._parse(follower, self._parser, data)
            elif (head := self._head) is None:
                head = self._owner.heads.read(data)
                if head is not None and head.body_at + head.length == len(data):
                    self._follower = None
                    if self._unsent or self._transport.get_write_buffer_size():
                        self.abort()
                    else:
                        self._owner.give_back(self, head.seconds)
                    follower.answered(head, data[head.body_at :])
                else:
                    self._begin(follower, head, data)
            elif head.length >= 0:
                self._read_body(follower, data)
            else:
                self._read_chunks(data)
        except Exception as error:  # noqa: BLE001 -- the follower ends its exchange
            self.abort()
            follower.broken(error)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        follower = self._follower
        self._unsent = _NOTHING
        self._owner.lost(self)
        try:
            self.flush()
            follower, self._follower = self._follower, None
            if follower is None:
                return
            if self._head is None:
                follower.failed("upstream_reset")
            elif exc is None and self._parser is not None and self._parser.ends_with_connection:
                follower.ended()
            else:
                follower.failed("upstream_cut")
        except Exception as error:  # noqa: BLE001 -- the follower ends its exchange
            if follower is not None:
                follower.broken(error)
        finally:
            if self._parser is not None:
                self._parser.close()

    @override
    def pause_writing(self) -> None:
        self._is_full = True

    @override
    def resume_writing(self) -> None:
        self._is_full = False
        self._write()

    # -- plain answers ------------------------------------------------------------------------------------------------

    def _begin(self, follower: AnswerFollower, head: AnswerHead | None, data: bytes) -> None:
        """Begin an answer that has not come at once."""
        if head is None:
            self._parser = AnswerParser()
            self._parse(follower, self._parser, data)
            return
        self._head = head
        follower.began(head)
        data = data[head.body_at :]
        if head.length >= 0:
            self._missing = head.length
            self._read_body(follower, data)
        else:
            self._is_between_chunks = True
            if data:
                self._read_chunks(data)

    def _read_body(self, follower: AnswerFollower, data: bytes) -> None:
        missing = self._missing = self._missing - len(data)
        if missing < 0:
            data = data[:missing]
        if data and self._follower is follower:
            follower.received(data, b"")
        if missing <= 0:
            self._end(is_kept=not missing)

    def _read_chunks(self, data: bytes) -> None:
        held = self._held
        if held:
            held += data
            if len(held) < self._needed:
                return
            data = bytes(held)
            held.clear()
        self._is_between_chunks = False
        while data:
            try:
                chunks = read_complete(data)
            except ValueError:
                self._parse_rest(data)
                return
            if not chunks.end:
                self._needed = min(chunks.needed, _MOST_HELD + 1)
                break
            data = data[chunks.end :]
            current = self._follower  # it may be another one now
            if current is None:
                return
            if chunks.payload:
                current.received(chunks.payload, b"")
            if chunks.is_last:
                self._end(is_kept=not data)
                return
        if len(data) > _MOST_HELD:
            self._parse_rest(data)
        else:
            held += data
            self._is_between_chunks = not data

    # -- all other answers --------------------------------------------------------------------------------------------

    def _parse_rest(self, chunks: bytes) -> None:
        """Have a parser go on with some chunks."""
        if self._follower is not None:
            self._parser = AnswerParser(self._head)
            self._parse(self._follower, self._parser, chunks)

    def _parse(self, follower: AnswerFollower, parser: AnswerParser, data: bytes) -> None:
        payload = parser.feed(data)
        if parser.head is not None and self._head is None:
            self._head = parser.head
            follower.began(self._head)
        if payload and self._follower is not None:
            self._follower.received(payload, b"")
        if self._follower is None:
            return
        if parser.is_complete:
            self._end(is_kept=parser.is_kept)
        elif not parser.is_valid:
            self._fail("upstream_cut" if self._head is not None else "upstream_protocol")

    # -- the end of an answer, and writing -----------------------------------------------------------------------------

    def _end(self, *, is_kept: bool) -> None:
        """Tell the follower, and return the connection to its owner, unless one side has not finished."""
        follower, self._follower = self._follower, None
        if follower is None:
            return
        head, self._head = self._head, None
        if self._parser is not None:
            self._parser.close()
            self._parser = None
        assert head is not None
        if self._is_paused:
            self.resume()
        if is_kept and not self._unsent and not self._transport.get_write_buffer_size():
            self._owner.give_back(self, head.seconds)
        else:
            self.abort()
        follower.ended()

    def _fail(self, code: UpstreamFailureCode) -> None:
        follower = self._follower
        self.abort()
        if follower is not None:
            follower.failed(code)

    def _write(self) -> None:
        while self._unsent and not self._is_full:
            piece, self._unsent = self._unsent[:_PIECE], self._unsent[_PIECE:]
            self._transport.write(piece)
        if not self._unsent:
            self._unsent = _NOTHING  # an empty view would keep the whole body in memory
