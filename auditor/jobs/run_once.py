"""Run all jobs once, in this process, until nothing is left: for the demonstration and for tests."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from sqlalchemy.ext.asyncio import AsyncEngine

from auditor.config import Config
from auditor.jobs.actions import act_once
from auditor.jobs.code import code_chunk, find_chunks
from auditor.jobs.estimate import count_stale, estimate_all
from auditor.jobs.monitor import watch_days
from auditor.jobs.peer import Comparing
from auditor.store.engine import transaction
from auditor.store.queue import held_chunks
from auditor.trials.stopping import stop_once
from auditor.work import Clock, Work, open_work, utc_now

#: A worker without a heartbeat for this long holds no chunk.
_ALIVE: Final = timedelta(seconds=60)
_LOOK_AGAIN: Final = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkDone:
    """The work that was done."""

    coded: int
    tiles: int
    estimates: int


async def run_once(config: Config, engine: AsyncEngine, clock: Clock = utc_now) -> WorkDone:
    """Code, count, compare, monitor, act on findings, stop arms and estimate, until no work is left.

    Auditor processes may run at the same time. This waits for their chunks instead of coding them twice.

    Raises
    ------
    JudgeUnavailable
        A judge could not be asked; complete codings are stored.
    StoreUnavailable
        The store does not answer.
    UsageError
        A judge is reached through the gateway, and no gateway is known.
    """
    async with open_work(engine, config, clock) as work:
        coded = await _code_all(work)
        await _compare_peers(work)
        tiles = await count_stale(work)
        await watch_days(work)
        await act_once(work)
        await stop_once(work)
        return WorkDone(coded=coded, tiles=tiles, estimates=await estimate_all(work))


async def _compare_peers(work: Work) -> None:
    comparing = Comparing(work)
    try:
        await comparing.step()
    finally:
        await comparing.aclose()


async def _code_all(work: Work) -> int:
    coded = 0
    while True:
        async with transaction(work.engine) as connection:
            held = await held_chunks(connection, _ALIVE)
            chunks = await find_chunks(connection, work, held)
        for chunk in chunks:
            coded += await code_chunk(work, chunk)
        if not chunks and not any(chunk.coder in work.coders for chunk in held):
            return coded
        if not chunks:
            await asyncio.sleep(_LOOK_AGAIN)
