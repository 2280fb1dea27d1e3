"""What the jobs for audits and for replays of the console have in common."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from auditor.errors import StoreUnavailable
from auditor.store.console_runs import ConsoleRun, RunKind, RunState, read_runs
from auditor.store.engine import transaction
from auditor.work import Work

log = logging.getLogger(__name__)

#: Seconds between two looks for a run that was started or stopped.
_EVERY: Final = 1.0


async def repeat_runs(work: Work, kind: RunKind, do: Callable[[Work, ConsoleRun], Awaitable[None]]) -> None:
    """Do the open runs of a kind, one after the other, repeatedly, until cancelled."""
    complaint = ""
    while True:
        try:
            async with transaction(work.engine) as connection:
                waiting = [run for run in (await read_runs(connection, kind)).values() if run.is_open]
            for run in waiting:
                await do(work, run)
            complaint = ""
        except StoreUnavailable as error:
            if str(error) != complaint:
                log.warning("started %ss wait: %s", kind, error)
            complaint = str(error)
        await asyncio.sleep(_EVERY)


async def wait_for_stop(work: Work, kind: RunKind, run_id: str) -> None:
    """Wait until somebody stops the run."""
    stopped = False
    while not stopped:
        await asyncio.sleep(_EVERY)
        with contextlib.suppress(StoreUnavailable):
            async with transaction(work.engine) as connection:
                stopped = (await read_runs(connection, kind))[run_id].state is RunState.STOPPING
