"""What waits to be coded is counted without looking at what was read before."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from answer_cost import rows_to_estimate
from audited import TRAFFIC, configuration, fetch, ship, verdict
from exchanges import NOON
from sqlalchemy.ext.asyncio import AsyncEngine
from stores import fresh_database

from auditor.jobs.idle import run_until_idle
from auditor.jobs.work import open_work
from auditor.store.codings import Scope, count_uncoded
from auditor.store.engine import reading
from auditor.store.waiting import count_waiting

LATER = NOON + timedelta(hours=1)


async def scope_of(engine: AsyncEngine, folder: Path) -> Scope:
    async with open_work(engine, configuration(folder, TRAFFIC), lambda: LATER) as work:
        return next(scope for scope in work.scopes() if scope.routes is not None and "desk" in scope.routes)


async def test_all_that_waits_is_counted_and_what_comes_late_once_it_is_found(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    config, scope = configuration(tmp_path, TRAFFIC), await scope_of(engine, tmp_path)
    async with reading(engine) as connection:
        assert await count_waiting(connection, scope) == {}
    exchanges = [verdict("E", "D", index) for index in range(9)]
    await ship(migrated_url, exchanges[3:6])
    async with reading(engine) as connection:
        assert await count_waiting(connection, scope) == {("d1", "client"): 3}
        assert await count_waiting(connection, scope) == {("d1", "client"): 3}
    await run_until_idle(config, engine, lambda: LATER)
    await ship(migrated_url, exchanges[6:])
    async with reading(engine) as connection:
        assert await count_waiting(connection, scope) == {("d1", "client"): 3}
    # Three more come, of an earlier time than any that waits: the search finds them, and counting begins with them.
    await ship(migrated_url, exchanges[:3])
    async with reading(engine) as connection:
        assert await count_waiting(connection, scope) == {("d1", "client"): 3}
        assert await count_waiting(connection, scope, exchanges[1].id) == {("d1", "client"): 5}
        assert await count_waiting(connection, scope, exchanges[0].id) == {("d1", "client"): 6}
        assert await count_waiting(connection, scope) == await count_uncoded(connection, scope)
        # Another coder has read nothing, and content that is gone keeps nobody waiting.
        assert await count_waiting(connection, replace(scope, coder="another")) == {("d1", "client"): 9}
        after = replace(scope, since=exchanges[8].id)
        assert await count_waiting(connection, after, exchanges[0].id) == {("d1", "client"): 1}


async def test_estimating_reads_as_much_of_the_store_whatever_was_read_before(
    tmp_path: Path, postgres_server: str, template_database: str
) -> None:
    read = {}
    for past in (500, 20_000):
        with fresh_database(postgres_server, template_database) as url:
            read[past] = await rows_to_estimate(url, tmp_path, past)
            ((stored,),) = await fetch(url, "SELECT count(*) FROM codings")
            assert stored == past + 200
    assert abs(read[20_000] - read[500]) < 0.2 * read[500], read
