"""The relay: an upstream's answer to the client, byte for byte, as it comes.

Only the answer's end waits, for the few microseconds that the tap's record takes to reach the spool: the ``[DONE]``
event of a stream, the last piece of a unary body. So whatever a client has in full is kept, whoever is killed when.
"""

import asyncio
import math
import time
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar

from auditor.config import Timeouts
from auditor.domain.exchange import Outcome
from gateway.deadlines import Deadlines
from gateway.errors import UpstreamFailed, UpstreamTimeout
from gateway.failures import Refusal, UpstreamRefused, asking_again_may_help, error_type_of
from gateway.headers import client_headers
from gateway.server import OpenAnswer, Request, WholeAnswer
from gateway.sse import EventSplitter
from gateway.tap import Tap
from gateway.upstreams import Upstream, UpstreamAnswer, UpstreamRequest
from gateway.usage import UsageStripper

T = TypeVar("T")
#: A unary answer up to this size is read whole first, so that a failure in its middle can still become a 502.
_WHOLE = 1 << 20
#: What becomes of an exchange that is not done when this process must end.
STOPPED = "gateway_stopped"
STOPPING = "The gateway is being stopped."


@dataclass(slots=True)
class Waits:
    """How long the upstream may take, as points in time of the event loop's clock and seconds of silence."""

    task: "asyncio.Task[object]"  #: the one that waits
    deadlines: Deadlines
    first_byte: float  #: by then the answer must have begun
    end: float  #: by then it must have ended
    idle: float | None  #: seconds between two pieces

    @classmethod
    def starting_now(cls, deadlines: Deadlines, timeouts: Timeouts, *, stream: bool, end: float) -> "Waits":
        """Begin to wait. First token and idle hold for streams; the end is that of the whole request."""
        task = asyncio.current_task()
        assert task is not None
        if stream:
            now = asyncio.get_running_loop().time()
            return cls(task, deadlines, min(now + timeouts.first_token, end), end, timeouts.idle)
        return cls(task, deadlines, end, end, None)

    async def keep(self, awaitable: Awaitable[T], due: float, tap: Tap, code: str) -> T:
        """Wait for the upstream until ``due``, and add the time to what the exchange has spent on it.

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


@dataclass(slots=True)
class Begun:
    """An answer that can be relayed: a stream with its first bytes, or a unary body whole or as far as it is held."""

    answer: UpstreamAnswer
    headers: dict[str, str]  #: the upstream's, names in lower case
    is_stream: bool
    held: bytes
    whole: bool


async def begin(ask: UpstreamRequest, upstream: Upstream, tap: Tap, waits: Waits) -> Begun:
    """Ask a deployment and wait until its answer has begun; nothing has been sent to the client yet.

    Raises
    ------
    UpstreamRefused
        It answered with an error status.
    UpstreamFailed, UpstreamTimeout
        It could not be reached, hung up, or was too slow.
    """
    code = "first_token_timeout" if tap.subject.stream else "total_timeout"
    answer = await waits.keep(upstream.send(ask), waits.first_byte, tap, code)
    try:
        begun = await _begin(answer, tap, waits)
    except BaseException:
        answer.close()
        raise
    if begun.whole and answer.status >= 400:
        answer.close()
        raise UpstreamRefused(Refusal(answer.status, answer.headers, begun.held))
    return begun


async def _begin(answer: UpstreamAnswer, tap: Tap, waits: Waits) -> Begun:
    headers = dict(answer.headers)
    compressed = headers.get("content-encoding", "identity") != "identity"
    if answer.status < 300 and not compressed and _is_stream(headers, asked=tap.subject.stream):
        first = await waits.keep(answer.read(), waits.first_byte, tap, "first_token_timeout")
        if not first:
            raise UpstreamFailed("The deployment ended its answer before the first byte.", code="upstream_cut")
        return Begun(answer, headers, is_stream=True, held=first, whole=False)
    body, whole = await _read_body(answer, headers.get("content-length"), tap, waits)
    return Begun(answer, headers, is_stream=False, held=body, whole=whole)


async def _read_body(answer: UpstreamAnswer, length: str | None, tap: Tap, waits: Waits) -> tuple[bytes, bool]:
    pieces: list[bytes] = []
    size = 0
    while size <= _WHOLE:
        coming = answer.read()
        piece = await (coming if answer.held else waits.keep(coming, waits.end, tap, "total_timeout"))
        if not piece:
            return b"".join(pieces), True
        pieces.append(piece)
        size += len(piece)
        if str(size) == length:
            return b"".join(pieces), True
    return b"".join(pieces), False


async def relay(
    request: Request, begun: Begun, tap: Tap, waits: Waits, *, strip_usage: bool = False
) -> WholeAnswer | OpenAnswer:
    """Relay an answer that has begun, to its end.

    ``strip_usage`` takes out of a stream what the gateway asked for in the client's stead.
    """
    answer = begun.answer
    tap.status = answer.status
    tap.content_encoding = begun.headers.get("content-encoding")
    try:
        headers = client_headers(answer.headers, tap.own_headers())
        if begun.is_stream:
            return await _Stream(request, begun, tap, waits, strip_usage=strip_usage).run(headers)
        if begun.whole:
            tap.body(begun.held)
            tap.end(*_ended(answer.status))
            headers.setdefault("content-type", "application/octet-stream")
            return WholeAnswer(answer.status, headers, begun.held)
        return await _long_unary(request, begun, tap, waits, headers)
    finally:
        answer.close()


def survives_cancellation(request: Request) -> bool:
    """Let a cancelled handler go on, and say so, if its client is still there: then it is this process that ends."""
    if request.client.is_gone:
        return False
    task = asyncio.current_task()
    assert task is not None
    task.uncancel()
    return True


def relay_refusal(refusal: Refusal, tap: Tap) -> WholeAnswer:
    """Relay an error answer as it is."""
    tap.status = refusal.status
    tap.content_encoding = dict(refusal.headers).get("content-encoding")
    tap.body(refusal.body)
    tap.end(*_ended(refusal.status))
    headers = client_headers(refusal.headers, tap.own_headers())
    if not asking_again_may_help(refusal.status):
        headers.setdefault("x-should-retry", "false")
    return WholeAnswer(refusal.status, headers, refusal.body)


def _is_stream(headers: dict[str, str], *, asked: bool) -> bool:
    content_type = headers.get("content-type")
    return asked if content_type is None else content_type.lower().startswith("text/event-stream")


def _ended(status: int) -> tuple[Outcome, int, str | None]:
    return Outcome.COMPLETE if status < 300 else Outcome.FAILED, status, error_type_of(status)


async def _long_unary(request: Request, begun: Begun, tap: Tap, waits: Waits, headers: dict[str, str]) -> OpenAnswer:
    answer, held = begun.answer, begun.held
    open_answer = OpenAnswer(request, answer.status, headers)
    try:
        while following := await waits.keep(answer.read(), waits.end, tap, "total_timeout"):
            tap.bytes_passed(held)
            open_answer.write(held)
            if open_answer.is_full:
                await open_answer.drain()
            held = following
    except (UpstreamFailed, UpstreamTimeout) as error:
        tap.end(Outcome.CUT, answer.status, error.code)
        open_answer.cut()
        return open_answer
    tap.bytes_passed(held)
    tap.end(*_ended(answer.status))
    open_answer.write(held)
    open_answer.end()
    return open_answer


class _Stream:
    """Relays one stream of events."""

    def __init__(self, request: Request, begun: Begun, tap: Tap, waits: Waits, *, strip_usage: bool) -> None:
        self._request = request
        self._answer = begun.answer
        self._first = begun.held
        self._tap = tap
        self._waits = waits
        self._idle = waits.idle or math.inf
        self._now = asyncio.get_running_loop().time
        self._ending = tap.subject.ending
        self._splitter = EventSplitter(find_last=self._ending.find)
        self._stripper = UsageStripper() if strip_usage else None
        self._open: OpenAnswer

    async def run(self, headers: dict[str, str]) -> OpenAnswer:
        headers.setdefault("content-type", "text/event-stream; charset=utf-8")
        headers["cache-control"] = "no-cache"
        headers["x-accel-buffering"] = "no"
        self._open = OpenAnswer(self._request, self._answer.status, headers)
        try:
            error = await self._relay_events(self._first)
        except asyncio.CancelledError:
            if not survives_cancellation(self._request):
                raise
            error = UpstreamFailed(STOPPING, code=STOPPED)
        if not self._tap.ended:
            self._finish(error)
        self._open.end()
        return self._open

    async def _relay_events(self, piece: bytes) -> UpstreamFailed | UpstreamTimeout | None:
        try:
            while piece:
                self._pass_on(self._splitter.feed(piece) if not self._tap.ended else piece)
                if self._open.is_full:
                    await self._open.drain()
                due = min(self._now() + self._idle, self._waits.end)
                piece = await self._waits.keep(self._answer.read(), due, self._tap, "idle_timeout")
        except (UpstreamFailed, UpstreamTimeout) as error:
            return error
        return None

    def _pass_on(self, events: bytes) -> None:
        if not events or self._tap.ended:  # behind the terminator: not ours to judge
            self._open.write(events)
            return
        relayed = events if self._stripper is None else self._stripper.strip(events)
        self._tap.events(events, relayed)
        events = relayed
        done = self._ending.find(events)
        if done < 0:
            self._open.write(events)
            return
        self._open.write(events[:done])
        self._tap.end(Outcome.COMPLETE, self._answer.status)
        self._open.write(events[done:])

    def _finish(self, error: UpstreamFailed | UpstreamTimeout | None) -> None:
        """End a stream that brought no terminator: complete if some event said why it ends, else cut."""
        rest = self._splitter.rest()
        if self._tap.finished or (error is None and self._ending.find(rest) >= 0):
            relayed = rest if self._stripper is None else self._stripper.rest(rest)
            self._tap.events(rest, relayed)
            self._tap.end(Outcome.COMPLETE, self._answer.status)
            self._open.write(relayed)
            return
        code = error.code if error else "upstream_cut"
        message = str(error or "The deployment ended its answer in the middle.")
        self._tap.end(Outcome.CUT, self._answer.status, code)
        self._open.write(self._ending.broken(message, code))


async def read_whole(upstream: Upstream, ask: UpstreamRequest, seconds: float) -> tuple[int, bytes]:
    """Ask a deployment something of our own, and read the whole answer: its status and body."""
    try:
        async with asyncio.timeout(seconds):
            answer = await upstream.send(ask)
            try:
                pieces = []
                while piece := await answer.read():
                    pieces.append(piece)
                return answer.status, b"".join(pieces)
            finally:
                answer.close()
    except TimeoutError:
        raise UpstreamTimeout("The deployment did not answer in time.", code="total_timeout") from None
