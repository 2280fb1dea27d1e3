"""Code what is pending, and count the tallies that change."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

from sqlalchemy.ext.asyncio import AsyncEngine

from auditor.bulk.engines import Step, do_all
from auditor.bulk.pending import BulkRequest, Pending, find_pending
from auditor.config import Config
from auditor.jobs.code import code_chunk
from auditor.jobs.estimate import count_stale
from auditor.work import Clock, open_work, utc_now


@asynccontextmanager
async def open_coding(store: AsyncEngine, config: Config) -> AsyncIterator[Step]:
    """Prepare the function that codes a chunk, as an auditor's worker does with those of the queue."""
    async with open_work(store, config, utc_now) as work:
        yield partial(code_chunk, work)


async def code_pending(
    store: AsyncEngine,
    config: Config,
    request: BulkRequest,
    on_progress: Callable[[int, int], None],
    clock: Clock = utc_now,
) -> tuple[Pending, int]:
    """Find what is pending, code it unless this is a dry run, and return both it and the number of new codings.

    Parameters
    ----------
    on_progress
        Is called with the exchanges that are done, and with all.

    Raises
    ------
    JudgeUnavailable
        A judge could not be asked; complete codings are stored.
    StoreUnavailable
        PostgreSQL does not answer.
    """
    async with open_work(store, config, clock) as work:
        pending = await find_pending(work, request.since, request.until, request.budget_usd)
        if request.dry_run or not pending.pieces:
            return pending, 0
        count = done_of(pending.count, on_progress)
        try:
            return pending, await do_all(store, config, request.engine, open_coding, pending.pieces, count)
        finally:
            await count_stale(work)


def done_of(total: int, on_progress: Callable[[int, int], None]) -> Callable[[int], None]:
    """Return a function that adds up what is done and reports it with the total."""
    done = 0

    def add(exchanges: int) -> None:
        nonlocal done
        done += exchanges
        on_progress(done, total)

    return add
