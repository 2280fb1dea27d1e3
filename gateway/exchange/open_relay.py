"""The relay of an answer that the client gets piece by piece, as it arrives.

Only the end of the answer (the ``[DONE]`` event of a stream, the last piece of a long body) waits a few microseconds,
until the record is in the spool. What arrives while something is waited for, is held, and the connection to the
deployment is paused: so a client that reads slowly slows its deployment down.
"""

import time
from abc import abstractmethod
from collections import deque
from typing import Final

from typing_extensions import override

from auditor.domain.exchange import Outcome
from gateway.errors import UpstreamFailed, UpstreamTimeout
from gateway.exchange.exchange import STOPPED, STOPPING, ActiveExchange
from gateway.http.answer import connection_line, server_lines_now, write_head
from gateway.routing.failures import error_type_of
from gateway.upstreams import UpstreamFailureCode, upstream_failed
from gateway.upstreams.answer_heads import AnswerHead
from gateway.upstreams.connection import AnswerFollower, UpstreamConnection

_LAST_CHUNK: Final = b"0\r\n\r\n"
_CHUNKED: Final = b"\r\ntransfer-encoding: chunked"

#: Why what arrives is held; several reasons may hold at once.
_CLIENT: Final = 1  #: the client does not accept more
READING: Final = 2  #: a thread reads what has arrived before
_RECORDING: Final = 4  #: the record is being written


class OpenRelay(AnswerFollower):
    """The relay of one answer, from its first bytes.

    Parameters
    ----------
    exchange
        The exchange.
    connection
        The connection to the deployment, which is following this relay from `begin` on.
    head
        The head of the answer.
    """

    #: The error type of an answer that takes too long.
    late = "total_timeout"

    def __init__(self, exchange: ActiveExchange, connection: UpstreamConnection, head: AnswerHead) -> None:
        self._exchange = exchange
        self._client = exchange.client
        self._connection = connection
        self._head = head
        self._is_chunked = exchange.head.minor > 0
        self._ends_connection = False  # the client's, as its head says
        self._holds = 0
        self._passes_chunks = False  # nothing is held, and nothing of the next piece has come
        self._queue: deque[bytes] = deque()  # pieces that are held
        self._is_over = False  # the deployment sends no more
        self._error: UpstreamFailed | UpstreamTimeout | None = None  # why, if the answer is not complete
        self._waits_since = time.perf_counter()
        self._end: tuple[Outcome, int, str | None] | None = None  # how the exchange is recorded
        self._last = b""  # what the client gets when it is

    def begin(self, piece: bytes, chunk: bytes) -> None:
        """Send the head, and relay the first bytes; ``chunk``: see `AnswerFollower.received`."""
        exchange, head = self._exchange, self._head
        exchange.relay = self
        exchange.answer_head = head
        self._connection.follow(self)
        exchange.parts.deadlines.watch(self, self._due())
        self._ends_connection = exchange.ends_connection or not self._is_chunked
        framing = connection_line(exchange.head.minor, ends=self._ends_connection)
        if self._is_chunked:
            framing += _CHUNKED
        self._client.write(write_head(head.status, self._fields(), server_lines_now(), framing))
        self.received(piece, chunk)

    # -- what the kinds of answers differ in --------------------------------------------------------------------------

    @abstractmethod
    def _fields(self) -> bytes:
        """Return the lines of the head for the client."""

    @abstractmethod
    def _due(self) -> float:
        """Return until when the deployment must have sent more, in the event loop's time."""

    @abstractmethod
    def _take(self, piece: bytes, chunk: bytes) -> None:
        """Relay a piece of the body."""

    @abstractmethod
    def _conclude(self) -> None:
        """End an answer that has not been recorded: the deployment sends no more, and nothing is held."""

    @abstractmethod
    def _note_rest(self) -> None:
        """Read what has been relayed and not been read yet."""

    # -- the deployment -----------------------------------------------------------------------------------------------

    @override
    def began(self, head: AnswerHead) -> None:
        """Do nothing: the attempt has taken the head."""

    @override
    def received(self, payload: bytes, chunk: bytes) -> None:
        """Relay a piece of the body, or hold it."""
        if self._holds:
            self._queue.append(payload)
            self._connection.pause()
            return
        self._take(payload, chunk)
        if self._client.is_full and not self._holds & _CLIENT:
            self._wait_for_client()

    @override
    def ended(self) -> None:
        """End the answer: the body is complete."""
        self._end_body(None)

    @override
    def failed(self, code: UpstreamFailureCode) -> None:
        """End the answer: the connection has ended before it."""
        self._end_body(upstream_failed(code))

    @override
    def broken(self, error: Exception) -> None:
        """End the exchange after an error of the gateway itself."""
        self._exchange.broken(error)

    def on_due(self) -> None:
        """End the answer, if the deployment or the client is too slow."""
        exchange, deadlines = self._exchange, self._exchange.parts.deadlines
        due = exchange.end_due if self._holds else self._due()
        if due > deadlines.now():
            deadlines.watch(self, due)
        elif self._holds & _CLIENT:
            self.leave()
            exchange.end_for_client("client_too_slow")
            self._client.exchange = None
            self._client.abort()
        elif self._holds:  # it is busy itself
            deadlines.watch(self, deadlines.now())
        else:
            self._stop_reading()
            self._end_body(UpstreamTimeout("The deployment did not answer in time.", code=self.late))

    def stop(self) -> None:
        """End the answer, because this process must end."""
        self._holds &= ~_CLIENT
        self._queue.clear()
        self._stop_reading()
        self._end_body(UpstreamFailed(STOPPING, code=STOPPED))

    # -- the client ---------------------------------------------------------------------------------------------------

    def leave(self) -> bool:
        """Close the connection to the deployment. Return whether nothing is being read any more."""
        self._exchange.parts.deadlines.forget(self)
        if not self._is_over:
            self._is_over = True
            self._connection.abort()
            if not self._holds & _CLIENT:
                self._count_wait()
        self._queue.clear()
        if self._holds & READING:
            return False
        self._exchange.relay = None
        self._note_rest()
        return True

    def client_ready(self) -> None:
        """Go on: the client accepts more data."""
        if self._holds & _CLIENT:
            self._waits_since = time.perf_counter()
            self._go_on(_CLIENT)

    def _hold(self, reason: int) -> None:
        """Hold what arrives from now on."""
        self._holds |= reason
        self._passes_chunks = False

    def _wait_for_client(self) -> None:
        self._hold(_CLIENT)
        if not self._is_over:
            self._connection.pause()
            self._count_wait()
        self._exchange.parts.deadlines.watch(self, self._exchange.end_due)

    def _stop_reading(self) -> None:
        """Close the connection to the deployment, after what has come of an incomplete chunk."""
        if not self._is_over:
            self._connection.flush()
            self._connection.abort()

    def _write(self, data: bytes) -> None:
        """Send a piece of the body."""
        if data:
            self._client.write(b"%x\r\n%b\r\n" % (len(data), data) if self._is_chunked else data)

    # -- the end ------------------------------------------------------------------------------------------------------

    def _count_wait(self) -> None:
        """Add the time since the deployment was waited for."""
        now = time.perf_counter()
        self._exchange.upstream_s += now - self._waits_since
        self._waits_since = now

    def _end_body(self, error: UpstreamFailed | UpstreamTimeout | None) -> None:
        if self._is_over:
            return
        self._is_over, self._error = True, error
        self._exchange.parts.deadlines.forget(self)
        if not self._holds & _CLIENT:
            self._count_wait()
        if not self._holds:
            self._end_answer()

    def _end_answer(self) -> None:
        """End the answer: the deployment sends no more, and nothing is held."""
        if self._exchange.outcome is None:
            self._conclude()
        else:
            self._finish(b"")

    def _go_on(self, held: int) -> None:
        """Go on with what has been held for one reason."""
        self._holds &= ~held
        queue = self._queue
        try:
            while queue and not self._holds:
                self._take(queue.popleft(), b"")
                if self._client.is_full and not self._holds & _CLIENT:
                    self._wait_for_client()
            if self._holds:
                return
            if self._is_over:
                self._end_answer()
            else:
                self._exchange.parts.deadlines.watch(self, self._due())
                self._connection.resume()
        except Exception as error:  # noqa: BLE001 -- it ends the exchange
            self.broken(error)

    def _record(self, outcome: Outcome, code: str | None, last: bytes) -> None:
        """Have the exchange recorded, and then the last bytes sent."""
        self._end, self._last = (outcome, self._head.status, code), last
        self._hold(_RECORDING)
        self._exchange.is_being_recorded = True
        if not self._is_over:
            self._count_wait()
        self._exchange.parts.batch.end(self)

    def record(self) -> None:
        """Record the exchange."""
        assert self._end is not None
        self._exchange.end(*self._end)

    def answer(self, lines: bytes) -> None:  # noqa: ARG002 -- the head has been sent
        """Send the last bytes, as soon as the record is in the spool."""
        storing = self._exchange.storing
        if storing is None:
            self._recorded()
        else:
            storing.add_done_callback(lambda _: self._exchange.guard(self._recorded))

    def _recorded(self) -> None:
        last, self._last = self._last, b""
        if self._exchange.relay is not self:  # the client has left
            self._exchange.settle()
        elif self._is_over and not self._queue and self._holds == _RECORDING:
            self._finish(last)
        else:
            self._write(last)
            self._go_on(_RECORDING)

    def _finish(self, last: bytes) -> None:
        """Send the last piece and the end of the answer."""
        exchange = self._exchange
        exchange.relay = None
        exchange.settle()
        if self._is_chunked:
            last = b"%x\r\n%b\r\n%b" % (len(last), last, _LAST_CHUNK) if last else _LAST_CHUNK
        self._client.finish(last, ends=self._ends_connection)

    def _cut(self) -> None:
        """Close the client's connection without the end of the answer, so that it sees that it is incomplete."""
        exchange = self._exchange
        exchange.relay = None
        exchange.settle()
        self._client.cut()


class BodyRelay(OpenRelay):
    """The relay of a long answer that is no stream. Its last piece waits until the record is in the spool."""

    def __init__(self, exchange: ActiveExchange, connection: UpstreamConnection, head: AnswerHead) -> None:
        super().__init__(exchange, connection, head)
        self._piece = b""  # the one that may be the last

    @override
    def _fields(self) -> bytes:
        return self._head.fields + self._exchange.naming_lines()

    @override
    def _due(self) -> float:
        return self._exchange.end_due

    @override
    def _take(self, piece: bytes, chunk: bytes) -> None:
        if self._piece:
            self._exchange.body_passed(self._piece)
            self._write(self._piece)
        self._piece = piece

    @override
    def _note_rest(self) -> None:
        pass

    @override
    def _conclude(self) -> None:
        exchange, error = self._exchange, self._error
        if error is None:
            exchange.body_passed(self._piece)
            code = error_type_of(self._head.status)
            self._record(Outcome.COMPLETE if code is None else Outcome.FAILED, code, self._piece)
        else:
            exchange.end(Outcome.CUT, self._head.status, error.code)
            exchange.parts.recorder.write_held()
            self._cut()
