"""Streams on the short way: pieces pass from the deployment to the client in callbacks, without a task.

A `gateway.exchange.unary_exchange` becomes one with the first bytes of a stream. Pieces of whole chunks and events
are only searched for the terminator. The tap gets the events in batches. The ordinary way goes on with all else: a cut,
a deadline, a client that reads slowly, a large copy, a stream without terminator, the end of this process.
"""

import asyncio
import time
from functools import partial
from typing import Final

from typing_extensions import override

from auditor.domain.exchange import Outcome
from gateway.exchange.asked_exchange import AskedExchange
from gateway.exchange.attempt import Attempt, settle
from gateway.exchange.due_exchanges import DueExchange
from gateway.exchange.endpoints import DISCONNECTED
from gateway.exchange.sse import USUAL_ENDS, EventSplitter
from gateway.exchange.stream_relay import StreamRelay
from gateway.exchange.usage import UsageStripper
from gateway.http import OpenAnswer, Request
from gateway.http.short_connection import ShortExchange
from gateway.recording.recorder import LARGE_COPY
from gateway.upstreams.answer import PooledAnswer
from gateway.upstreams.answer_heads import AnswerHead
from gateway.upstreams.chunks import SIZE_LINE, read_complete, read_size
from gateway.upstreams.connection import AnswerFollower

#: A chunk ends like this if an event ends with it.
_CHUNK_ENDS: Final = tuple(end + b"\r\n" for end in USUAL_ENDS)
_LAST_CHUNK: Final = b"0\r\n\r\n"
#: Stands before the chunks that the parser reads when it goes on with a stream.
_HEAD: Final = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nkeep-alive: timeout=%d\r\n\r\n"
#: Bytes of events that the tap gets at once, of an incomplete chunk that are held, and of events that are read here.
_BATCH: Final = 8 << 10
_MOST_HELD: Final = 16 << 10
_MOST_EVENTS: Final = 64 << 10


class StreamExchange(ShortExchange, AnswerFollower, DueExchange):
    """One stream on the short way."""

    def __init__(self, asked: AskedExchange, seconds: float) -> None:
        self._asked = asked
        self._client, self._tap = asked.client, asked.tap
        self._seconds = seconds  # for which the connection is kept
        self._find = asked.tap.context.ending.find
        self._now = asyncio.get_running_loop().time
        self._seen_at = self._now()
        self._held = b""  # an incomplete chunk
        self._splitter: EventSplitter | None = None  # None: it would hold nothing
        self._stripper = UsageStripper() if asked.usage_injected else None
        self._is_plain = True  # the next chunk may be passed on as it is, if it consists of events
        self._passed = 0  # bytes of events that the tap has got
        self._batch: list[bytes] = []  # those that it gets next
        self._relayed = self._batch if self._stripper is None else []  # what the client has got of them
        self._batch_bytes = 0
        self._batch_most = 0  # the first events are a batch, because the tap takes their time

    def begin(self, head: AnswerHead, data: bytes) -> None:
        """Relay a stream from its first bytes."""
        asked = self._asked
        self._client.exchange = self
        asked.connection.follow(self)
        asked.due.watch(self, self._due())
        self._tap.status = 200
        try:
            self._client.write(head.of_stream(self._tap.naming_lines()))
        except ConnectionResetError:  # `client_lost` follows
            return
        self.received(data[head.body_at :])

    # -- callbacks ---------------------------------------------------------------------------------------------------

    @override
    def received(self, data: bytes) -> None:
        self._seen_at = self._now()
        try:
            if self._is_plain and data.endswith(_CHUNK_ENDS):
                line = data.find(b"\r\n", 0, SIZE_LINE)
                size = read_size(data[:line]) if line > 0 else None
                if size is not None and line + size + 4 == len(data) and size <= _MOST_EVENTS:
                    events = data[line + 2 : -2]
                    if self._find(events) < 0:
                        relayed = events if self._stripper is None else self._stripper.strip(events)
                        self._client.write(data) if relayed is events else self._write(relayed)
                        self._note(events, relayed)
                        if self._client.is_full:
                            self._hand_over(b"")
                        return
            self._read(self._held + data)
        except ConnectionResetError:  # `client_lost` follows
            pass
        except Exception as error:  # noqa: BLE001 -- the ordinary way logs it and cuts the answer
            self._fail(error)

    @override
    def upstream_lost(self) -> None:
        self._hand_over(self._held)

    @override
    def client_lost(self) -> None:
        asked, tap = self._asked, self._tap
        self._leave()
        asked.connection.abort()
        settle(asked.slot, tap, asked.gateway.recorder)
        tap.end(*DISCONNECTED)

    @override
    def hand_over(self) -> None:
        self._hand_over(self._held)

    @override
    def on_due(self) -> None:
        due = self._due()
        if due > self._now():
            self._asked.due.watch(self, due)
        else:
            self._hand_over(self._held)

    # -- pieces that need to be read ----------------------------------------------------------------------------------

    def _read(self, data: bytes) -> None:
        """Relay what is complete of some chunks, and hold the rest."""
        while data:
            try:
                chunks = read_complete(data)
            except ValueError:
                self._hand_over(data)
                return
            if not chunks.end:
                break
            data = data[chunks.end :]
            unread = _LAST_CHUNK + data if chunks.is_last else data
            if chunks.payload and not self._relay(chunks.payload, unread):
                return
            if chunks.is_last:
                self._finish(data) if self._tap.ended else self._hand_over(unread)
                return
        if len(data) > _MOST_HELD or self._client.is_full:
            self._hand_over(data)
            return
        self._held = data
        self._is_plain = not data and self._splitter is None and not self._tap.ended

    def _relay(self, payload: bytes, unread: bytes) -> bool:
        """Relay the events that are complete. Return False if they are handed over, with the chunks after them."""
        if self._tap.ended:
            self._write(payload)
            return True
        events = self._split(payload)
        is_last = self._find(events) >= 0
        if len(events) > _MOST_EVENTS or (is_last and self._is_large(events)):
            self._hand_over(unread, events)
            return False
        relayed = events if self._stripper is None else self._stripper.strip(events)
        self._note(events, relayed)
        done = self._find(relayed) if is_last else -1
        if done < 0:
            self._write(relayed)
            return True
        self._write(relayed[:done])
        self._flush()
        self._tap.upstream_s += time.perf_counter() - self._asked.asked_at
        self._tap.end(Outcome.COMPLETE, 200)
        following = self._splitter.rest() if self._splitter else b""
        self._write(relayed[done:] + following)  # what follows the terminator is passed on unread
        return True

    def _split(self, payload: bytes) -> bytes:
        splitter = self._splitter
        if splitter is None:
            if payload.endswith(USUAL_ENDS):
                return payload
            splitter = self._splitter = EventSplitter(find_last=self._find)
        events = splitter.feed(payload)
        if splitter.is_between_events:
            self._splitter = None
        return events

    def _is_large(self, events: bytes) -> bool:
        """Return whether the copy of a stream that ends with some events is written to the spool by a task."""
        context = self._tap.context
        size = len(context.body) + self._passed + self._batch_bytes + len(events)
        return context.inclusion > 0 and size > LARGE_COPY

    def _write(self, data: bytes) -> None:
        if data:
            self._client.write(b"%x\r\n%b\r\n" % (len(data), data))

    def _note(self, events: bytes, relayed: bytes) -> None:
        """Have the tap read events, together with later ones."""
        if not events:
            return
        self._batch.append(events)
        if self._stripper is not None:
            self._relayed.append(relayed)
        self._batch_bytes += len(events)
        if self._batch_bytes > self._batch_most:
            self._flush()

    def _flush(self) -> None:
        if not self._batch:
            return
        events = b"".join(self._batch)
        relayed = events if self._stripper is None else b"".join(self._relayed)
        self._passed += self._batch_bytes
        self._batch_bytes, self._batch_most = 0, _BATCH
        self._batch.clear()
        self._relayed.clear()
        self._tap.events(events, relayed)

    # -- the end -----------------------------------------------------------------------------------------------------

    def _finish(self, following: bytes) -> None:
        """End a recorded stream, whose body has ended; ``following``: what the deployment has sent after it."""
        asked = self._asked
        asked.due.forget(self)
        if following:
            asked.connection.abort()
        else:
            asked.connection.rest(self._seconds)
        recorder = asked.gateway.recorder
        settle(asked.slot, self._tap, recorder)
        recorder.counters.add(("biasmeter_short_way", "stream"))
        self._client.answer(_LAST_CHUNK)

    def _due(self) -> float:
        return min(self._seen_at + self._asked.timeouts.idle, self._asked.end_due)

    def _leave(self) -> None:
        """End the work here."""
        asked, tap = self._asked, self._tap
        asked.due.forget(self)
        self._flush()
        if not tap.ended:
            tap.upstream_s += time.perf_counter() - asked.asked_at

    def _hand_over(self, chunks: bytes, events: bytes = b"") -> None:
        """Have the ordinary way relay some events, what has come of the chunks after them, and what follows."""
        asked = self._asked
        self._leave()
        answer = asked.connection.parse(_HEAD % (self._seconds + 1) + chunks)
        request = asked.request()
        asked.answer_by_task(request, partial(self._go_on, request, answer, events), closing=answer, has_begun=True)

    async def _go_on(self, request: Request, answer: PooledAnswer, events: bytes) -> OpenAnswer:
        asked, gateway = self._asked, self._asked.gateway
        task = asyncio.current_task()
        assert task is not None
        attempt = Attempt(task, gateway.deadlines, asked.end_due, asked.end_due, asked.timeouts.idle)
        attempt.answer = answer
        try:
            relay = StreamRelay(request, attempt, self._tap, gateway.recorder.thread)
            return await relay.go_on(self._splitter, self._stripper, events, self._due())
        finally:
            answer.close()
            settle(asked.slot, self._tap, gateway.recorder)

    def _fail(self, error: Exception) -> None:
        self._asked.due.forget(self)
        self._asked.connection.abort()
        self._asked.fail(error, has_begun=True)
