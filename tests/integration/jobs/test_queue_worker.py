"""What is asked for while the same is at work is done afterwards: it may have read what was there before."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pgqueuer.domain.models import Job
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine
from support.stores.audited_store import TRAFFIC, configuration, ship, verdict
from support.stores.coded_store import LATER
from support.stores.exchanges import NOON

from auditor.jobs.queue_worker import ESTIMATE_EVERY, Jobs, _first_end, _queue
from auditor.jobs.run_once import run_once
from auditor.store.engine import transaction
from auditor.store.queue import ESTIMATE, ask_for, queue_sizes
from auditor.work import open_work, utc_now


@pytest.fixture
async def jobs(migrated_url: str, engine: AsyncEngine, tmp_path: Path) -> AsyncIterator[Jobs]:
    """The jobs of a process, none of which is worked on."""
    async with open_work(engine, configuration(tmp_path), utc_now) as work, _queue(migrated_url) as queries:
        yield Jobs(work=work, queries=queries, ending=asyncio.Event())


async def execute(engine: AsyncEngine, query: str) -> None:
    async with transaction(engine) as connection:
        await connection.execute(text(query))


async def take_all(engine: AsyncEngine) -> None:
    """Let somebody be at work on every job that waits."""
    await execute(engine, "UPDATE biasmeter_jobs SET status = 'picked' WHERE status = 'queued'")


async def estimates_asked(engine: AsyncEngine) -> dict[str, int]:
    async with transaction(engine) as connection:
        return {state: n for (queue, state), n in (await queue_sizes(connection)).items() if queue == ESTIMATE}


async def test_a_tally_that_changes_while_estimates_are_made_is_estimated_afterwards(
    jobs: Jobs, engine: AsyncEngine
) -> None:
    await jobs._ask(ESTIMATE, ESTIMATE_EVERY)
    await take_all(engine)
    await execute(engine, f"INSERT INTO stale_tiles (hour, coder) VALUES ('{NOON.replace(minute=0)}', 'one')")
    await jobs._count(Job.model_construct())
    assert await estimates_asked(engine) == {"picked": 1, "queued": 1}


@pytest.mark.parametrize(("age", "asked"), [("1 minute", 0), ("1 hour", 1), ("-3 years", 1)])
async def test_estimates_that_are_old_or_dated_by_a_clock_ahead_are_made_again(
    migrated_url: str, engine: AsyncEngine, jobs: Jobs, tmp_path: Path, age: str, asked: int
) -> None:
    await ship(migrated_url, [verdict("E", "D", index) for index in range(3)])
    await run_once(configuration(tmp_path, TRAFFIC), engine, lambda: LATER)
    await execute(engine, f"UPDATE estimates SET as_of = now() - interval '{age}'")
    await jobs._find(Job.model_construct())
    assert (await estimates_asked(engine)).get("queued", 0) == asked


async def test_what_is_asked_for_twice_waits_once_beside_what_is_at_work(engine: AsyncEngine, jobs: Jobs) -> None:
    async def ask() -> bool:
        async with transaction(engine) as connection:
            return await ask_for(connection, ESTIMATE, "estimate:asked")

    assert [await ask(), await ask()] == [True, False]
    await take_all(engine)
    assert [await ask(), await ask()] == [True, False]
    assert await estimates_asked(engine) == {"picked": 1, "queued": 1}
    await take_all(engine)
    assert [await ask(), await ask()] == [True, False]


async def test_a_loop_that_has_nothing_to_do_does_not_end_the_session_and_one_that_fails_does() -> None:
    stop, fail = asyncio.Event(), asyncio.Event()

    async def idle() -> None: ...

    async def failing() -> None:
        await fail.wait()
        raise OSError

    repeating = [asyncio.create_task(idle()), asyncio.create_task(failing())]
    stopping = asyncio.create_task(stop.wait())
    ended = asyncio.create_task(_first_end([stopping], repeating))
    await repeating[0]
    await asyncio.sleep(0)
    assert not ended.done()
    fail.set()
    await ended
    assert isinstance(repeating[1].exception(), OSError)
    stop.set()
    await stopping
