"""Run the jobs of one process over the queues of pgqueuer, shared with any number of processes.

Two managers run concurrently, so that slow judges do not delay other jobs: one takes the queue ``code``, the other
``find``, ``count`` and ``estimate``. A session ends when the store is lost, and a new one starts when it is back. The
key of a job contains a time slot (``count:1700000000``), so a job that is requested twice in one slot runs once. A
running job may have read its input before a change, so it is requested again for the next slot.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

import asyncpg
from pgqueuer.adapters.drivers.asyncpg import AsyncpgDriver
from pgqueuer.adapters.persistence.qb import QueryBuilderEnvironment, QueryQueueBuilder, QuerySchedulerBuilder
from pgqueuer.adapters.persistence.queries import Queries
from pgqueuer.core.qm import QueueManager
from pgqueuer.domain.errors import RetryRequested
from pgqueuer.domain.models import Job

from auditor.access import gateway_access
from auditor.config import Config
from auditor.errors import AuditError, JudgeUnavailable, StoreUnavailable
from auditor.export.collector import repeat_sending
from auditor.export.parquet.job import repeat_export
from auditor.jobs.actions import repeat_acting
from auditor.jobs.anchors import repeat_anchors
from auditor.jobs.code import MOST_WAITING, code_chunk, find_chunks, waiting_in
from auditor.jobs.console_runs import repeat_audits
from auditor.jobs.estimate import count_stale, estimate_all
from auditor.jobs.monitor import repeat_watching
from auditor.jobs.peer import repeat_asking, repeat_comparing, repeat_mirroring
from auditor.jobs.replays import repeat_replays
from auditor.jobs.retention import repeat_retention
from auditor.jobs.webhook import repeat_posting
from auditor.probes.run import Runner
from auditor.probes.timed import run_due
from auditor.store.engine import DRIVER_ERRORS, make_engine, transaction
from auditor.store.estimates import newest_as_of
from auditor.store.queue import CODE, COUNT, ESTIMATE, FIND, SETTINGS, Chunk, forget_finished, held_chunks
from auditor.store.schema import check_version
from auditor.store.tallies import stale
from auditor.trials.stopping import repeat_stopping
from auditor.work import Clock, Work, open_work, utc_now

log = logging.getLogger(__name__)

#: A worker without a heartbeat for this long is dead, and its jobs go to others.
HEARTBEAT: Final = timedelta(seconds=15)
#: Chunks that one process codes at once.
_CHUNKS_AT_ONCE: Final = 3
_PATIENCE: Final = 20.0
#: Seconds between two checks for due probes.
_PROBE_INTERVAL: Final = 60.0


async def repeat_probes(work: Work) -> None:
    """Run due probes, repeatedly, until cancelled. This is no queue job, because a pass may last for hours."""
    complaint = ""
    while True:
        try:
            if work.config.probes:
                runner = Runner(engine=work.engine, config=work.config, access=gateway_access(work.config))
                await run_due(runner, next(scope.coder for scope in work.scopes() if scope.routes is None))
            complaint = ""
        except AuditError as error:
            if str(error) != complaint:
                log.warning("probes wait: %s", error)
            complaint = str(error)
        await asyncio.sleep(_PROBE_INTERVAL)


#: Loops besides the queue: each checks for work at an interval, and does it; one without anything to do returns.
_REPEATED: Final = (
    *(repeat_anchors, repeat_audits, repeat_replays, repeat_probes, repeat_asking, repeat_mirroring, repeat_comparing),
    *(repeat_watching, repeat_acting, repeat_stopping, repeat_posting, repeat_retention, repeat_export, repeat_sending),
)
#: Each loop may hold a connection while it works; the queue jobs need some of their own.
_CONNECTIONS: Final = len(_REPEATED) + 4


async def run_jobs(config: Config, database_url: str, stop: asyncio.Event, clock: Clock = utc_now) -> None:
    """Work until ``stop`` is set. Wait for a missing store or gateway, and log it once."""
    # A lost connection is logged below in one line, without its traceback.
    logging.getLogger("pgqueuer").setLevel(logging.CRITICAL)
    complaint = ""
    while not stop.is_set():
        try:
            await _session(config, database_url, stop, clock)
            complaint = ""
        except (AuditError, *LOST) as error:
            message = " ".join(str(error).split()) or type(error).__name__
            if message != complaint:
                log.warning("jobs wait: %s", message)
            complaint = message
        except Exception:
            log.exception("jobs failed and are started again")
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), TICK)


async def _session(config: Config, database_url: str, stop: asyncio.Event, clock: Clock) -> None:
    engine = make_engine(database_url, pool_size=_CONNECTIONS)
    try:
        await check_version(engine)  # it may have changed since the process started
        async with (
            open_work(engine, config, clock) as work,
            _queue(database_url) as coding_queries,
            _queue(database_url) as queries,
        ):
            jobs = Jobs(work=work, queries=queries, ending=asyncio.Event())
            coding, upkeep = jobs.coding(coding_queries), jobs.upkeep()
            running = [
                asyncio.create_task(loop) for loop in (_run(coding, _CHUNKS_AT_ONCE), _run(upkeep, 2), jobs.tick())
            ]
            repeating = [asyncio.create_task(repeat(work)) for repeat in _REPEATED]
            stopping = asyncio.create_task(stop.wait())
            await _first_end([*running, stopping], repeating)
            stopping.cancel()
            jobs.ending.set()
            for asking in repeating:
                asking.cancel()  # the next session repeats interrupted work
            await _end([*running, *repeating], (coding, upkeep))
    finally:
        await engine.dispose()


async def _first_end(running: Iterable["asyncio.Task[Any]"], repeating: Collection["asyncio.Task[None]"]) -> None:
    """Wait until one of ``running`` ends or any task fails. A loop that returns has nothing to do, as without a key."""
    waiting: Collection[asyncio.Task[Any]] = {*running, *repeating}
    ended = False
    while not ended:
        done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        ended = any(task not in repeating or task.exception() is not None for task in done)


async def _end(running: Sequence["asyncio.Task[None]"], managers: Sequence[QueueManager]) -> None:
    """Wait until running jobs reach their next stopping point, and raise the first failure."""
    for manager in managers:
        manager.shutdown.set()
    _, late = await asyncio.wait(running, timeout=_PATIENCE)
    for task in late:
        task.cancel()
    for outcome in await asyncio.gather(*running, return_exceptions=True):
        if isinstance(outcome, Exception):
            raise outcome


@contextlib.asynccontextmanager
async def _queue(database_url: str) -> AsyncIterator[Queries]:
    """Open a connection to the queue. It is separate because it listens for notifications."""
    connection = await asyncpg.connect(database_url, timeout=5, statement_cache_size=0)
    try:
        yield Queries(
            AsyncpgDriver(connection),
            qbe=QueryBuilderEnvironment(SETTINGS),
            qbq=QueryQueueBuilder(SETTINGS),
            qbs=QuerySchedulerBuilder(SETTINGS),
        )
    finally:
        with contextlib.suppress(*LOST, TimeoutError):
            await connection.close(timeout=2)


async def _run(manager: QueueManager, at_once: int) -> None:
    await manager.run(
        batch_size=1,
        max_concurrent_tasks=at_once,
        heartbeat_timeout=HEARTBEAT,
        dequeue_timeout=timedelta(seconds=TICK),
    )


#: Seconds between two searches for work.
TICK: Final = 5.0
#: The interval of estimates after changes. Without changes they are made after ``STALE_AFTER``, because windows move.
ESTIMATE_EVERY: Final = 10.0
STALE_AFTER: Final = timedelta(minutes=10)
_KEEP_LOG: Final = timedelta(days=2)
_LONGEST_DELAY: Final = 300.0
#: Exceptions of a lost store: they end the session, which logs one line.
LOST: Final = (OSError, *DRIVER_ERRORS)

Handle = Callable[[Job], Awaitable[None]]


@dataclass(kw_only=True, slots=True)
class Jobs:
    """The jobs of one process."""

    work: Work
    queries: Queries
    ending: asyncio.Event  #: set when the session must end; running jobs then stop at the next opportunity
    _took: float = field(default=0.0, init=False)  #: duration of the last estimates in seconds

    def coding(self, queries: Queries) -> QueueManager:
        """Return the manager of the coding jobs."""
        manager = QueueManager(queries, SETTINGS.channel)
        manager.entrypoint(CODE)(_log_failure(self._code))
        return manager

    def upkeep(self) -> QueueManager:
        """Return the manager of all other jobs. Each of them runs once at a time over all processes."""
        manager = QueueManager(self.queries, SETTINGS.channel)
        for name, handle in ((FIND, self._find), (COUNT, self._count), (ESTIMATE, self._estimate)):
            manager.entrypoint(name, concurrency_limit=1)(_log_failure(handle))
        return manager

    async def tick(self) -> None:
        """Request a search at each tick. All processes do, and the queue runs one search at a time.

        Raises
        ------
        SchemaMismatch
            Another release has migrated the store: jobs wait until this process fits it again.
        """
        while not self.ending.is_set():
            await check_version(self.work.engine)
            await self._ask(FIND, TICK)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.ending.wait(), TICK)

    async def _ask(self, queue: str, every: float, delay: float = 0.0) -> bool:
        """Request one job; return False if it already waits or runs."""
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
        async with transaction(work.engine) as connection:
            held = await held_chunks(connection)
            chunks = await find_chunks(connection, work, held)
            changed = await stale(connection, limit=1)
            as_of = await newest_as_of(connection)
            await forget_finished(connection, _KEEP_LOG)
        if chunks:
            await self._hand_out(chunks)
        waiting = waiting_in(held)
        if waiting < MOST_WAITING // 2 and waiting + waiting_in(chunks) >= MOST_WAITING:
            # There is more work and the queue empties fast, so the next search does not wait for its tick.
            await self._ask(FIND, 1.0)
        if changed:
            await self._ask(COUNT, 1.0)
        elif as_of is None or abs(work.clock() - as_of) > STALE_AFTER:  # or a clock that was ahead dated them
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
            # Estimates of this slot may be running, and may have read the old tallies.
            if not await self._ask(ESTIMATE, ESTIMATE_EVERY, pause):
                await self._ask(ESTIMATE, ESTIMATE_EVERY, pause + ESTIMATE_EVERY)

    async def _pause(self) -> float:
        """Return the seconds until the next estimates may start."""
        async with transaction(self.work.engine) as connection:
            as_of = await newest_as_of(connection)
        # Estimates of a large store are slow; leave most of the time to coding.
        every = max(ESTIMATE_EVERY, 4 * self._took)
        passed = (self.work.clock() - as_of).total_seconds() if as_of is not None else every
        return min(max(0.0, every - passed), every)

    async def _estimate(self, _: Job) -> None:
        began = time.monotonic()
        rows = await estimate_all(self.work)
        self._took = time.monotonic() - began
        log.debug("%d estimates in %.1f s", rows, self._took)


def _log_failure(handle: Handle) -> Handle:
    """Log a job's failure in one line. The job ends, and the next search finds its work again."""

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
