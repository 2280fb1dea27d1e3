"""One request to a deployment, until its answer has begun: its deadlines, its slot, and the verdict when it is over."""

import asyncio
import time
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import TypeVar

from auditor.config import Timeouts
from auditor.domain.exchange import Outcome
from gateway.errors import UpstreamFailed, UpstreamTimeout
from gateway.exchange.deadlines import Deadlines
from gateway.exchange.stopping import STOPPED
from gateway.exchange.tap import Tap
from gateway.http import OpenAnswer
from gateway.recording.recorder import Recorder
from gateway.routing.breaker import BreakerVerdict
from gateway.routing.failures import ErrorAnswer, UpstreamRefused
from gateway.routing.slots import Slot
from gateway.upstreams import Upstream, UpstreamAnswer, UpstreamRequest

T = TypeVar("T")
#: A unary answer up to this size is read completely first, so that a failure in its middle can still become a 502.
_WHOLE = 1 << 20
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


def _is_stream(headers: dict[str, str], *, asked: bool) -> bool:
    content_type = headers.get("content-type")
    return asked if content_type is None else content_type.lower().startswith("text/event-stream")


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
