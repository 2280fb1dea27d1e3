"""The relay of a stream of events. Usage that the gateway asked for, and the client did not, is taken out of it.

Pieces of whole events are only searched for the terminator, and sent on as they came. The exchange reads the events in
batches; a thread reads very large ones.
"""

import asyncio
import re
from collections.abc import Callable
from typing import Final

from typing_extensions import override

from auditor.domain.exchange import Outcome
from gateway.exchange.exchange import ActiveExchange
from gateway.exchange.open_relay import READING, OpenRelay
from gateway.exchange.sse import EVENT_ENDS, EventSplitter
from gateway.exchange.usage import UsageStripper
from gateway.upstreams.answer_heads import AnswerHead
from gateway.upstreams.connection import UpstreamConnection

#: Bytes of events that are read at once.
_BATCH: Final = 8 << 10
#: Bytes of events that are read in a thread: the last event of a stream may have megabytes.
_LARGE: Final = 128 << 10
_CACHING: Final = re.compile(rb"\r\ncache-control: [^\r]*")
_UNCACHED: Final = b"\r\ncache-control: no-cache"
_UNBUFFERED: Final = b"\r\nx-accel-buffering: no"
_EVENTS: Final = b"\r\ncontent-type: text/event-stream; charset=utf-8"


class StreamRelay(OpenRelay):
    """The relay of one stream."""

    late = "idle_timeout"

    def __init__(self, exchange: ActiveExchange, connection: UpstreamConnection, head: AnswerHead) -> None:
        super().__init__(exchange, connection, head)
        assert exchange.chosen is not None
        self._now = exchange.parts.deadlines.now
        self._idle = exchange.chosen.timeouts.idle
        self._seen_at = self._now()
        self._ending = exchange.head.endpoint.ending
        self._find = self._ending.find
        self._splitter: EventSplitter | None = None  # None: it would hold nothing
        self._stripper = UsageStripper() if exchange.usage_injected else None
        self._unread: list[bytes] = []  # events that the exchange reads next
        self._relayed = self._unread if self._stripper is None else []  # what the client has got of them
        self._unread_bytes = 0
        self._is_left = False  # the client has disconnected
        self._batch = 0  # the first events are a batch, because the exchange takes their time

    @override
    def _fields(self) -> bytes:
        fields, is_cached = _CACHING.subn(_UNCACHED, self._head.fields, 1)
        return b"%b%b%b%b%b" % (
            fields,
            self._exchange.naming_lines(),
            _EVENTS if self._head.is_stream is None else b"",
            b"" if is_cached else _UNCACHED,
            _UNBUFFERED,
        )

    @override
    def _due(self) -> float:
        return min(self._seen_at + self._idle, self._exchange.end_due)

    @override
    def leave(self) -> bool:
        self._is_left = True
        return super().leave()

    @override
    def client_ready(self) -> None:
        self._seen_at = self._now()
        super().client_ready()

    @override
    def received(self, payload: bytes, chunk: bytes) -> None:
        # Most pieces are one chunk of whole events in the middle of the stream.
        if (
            self._passes_chunks
            and chunk
            and payload.endswith(EVENT_ENDS)
            and len(payload) <= _LARGE
            and self._find(payload) < 0
        ):
            self._seen_at = self._now()
            relayed = payload if self._stripper is None else self._stripper.strip(payload)
            if relayed is payload:
                self._client.write(chunk)
            else:
                self._write(relayed)
            self._note(payload, relayed)
            if self._client.is_full:
                self._wait_for_client()
        else:
            super().received(payload, chunk)
            self._passes_chunks = (
                self._is_chunked and self._splitter is None and not self._holds and not self._exchange.is_ending
            )

    @override
    def _take(self, piece: bytes, chunk: bytes) -> None:
        self._seen_at = self._now()
        if self._exchange.outcome is not None:  # what follows the terminator is passed on unread
            self._write(piece)
            return
        events = piece if self._splitter is None and piece.endswith(EVENT_ENDS) else self._split(piece)
        if len(events) > _LARGE:
            self._flush()
            self._read_in_thread(self._read_large, events, self._pass_on)
            return
        relayed = events if self._stripper is None else self._stripper.strip(events)
        done = self._find(relayed)
        if done >= 0:
            self._note(events, relayed)
            self._flush()
            self._pass_on((relayed, done))
            return
        self._write(relayed)
        self._note(events, relayed)

    def _split(self, piece: bytes) -> bytes:
        """Return the events that are complete."""
        self._passes_chunks = False
        splitter = self._splitter
        if splitter is None:
            splitter = self._splitter = EventSplitter(find_last=self._find)
        events = splitter.feed(piece)
        if splitter.is_between_events:
            self._splitter = None
        return events

    def _pass_on(self, read: tuple[bytes, int]) -> None:
        """Send events that have been read, up to the terminator at a position, or all for -1."""
        relayed, done = read
        if done < 0:
            self._write(relayed)
            return
        self._write(relayed[:done])
        self._record(Outcome.COMPLETE, None, relayed[done:] + self._rest())

    def _rest(self) -> bytes:
        splitter, self._splitter = self._splitter, None
        return b"" if splitter is None else splitter.rest()

    # -- reading ------------------------------------------------------------------------------------------------------

    def _note(self, events: bytes, relayed: bytes) -> None:
        """Have the exchange read events, together with later ones."""
        if not events:
            return
        self._unread.append(events)
        if self._stripper is not None:
            self._relayed.append(relayed)
        self._unread_bytes += len(events)
        if self._unread_bytes > self._batch:
            self._flush()

    def _flush(self) -> None:
        if not self._unread:
            return
        events = b"".join(self._unread)
        relayed = events if self._stripper is None else b"".join(self._relayed)
        self._unread_bytes, self._batch = 0, _BATCH
        self._unread.clear()
        self._relayed.clear()
        self._exchange.read_events(events, relayed)

    @override
    def _note_rest(self) -> None:
        self._flush()

    def _read_large(self, events: bytes) -> tuple[bytes, int]:
        """Read events. Return what is relayed of them, and the position of the terminator in that, or -1."""
        relayed = events if self._stripper is None else self._stripper.strip(events)
        self._exchange.read_events(events, relayed)
        return relayed, self._find(relayed)

    def _read_in_thread(
        self, read: Callable[[bytes], tuple[bytes, int]], data: bytes, then: Callable[[tuple[bytes, int]], None]
    ) -> None:
        """Read bytes in a thread, and then do something with the result."""
        self._hold(READING)

        def go_on(reading: "asyncio.Future[tuple[bytes, int]]") -> None:
            try:
                if self._is_left:
                    self._holds &= ~READING
                    self._exchange.client_lost()
                    return
                then(reading.result())
                self._go_on(READING)
            except Exception as error:  # noqa: BLE001 -- it ends the exchange
                self.broken(error)

        self._exchange.parts.recorder.submit(read, data).add_done_callback(go_on)

    # -- a stream without terminator ----------------------------------------------------------------------------------

    @override
    def _conclude(self) -> None:
        """End the stream: complete if an event contained a finish reason, otherwise cut.

        A stream that needs no terminator is complete when its body has ended.
        """
        self._flush()
        rest = self._rest()
        if len(rest) > _LARGE:
            self._read_in_thread(self._read_rest, rest, self._end_without_terminator)
        else:
            self._end_without_terminator(self._read_rest(rest))

    def _read_rest(self, rest: bytes) -> tuple[bytes, int]:
        """Read an incomplete event. Return what is relayed of it, and -1 if the stream is cut, 0 otherwise."""
        is_complete = self._error is None and (self._ending.optional or self._find(rest) >= 0)
        if not is_complete and not self._exchange.finished:
            return b"", -1
        relayed = rest if self._stripper is None else self._stripper.rest(rest)
        self._exchange.read_events(rest, relayed)
        return relayed, 0

    def _end_without_terminator(self, read: tuple[bytes, int]) -> None:
        relayed, place = read
        if place >= 0:
            self._record(Outcome.COMPLETE, None, relayed)
            return
        error = self._error
        code = error.code if error else "upstream_cut"
        message = str(error or "The deployment ended its answer in the middle.")
        self._record(Outcome.CUT, code, self._ending.broken(message, code))
