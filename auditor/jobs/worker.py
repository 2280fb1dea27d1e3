"""The jobs as a process works on them: over pgqueuer's queues, shared with any number of others.

Two managers run side by side, so that slow judges hold up nothing: one takes the queue ``code``, the other ``find``,
``count`` and ``estimate`` (``queues``). A session lasts as long as the store does, and is begun again after it.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Final

import asyncpg
from pgqueuer.adapters.drivers.asyncpg import AsyncpgDriver
from pgqueuer.adapters.persistence.qb import QueryBuilderEnvironment, QueryQueueBuilder, QuerySchedulerBuilder
from pgqueuer.adapters.persistence.queries import Queries
from pgqueuer.core.qm import QueueManager

from auditor.config import Config
from auditor.errors import AuditError
from auditor.jobs.anchors import repeat_anchors
from auditor.jobs.monitor import repeat_watching
from auditor.jobs.peer import repeat_asking, repeat_comparing, repeat_mirroring
from auditor.jobs.probe import repeat_probes
from auditor.jobs.queues import LOST, TICK, Jobs
from auditor.jobs.webhook import repeat_posting
from auditor.jobs.work import Clock, open_work, utc_now
from auditor.store.engine import make_engine
from auditor.store.queue import SETTINGS

log = logging.getLogger(__name__)

#: A worker unheard of for so long is taken for dead, and its jobs are given to others.
HEARTBEAT: Final = timedelta(seconds=15)
#: Chunks one process works on at once.
_CHUNKS_AT_ONCE: Final = 3
_PATIENCE: Final = 20.0
#: What is no job: each of these looks now and then whether there is something to be done, and does it.
_REPEATED: Final = (
    *(repeat_anchors, repeat_probes, repeat_asking, repeat_mirroring, repeat_comparing),
    *(repeat_watching, repeat_posting),
)
#: Each of them may hold a connection for as long as it works; the jobs need some of their own.
_CONNECTIONS: Final = len(_REPEATED) + 4


async def run_jobs(config: Config, database_url: str, stop: asyncio.Event, clock: Clock = utc_now) -> None:
    """Work until ``stop`` is set. What is missing (the store, the gateway) is waited for, and told once."""
    # Its tracebacks of a lost connection are ours to tell, in one line.
    logging.getLogger("pgqueuer").setLevel(logging.CRITICAL)
    complaint = ""
    while not stop.is_set():
        try:
            await _session(config, database_url, stop, clock)
            complaint = ""
        except (AuditError, *LOST) as error:
            told = " ".join(str(error).split()) or type(error).__name__
            if told != complaint:
                log.warning("jobs wait: %s", told)
            complaint = told
        except Exception:
            log.exception("jobs failed and are started again")
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), TICK)


async def _session(config: Config, database_url: str, stop: asyncio.Event, clock: Clock) -> None:
    engine = make_engine(database_url, pool_size=_CONNECTIONS)
    try:
        async with open_work(engine, config, clock) as work, _queue(database_url) as one, _queue(database_url) as other:
            jobs = Jobs(work=work, queries=other, ending=asyncio.Event())
            coding, upkeep = jobs.coding(one), jobs.upkeep()
            running = [
                asyncio.create_task(one) for one in (_run(coding, _CHUNKS_AT_ONCE), _run(upkeep, 2), jobs.tick())
            ]
            repeating = [asyncio.create_task(repeat(work)) for repeat in _REPEATED]
            stopping = asyncio.create_task(stop.wait())
            await asyncio.wait([*running, *repeating, stopping], return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            jobs.ending.set()
            for asking in repeating:
                asking.cancel()  # what is under way is asked again by the next one
            await _end([*running, *repeating], (coding, upkeep))
    finally:
        await engine.dispose()


async def _end(running: Sequence["asyncio.Task[None]"], managers: Sequence[QueueManager]) -> None:
    """Let what runs come to its next stop; whatever failed is told by who began the session."""
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
    """Open a connection to the queue. It listens, so it is one of its own."""
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
