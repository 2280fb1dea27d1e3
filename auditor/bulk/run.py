"""Code what is pending with one of the engines, and count the tallies that change."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from sqlalchemy.ext.asyncio import AsyncEngine

from auditor.bulk.here import code_here
from auditor.bulk.pending import Pending, find_pending
from auditor.config import Config
from auditor.jobs.estimate import count_stale
from auditor.jobs.work import Clock, open_work, utc_now


@dataclass(frozen=True, kw_only=True, slots=True)
class BulkRequest:
    """What to code, and where."""

    engine: Literal["queue", "ray"]
    since: datetime | None = None
    until: datetime | None = None
    budget_usd: float | None = None
    address: str | None = None  #: of a Ray cluster; None: this machine
    actors: int = 2
    dry_run: bool = False


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
        if request.dry_run or not pending.chunks:
            return pending, 0
        done = 0

        def on_done(exchanges: int) -> None:
            nonlocal done
            done += exchanges
            on_progress(done, pending.exchanges)

        try:
            if request.engine == "queue":
                return pending, await code_here(work, pending.chunks, on_done)
            from auditor.bulk.on_ray import RayOptions, code_on_ray  # noqa: PLC0415 -- Ray is an optional part

            url = store.url.set(drivername="postgresql").render_as_string(hide_password=False)
            options = RayOptions(address=request.address, actors=request.actors)
            return pending, await asyncio.to_thread(code_on_ray, config, url, pending.chunks, options, on_done)
        finally:
            await count_stale(work)
