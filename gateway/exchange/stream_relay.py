"""Relay of one event stream to the client, from its first bytes or from its middle, as it arrives."""

import asyncio
import math

from auditor.domain.exchange import Outcome
from gateway.errors import UpstreamFailed, UpstreamTimeout
from gateway.exchange.attempt import Attempt
from gateway.exchange.sse import EventSplitter
from gateway.exchange.stopping import STOPPED, STOPPING, finish_storing, survives_cancellation
from gateway.exchange.tap import Tap
from gateway.exchange.usage import UsageStripper
from gateway.http import OpenAnswer, Request
from gateway.recording.threads import WorkThread

#: Bytes of events that are read in a thread: the last event of a stream may have megabytes.
_LARGE_EVENTS = 128 << 10


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
                if self._tap.ended:
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
        self._open.write(relayed[done:] + self._splitter.rest())  # what follows the terminator is passed on unread

    def _read(self, events: bytes) -> tuple[bytes, int]:
        """Return what is relayed of some events, and the position of the terminator in that, or -1."""
        relayed = events if self._stripper is None else self._stripper.strip(events)
        self._tap.events(events, relayed)
        return relayed, self._ending.find(relayed)

    async def _end(self, outcome: Outcome, code: str | None = None) -> None:
        self._tap.end(outcome, self._answer.status, code)
        await finish_storing(self._request, self._tap.storing)

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
