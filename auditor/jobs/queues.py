"""What a process does with a job of each queue. ``worker`` runs it; the steps themselves are the neighbours'.

A queue's key names a moment (``count:1700000000``): what is asked for twice in the same moment is done once. What may
be at work already, and have read what was there before, is asked for once more, for the moment after.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

import asyncpg
from pgqueuer.adapters.persistence.queries import Queries
from pgqueuer.core.qm import QueueManager
from pgqueuer.domain.errors import RetryRequested
from pgqueuer.domain.models import Job

from auditor.errors import AuditError, JudgeUnavailable, StoreUnavailable
from auditor.jobs.code import code_chunk
from auditor.jobs.count import count_stale
from auditor.jobs.estimate import estimate_all
from auditor.jobs.find import MOST_CHUNKS, find_chunks
from auditor.jobs.work import Work
from auditor.store.engine import reading
from auditor.store.estimates import newest_as_of
from auditor.store.queue import CODE, COUNT, ESTIMATE, FIND, SETTINGS, Chunk, forget_finished, held_chunks
from auditor.store.tallies import stale

log = logging.getLogger(__name__)

#: How often work is looked for.
TICK: Final = 5.0
#: Most searches look at the last days; rows that come later than that are found by the next full one.
RECENT: Final = timedelta(days=2)
FULL_EVERY: Final = 600.0
#: Estimates follow changes at this pace, and are made anew after ``STALE_AFTER`` without any: windows move on.
ESTIMATE_EVERY: Final = 10.0
STALE_AFTER: Final = timedelta(minutes=10)
_KEEP_LOG: Final = timedelta(days=2)
_LONGEST_DELAY: Final = 300.0
#: What going without the store looks like: the session ends of itself, and says so once.
LOST: Final = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)

Handle = Callable[[Job], Awaitable[None]]


@dataclass(kw_only=True, slots=True)
class Jobs:
    """The jobs of one process."""

    work: Work
    queries: Queries
    ending: asyncio.Event  #: set when the session is to end: what runs comes to its next stop
    _full_at: float = field(default=-FULL_EVERY, init=False)  #: the last full search of this process
    _took: float = field(default=0.0, init=False)  #: seconds the last estimates took

    def coding(self, queries: Queries) -> QueueManager:
        """Give the manager that takes chunks."""
        manager = QueueManager(queries, SETTINGS.channel)
        manager.entrypoint(CODE)(_told(self._code))
        return manager

    def upkeep(self) -> QueueManager:
        """Give the manager that takes everything else; each of these runs once at a time, over all processes."""
        manager = QueueManager(self.queries, SETTINGS.channel)
        for name, handle in ((FIND, self._find), (COUNT, self._count), (ESTIMATE, self._estimate)):
            manager.entrypoint(name, concurrency_limit=1)(_told(handle))
        return manager

    async def tick(self) -> None:
        """Ask for a search now and then. All processes do, and one search a moment is made."""
        while not self.ending.is_set():
            await self._ask(FIND, TICK)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.ending.wait(), TICK)

    async def _ask(self, queue: str, every: float, delay: float = 0.0) -> bool:
        """Ask for one job of a moment; False where it waits already, or is at work."""
        moment = int((time.time() + delay) // every)
        (made,) = await self.queries.enqueue(
            queue,
            None,
            priority=1,
            execute_after=timedelta(seconds=delay),
            dedupe_key=f"{queue}:{moment}",
            on_conflict="skip",
        )
        return made is not None

    async def _find(self, _: Job) -> None:
        work = self.work
        began = time.monotonic()
        full = began - self._full_at >= FULL_EVERY
        async with reading(work.engine) as connection:
            held = await held_chunks(connection)
            chunks = await find_chunks(connection, work, held, within=None if full else RECENT)
            changed = await stale(connection, limit=1)
            as_of = await newest_as_of(connection)
            await forget_finished(connection, _KEEP_LOG)
        # As long as there is more than can be handed out, the next search is a full one, too.
        if full and len(held) + len(chunks) < MOST_CHUNKS:
            self._full_at = began
        if chunks:
            await self._hand_out(chunks)
        if changed:
            await self._ask(COUNT, 1.0)
        elif as_of is None or work.clock() - as_of > STALE_AFTER:
            await self._ask(ESTIMATE, ESTIMATE_EVERY)

    async def _hand_out(self, chunks: Sequence[Chunk]) -> None:
        number = len(chunks)
        await self.queries.enqueue([CODE] * number, [chunk.pack() for chunk in chunks], [0] * number)

    async def _code(self, job: Job) -> None:
        chunk = Chunk.unpack(job.payload)
        try:
            await code_chunk(self.work, chunk, self.ending)
        except (JudgeUnavailable, StoreUnavailable) as error:
            delay = min(TICK * 2**job.attempts, _LONGEST_DELAY)
            log.warning("%s; %d exchanges are tried again in %.0f s", error, len(chunk.ids), delay)
            raise RetryRequested(timedelta(seconds=delay), reason=str(error)) from error
        if self.ending.is_set():
            raise RetryRequested(reason="the process ends")
        await self._ask(COUNT, 1.0)

    async def _count(self, _: Job) -> None:
        if await count_stale(self.work):
            pause = await self._pause()
            # Those of this moment may be at work, and have read the tallies as they were before.
            if not await self._ask(ESTIMATE, ESTIMATE_EVERY, pause):
                await self._ask(ESTIMATE, ESTIMATE_EVERY, pause + ESTIMATE_EVERY)

    async def _pause(self) -> float:
        """Seconds until estimates may follow the last ones."""
        async with reading(self.work.engine) as connection:
            as_of = await newest_as_of(connection)
        # Estimates of a great store take a while: most of the time is for coding.
        every = max(ESTIMATE_EVERY, 4 * self._took)
        passed = (self.work.clock() - as_of).total_seconds() if as_of is not None else every
        return min(max(0.0, every - passed), every)

    async def _estimate(self, _: Job) -> None:
        began = time.monotonic()
        rows = await estimate_all(self.work)
        self._took = time.monotonic() - began
        log.debug("%d estimates in %.1f s", rows, self._took)


def _told(handle: Handle) -> Handle:
    """Say in one line what went wrong with a job. It ends then: what it should have done is found again."""

    async def run(job: Job) -> None:
        try:
            await handle(job)
        except RetryRequested:
            raise
        except (AuditError, *LOST) as error:
            log.warning("%s: %s", job.entrypoint, " ".join(str(error).split()) or type(error).__name__)
        except Exception:
            log.exception("%s failed", job.entrypoint)
            raise

    return run
