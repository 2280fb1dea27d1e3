"""The relay: an upstream's answer to the client, byte for byte, as it comes.

Only the answer's end waits, for the few microseconds that the tap's record takes to reach the spool: the ``[DONE]``
event of a stream, the last piece of a unary body. So whatever a client has in full is kept, whoever is killed when.
"""

import asyncio
import time
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar

from aiohttp import web

from auditor.config import Timeouts
from auditor.domain.exchange import Outcome
from gateway.endings import Ending
from gateway.errors import UpstreamFailed, UpstreamTimeout
from gateway.headers import client_headers
from gateway.sse import EventSplitter
from gateway.tap import Tap
from gateway.upstreams import Upstream, UpstreamAnswer, UpstreamRequest

T = TypeVar("T")
#: A unary answer up to this size is read whole first, so that a failure in its middle can still become a 502.
_WHOLE = 1 << 20


@dataclass(frozen=True, slots=True)
class Waits:
    """How long the upstream may take, as points in time of the event loop's clock and seconds of silence."""

    first_byte: float  #: by then the answer must have begun
    end: float  #: by then it must have ended
    idle: float | None  #: seconds between two pieces

    @classmethod
    def starting_now(cls, timeouts: Timeouts, *, stream: bool) -> "Waits":
        """Begin to wait. First token and idle hold for streams; the total holds for all."""
        now = asyncio.get_running_loop().time()
        end = now + timeouts.total
        if stream:
            return cls(min(now + timeouts.first_token, end), end, timeouts.idle)
        return cls(end, end, None)


async def relay(
    request: web.BaseRequest, ask: UpstreamRequest, upstream: Upstream, tap: Tap, waits: Waits
) -> web.StreamResponse:
    """Ask the deployment and relay its answer.

    Raises
    ------
    UpstreamFailed, UpstreamTimeout
        Nothing has been sent to the client yet; the caller answers.
    """
    tap.attempts += 1
    answer = await _wait(upstream.send(ask), waits.first_byte, tap)
    try:
        subject = tap.subject
        headers = client_headers(
            answer.headers, subject.id, subject.request_id, subject.target.deployment.name, tap.attempts
        )
        tap.status = answer.status
        named = dict(answer.headers)
        tap.content_encoding = named.get("content-encoding")
        if (
            answer.status < 300
            and _is_stream(named, asked=subject.stream)
            and tap.content_encoding in {None, "identity"}
        ):
            return await _Stream(request, answer, tap, waits).run(headers)
        return await _unary(request, answer, tap, waits, headers)
    finally:
        answer.close()


def _is_stream(headers: dict[str, str], *, asked: bool) -> bool:
    content_type = headers.get("content-type")
    return asked if content_type is None else content_type.lower().startswith("text/event-stream")


async def _wait(awaitable: Awaitable[T], deadline: float, tap: Tap, code: str = "first_token_timeout") -> T:
    began = time.perf_counter()
    try:
        async with asyncio.timeout_at(deadline):
            return await awaitable
    except TimeoutError:
        raise UpstreamTimeout("The deployment did not answer in time.", code=code) from None
    finally:
        tap.upstream_s += time.perf_counter() - began


def _outcome(status: int) -> tuple[Outcome, str | None]:
    if status < 300:
        return Outcome.COMPLETE, None
    if status == 429:
        return Outcome.FAILED, "http_429"
    return Outcome.FAILED, "http_5xx" if status >= 500 else "http_4xx"


async def _unary(
    request: web.BaseRequest, answer: UpstreamAnswer, tap: Tap, waits: Waits, headers: dict[str, str]
) -> web.StreamResponse:
    pieces: list[bytes] = []
    size = 0
    while size <= _WHOLE:
        piece = await _wait(answer.read(), waits.end, tap, "total_timeout")
        if not piece:
            body = b"".join(pieces)
            tap.body(body)
            tap.end(*_ended(answer.status))
            return web.Response(status=answer.status, headers=headers, body=body)
        pieces.append(piece)
        size += len(piece)
    return await _long_unary(request, answer, tap, waits, headers, b"".join(pieces))


def _ended(status: int) -> tuple[Outcome, int, str | None]:
    outcome, error_type = _outcome(status)
    return outcome, status, error_type


async def _long_unary(
    request: web.BaseRequest, answer: UpstreamAnswer, tap: Tap, waits: Waits, headers: dict[str, str], held: bytes
) -> web.StreamResponse:
    response = web.StreamResponse(status=answer.status, headers=headers)
    await response.prepare(request)
    try:
        while following := await _wait(answer.read(), waits.end, tap, "total_timeout"):
            tap.bytes_passed(held)
            await response.write(held)
            held = following
    except (UpstreamFailed, UpstreamTimeout) as error:
        # Without the closing chunk the client knows that the body is not whole.
        tap.end(Outcome.CUT, answer.status, error.code)
        if request.transport is not None:
            request.transport.close()
        return response
    tap.bytes_passed(held)
    tap.end(*_ended(answer.status))
    await response.write(held)
    await response.write_eof()
    return response


class _Stream:
    """Relays one stream of events."""

    def __init__(self, request: web.BaseRequest, answer: UpstreamAnswer, tap: Tap, waits: Waits) -> None:
        self._request = request
        self._answer = answer
        self._tap = tap
        self._waits = waits
        self._ending: Ending = tap.subject.ending
        self._splitter = EventSplitter()
        self._response: web.StreamResponse

    async def run(self, headers: dict[str, str]) -> web.StreamResponse:
        piece = await self._read(self._waits.first_byte, "first_token_timeout")
        if not piece:
            raise UpstreamFailed("The deployment ended its answer before the first byte.", code="upstream_cut")
        headers.setdefault("content-type", "text/event-stream; charset=utf-8")
        headers["cache-control"] = "no-cache"
        headers["x-accel-buffering"] = "no"
        self._response = web.StreamResponse(status=self._answer.status, headers=headers)
        await self._response.prepare(self._request)
        error = await self._relay_events(piece)
        if not self._tap.ended:
            await self._finish(error)
        await self._response.write_eof()
        return self._response

    async def _relay_events(self, piece: bytes) -> UpstreamFailed | UpstreamTimeout | None:
        try:
            while piece:
                await self._pass_on(self._splitter.feed(piece) if not self._tap.ended else piece)
                piece = await self._read(self._idle_deadline(), "idle_timeout")
        except (UpstreamFailed, UpstreamTimeout) as error:
            return error
        return None

    async def _pass_on(self, events: bytes) -> None:
        if not events:
            return
        if self._tap.ended:  # behind the terminator: not ours to judge
            await self._response.write(events)
            return
        self._tap.events(events)
        done = self._ending.find(events)
        if done < 0:
            await self._response.write(events)
            return
        if done:
            await self._response.write(events[:done])
        self._tap.end(Outcome.COMPLETE, self._answer.status)
        await self._response.write(events[done:])

    async def _finish(self, error: UpstreamFailed | UpstreamTimeout | None) -> None:
        """End a stream that brought no terminator: complete if some event said why it ends, else cut."""
        rest = self._splitter.rest()
        if self._tap.finished or (error is None and self._ending.find(rest) >= 0):
            if rest:
                self._tap.events(rest)
            self._tap.end(Outcome.COMPLETE, self._answer.status)
            if rest:
                await self._response.write(rest)
            return
        code = error.code if error else "upstream_cut"
        message = str(error or "The deployment ended its answer in the middle.")
        self._tap.end(Outcome.CUT, self._answer.status, code)
        await self._response.write(self._ending.broken(message, code))

    async def _read(self, deadline: float, code: str) -> bytes:
        return await _wait(self._answer.read(), deadline, self._tap, code)

    def _idle_deadline(self) -> float:
        now = asyncio.get_running_loop().time()
        return min(now + (self._waits.idle or self._waits.end), self._waits.end)


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
