"""All the work there is, done here and now: for the demo, for tests, and for a last catch-up."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from sqlalchemy.ext.asyncio import AsyncEngine

from auditor.config import Config
from auditor.jobs.code import code_chunk
from auditor.jobs.count import count_stale
from auditor.jobs.estimate import estimate_all
from auditor.jobs.find import find_chunks
from auditor.jobs.monitor import watch_days
from auditor.jobs.peer import Comparing
from auditor.jobs.work import Clock, Work, open_work, utc_now
from auditor.store.engine import reading
from auditor.store.queue import held_chunks

#: A worker that has not been heard of for so long holds nothing any more.
_ALIVE: Final = timedelta(seconds=60)
_LOOK_AGAIN: Final = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class Done:
    """What was done."""

    coded: int
    tiles: int
    estimates: int


async def run_until_idle(config: Config, engine: AsyncEngine, clock: Clock = utc_now) -> Done:
    """Code, count, compare, watch and estimate all that is stored, and return when nothing is left.

    Auditor processes may be at work at the same time: what one of them holds is waited for, not done twice.

    Raises
    ------
    JudgeUnavailable
        A judge could not be asked; what could be coded is stored.
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
        return Done(coded=coded, tiles=tiles, estimates=await estimate_all(work))


async def _compare_peers(work: Work) -> None:
    comparing = Comparing(work)
    try:
        await comparing.step()
    finally:
        await comparing.aclose()


async def _code_all(work: Work) -> int:
    coded = 0
    while True:
        async with reading(work.engine) as connection:
            held = await held_chunks(connection, _ALIVE)
            chunks = await find_chunks(connection, work, held)
        for chunk in chunks:
            coded += await code_chunk(work, chunk)
        if not chunks and not any(chunk.coder in work.readers for chunk in held):
            return coded
        if not chunks:
            await asyncio.sleep(_LOOK_AGAIN)
