"""Relay of a deployment's answer to the client, byte for byte, as it arrives.

Only the end of the answer (the ``[DONE]`` event of a stream, the last piece of a unary body) waits a few microseconds,
until the record is in the spool. So every answer that a client has received in full is kept, whatever is killed.
"""

import asyncio
import math
import time
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import TypeVar

from auditor.config import Timeouts
from auditor.domain.exchange import Outcome
from gateway.breaker import BreakerVerdict
from gateway.deadlines import Deadlines
from gateway.errors import UpstreamFailed, UpstreamTimeout
from gateway.failures import ErrorAnswer, UpstreamRefused, error_type_of, retry_may_help
from gateway.headers import client_headers
from gateway.recorder import Recorder
from gateway.server import OpenAnswer, Request, WholeAnswer
from gateway.slots import Slot
from gateway.sse import EventSplitter
from gateway.tap import Tap
from gateway.threads import WorkThread
from gateway.upstreams import Upstream, UpstreamAnswer, UpstreamRequest
from gateway.usage import UsageStripper

T = TypeVar("T")
#: A unary answer up to this size is read completely first, so that a failure in its middle can still become a 502.
_WHOLE = 1 << 20
#: Bytes of events that are read in a thread: the last event of a stream may have megabytes.
_LARGE_EVENTS = 128 << 10
#: The error type of an exchange that is not done when this process must end.
STOPPED = "gateway_stopped"
STOPPING = "The gateway is stopping."
#: Members are looked up in Python, and each request asks for these.
_COMPLETE, _OK = Outcome.COMPLETE, BreakerVerdict.OK
#: How an exchange ends whose client has not read the answer at the end of the request's time.
_TOO_SLOW = (Outcome.CLIENT_GONE, 499, "client_too_slow")


@dataclass(slots=True)
class Attempt:
    """One request to a deployment: its deadlines, the slot that it holds, and its answer once that has begun."""

    task: "asyncio.Task[object]"  #: the one that waits
    deadlines: Deadlines
    first_byte_due: float  #: in the event loop's time
    end_due: float  #: in the event loop's time
    idle: float | None  #: seconds between two pieces of a stream
    slot: Slot = field(init=False)
    usage_injected: bool = False  #: whether usage was asked for although the client did not ask for it
    answer: UpstreamAnswer = field(init=False)
    headers: dict[str, str] = field(init=False)  #: the deployment's, names in lower case
    is_stream: bool = False
    held: bytes = b""  #: a stream's first bytes, or a unary body as far as it was read
    whole: bool = False  #: whether ``held`` is the whole body

    @classmethod
    def start(cls, deadlines: Deadlines, timeouts: Timeouts, *, stream: bool, end_due: float) -> "Attempt":
        """Start the clocks. First token and idle apply to streams; the end is that of the whole request."""
        task = asyncio.current_task()
        assert task is not None
        if stream:
            now = asyncio.get_running_loop().time()
            return cls(task, deadlines, min(now + timeouts.first_token, end_due), end_due, timeouts.idle)
        return cls(task, deadlines, end_due, end_due, None)

    async def wait(self, awaitable: Awaitable[T], due: float, tap: Tap, code: str) -> T:
        """Wait for the deployment until ``due``, and add the time to what the exchange has spent waiting.

        Raises
        ------
        UpstreamTimeout
            With ``code``.
        """
        began = time.perf_counter()
        try:
            return await self.deadlines.wait(self.task, awaitable, due)
        except TimeoutError:
            raise UpstreamTimeout("The deployment did not answer in time.", code=code) from None
        finally:
            tap.upstream_s += time.perf_counter() - began

    async def drain(self, answer: OpenAnswer, tap: Tap) -> None:
        """Wait until the client accepts more of its answer, at most until the end that is due.

        Raises
        ------
        ConnectionResetError
            The client reads too slowly. The exchange has ended, and the connection is closed.
        """
        try:
            await self.deadlines.wait(self.task, answer.drain(), self.end_due)
        except TimeoutError:
            tap.end(*_TOO_SLOW)
            answer.abort()
            raise ConnectionResetError("The client did not read its answer in time.") from None


def settle(slot: Slot, tap: Tap, recorder: Recorder) -> None:
    """Release the slot with a verdict on the deployment, once the answer has been relayed."""
    if tap.outcome is _COMPLETE:
        slot.release(_OK)
    elif tap.outcome in {None, Outcome.CLIENT_GONE} or tap.error_type == STOPPED:
        slot.release(BreakerVerdict.NONE)
    else:
        slot.release(BreakerVerdict.FAILED)
        assert tap.deployment is not None
        recorder.count_failure(tap.deployment.name, tap.context.directives.origin, tap.error_type or "")


async def begin(ask: UpstreamRequest, upstream: Upstream, tap: Tap, attempt: Attempt) -> None:
    """Send the request and wait until its answer has begun; nothing has been sent to the client yet.

    Raises
    ------
    UpstreamRefused
        The deployment answered with an error status.
    UpstreamFailed, UpstreamTimeout
        The deployment could not be reached, closed the connection, or was too slow.
    """
    code = "first_token_timeout" if tap.context.stream else "total_timeout"
    answer = attempt.answer = await attempt.wait(upstream.send(ask), attempt.first_byte_due, tap, code)
    try:
        await _begin(attempt, tap)
    except BaseException:
        answer.close()
        raise
    if attempt.whole and answer.status >= 400:
        answer.close()
        raise UpstreamRefused(ErrorAnswer(answer.status, answer.headers, attempt.held))


async def _begin(attempt: Attempt, tap: Tap) -> None:
    answer = attempt.answer
    headers = attempt.headers = dict(answer.headers)
    compressed = headers.get("content-encoding", "identity") != "identity"
    if answer.status < 300 and not compressed and _is_stream(headers, asked=tap.context.stream):
        first = await attempt.wait(answer.read(), attempt.first_byte_due, tap, "first_token_timeout")
        if not first:
            raise UpstreamFailed("The deployment ended its answer before the first byte.", code="upstream_cut")
        attempt.is_stream, attempt.held = True, first
        return
    attempt.held, attempt.whole = await _read_body(answer, headers.get("content-length"), tap, attempt)


async def _read_body(answer: UpstreamAnswer, length: str | None, tap: Tap, attempt: Attempt) -> tuple[bytes, bool]:
    pieces: list[bytes] = []
    size = 0
    while size <= _WHOLE:
        coming = answer.read()
        piece = await (coming if answer.held else attempt.wait(coming, attempt.end_due, tap, "total_timeout"))
        if not piece:
            return b"".join(pieces), True
        pieces.append(piece)
        size += len(piece)
        if str(size) == length:
            return b"".join(pieces), True
    return b"".join(pieces), False


async def relay(request: Request, attempt: Attempt, tap: Tap, thread: WorkThread) -> WholeAnswer | OpenAnswer:
    """Relay an answer that has begun, to its end.

    Usage that the gateway asked for, and the client did not, is taken out of a stream. Large events are read in the
    thread.
    """
    answer = attempt.answer
    tap.status = answer.status
    tap.content_encoding = attempt.headers.get("content-encoding")
    try:
        headers = client_headers(answer.headers, tap.own_headers())
        if attempt.is_stream:
            return await StreamRelay(request, attempt, tap, thread).run(headers)
        if attempt.whole:
            tap.body(attempt.held)
            tap.end(*ended(answer.status))
            if tap.storing is not None:
                await _finish_storing(request, tap.storing)
            headers.setdefault("content-type", "application/octet-stream")
            return WholeAnswer(answer.status, headers, attempt.held)
        return await _relay_long_body(request, attempt, tap, headers)
    finally:
        answer.close()


def survives_cancellation(request: Request) -> bool:
    """Undo the cancellation of a handler whose client is connected, and return True: then this process is stopping."""
    if request.client.is_gone:
        return False
    task = asyncio.current_task()
    assert task is not None
    task.uncancel()
    return True


async def relay_refusal(request: Request, refusal: ErrorAnswer, tap: Tap) -> WholeAnswer:
    """Relay an error answer as it is."""
    tap.status = refusal.status
    tap.content_encoding = dict(refusal.headers).get("content-encoding")
    tap.body(refusal.body)
    tap.end(*ended(refusal.status))
    if tap.storing is not None:
        await _finish_storing(request, tap.storing)
    headers = client_headers(refusal.headers, tap.own_headers())
    if not retry_may_help(refusal.status):
        headers.setdefault("x-should-retry", "false")
    return WholeAnswer(refusal.status, headers, refusal.body)


def _is_stream(headers: dict[str, str], *, asked: bool) -> bool:
    content_type = headers.get("content-type")
    return asked if content_type is None else content_type.lower().startswith("text/event-stream")


def ended(status: int) -> tuple[Outcome, int, str | None]:
    """Return how an exchange ends whose client has got a whole answer of this status."""
    return Outcome.COMPLETE if status < 300 else Outcome.FAILED, status, error_type_of(status)


async def _relay_long_body(request: Request, attempt: Attempt, tap: Tap, headers: dict[str, str]) -> OpenAnswer:
    answer, held = attempt.answer, attempt.held
    open_answer = OpenAnswer(request, answer.status, headers)
    try:
        while following := await attempt.wait(answer.read(), attempt.end_due, tap, "total_timeout"):
            tap.bytes_passed(held)
            open_answer.write(held)
            if open_answer.is_full:
                await attempt.drain(open_answer, tap)
            held = following
    except (UpstreamFailed, UpstreamTimeout) as error:
        tap.end(Outcome.CUT, answer.status, error.code)
        open_answer.cut()
        return open_answer
    tap.bytes_passed(held)
    tap.end(*ended(answer.status))
    if tap.storing is not None:
        await _finish_storing(request, tap.storing)
    open_answer.write(held)
    open_answer.end()
    return open_answer


async def _finish_storing(request: Request, storing: "asyncio.Task[None]") -> None:
    """Wait until a large copy is in the spool. A stop of this process does not end this wait, which is short."""
    while not storing.done():
        try:
            await asyncio.wait([storing])
        except asyncio.CancelledError:
            if not survives_cancellation(request):
                raise


class StreamRelay:
    """Relays one event stream."""

    def __init__(self, request: Request, attempt: Attempt, tap: Tap, thread: WorkThread) -> None:
        self._request = request
        self._thread = thread
        self._attempt = attempt
        self._answer = attempt.answer
        self._tap = tap
        self._idle = attempt.idle or math.inf
        self._now = asyncio.get_running_loop().time
        self._ending = tap.context.ending
        self._splitter = EventSplitter(find_last=self._ending.find)
        self._stripper = UsageStripper() if attempt.usage_injected else None
        self._open: OpenAnswer

    async def run(self, headers: dict[str, str]) -> OpenAnswer:
        """Relay the stream from its first bytes, which the attempt holds."""
        headers.setdefault("content-type", "text/event-stream; charset=utf-8")
        headers["cache-control"] = "no-cache"
        headers["x-accel-buffering"] = "no"
        self._open = OpenAnswer(self._request, self._answer.status, headers)
        return await self._run(self._splitter.feed(self._attempt.held), None)

    async def go_on(
        self, splitter: EventSplitter | None, stripper: UsageStripper | None, events: bytes, due: float
    ) -> OpenAnswer:
        """Relay the rest of a stream whose head has been sent.

        Parameters
        ----------
        splitter, stripper
            Those that have read it so far; None if there was nothing for them.
        events
            Some that have been split from it and not relayed.
        due
            When the deployment must have sent more, in the event loop's time.
        """
        self._splitter = splitter or self._splitter
        self._stripper = stripper or self._stripper
        self._open = OpenAnswer(self._request, self._answer.status, None)
        return await self._run(events, due)

    async def _run(self, events: bytes, due: float | None) -> OpenAnswer:
        try:
            error = await self._relay_events(events, due)
        except asyncio.CancelledError:
            if not survives_cancellation(self._request):
                raise
            error = UpstreamFailed(STOPPING, code=STOPPED)
        if not self._tap.ended:
            await self._finish(error)
        self._open.end()
        return self._open

    async def _relay_events(self, events: bytes, due: float | None) -> UpstreamFailed | UpstreamTimeout | None:
        try:
            await self._pass_on(events)
            while True:
                if self._open.is_full:
                    await self._attempt.drain(self._open, self._tap)
                    due = None
                due = min(self._now() + self._idle, self._attempt.end_due) if due is None else due
                piece = await self._attempt.wait(self._answer.read(), due, self._tap, "idle_timeout")
                if not piece:
                    return None
                due = None
                if self._tap.ended:  # after the terminator: passed on unread
                    self._open.write(piece)
                else:
                    await self._pass_on(self._splitter.feed(piece))
        except (UpstreamFailed, UpstreamTimeout) as error:
            return error

    async def _pass_on(self, events: bytes) -> None:
        if not events:
            self._open.write(events)
            return
        if len(events) > _LARGE_EVENTS:
            relayed, done = await self._thread.run(self._read, events)
        else:
            relayed, done = self._read(events)
        if done < 0:
            self._open.write(relayed)
            return
        self._open.write(relayed[:done])
        await self._end(Outcome.COMPLETE)
        self._open.write(relayed[done:])

    def _read(self, events: bytes) -> tuple[bytes, int]:
        """Return what is relayed of some events, and the position of the terminator in that, or -1."""
        relayed = events if self._stripper is None else self._stripper.strip(events)
        self._tap.events(events, relayed)
        return relayed, self._ending.find(relayed)

    async def _end(self, outcome: Outcome, code: str | None = None) -> None:
        self._tap.end(outcome, self._answer.status, code)
        if self._tap.storing is not None:
            await _finish_storing(self._request, self._tap.storing)

    async def _finish(self, error: UpstreamFailed | UpstreamTimeout | None) -> None:
        """End a stream without terminator: complete if an event contained a finish reason, otherwise cut.

        A stream that needs none is complete when its body has ended.
        """
        rest = self._splitter.rest()
        ended = error is None and (self._ending.optional or await self._thread.run(self._ending.find, rest) >= 0)
        if ended or self._tap.finished:
            relayed = rest if self._stripper is None else self._stripper.rest(rest)
            await self._thread.run(self._tap.events, rest, relayed)
            await self._end(Outcome.COMPLETE)
            self._open.write(relayed)
            return
        code = error.code if error else "upstream_cut"
        message = str(error or "The deployment ended its answer in the middle.")
        await self._end(Outcome.CUT, code)
        self._open.write(self._ending.broken(message, code))


async def read_whole(upstream: Upstream, ask: UpstreamRequest, seconds: float, limit: int) -> tuple[int, bytes]:
    """Send a request of the gateway itself, and return the status and body of the answer.

    Raises
    ------
    UpstreamFailed
        The deployment could not be reached, or its answer is larger than ``limit`` bytes.
    UpstreamTimeout
        The answer was not complete after ``seconds``.
    """
    try:
        async with asyncio.timeout(seconds):
            answer = await upstream.send(ask)
            try:
                pieces = []
                size = 0
                while piece := await answer.read():
                    size += len(piece)
                    if size > limit:
                        raise UpstreamFailed(
                            f"The deployment's answer is larger than {limit} bytes.", code="upstream_protocol"
                        )
                    pieces.append(piece)
                return answer.status, b"".join(pieces)
            finally:
                answer.close()
    except TimeoutError:
        raise UpstreamTimeout("The deployment did not answer in time.", code="total_timeout") from None
