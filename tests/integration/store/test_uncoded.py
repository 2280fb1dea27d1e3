"""The search for uncoded exchanges finds every one, whatever was coded before, and does not read it all again."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import asyncpg
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from support.stores.audited_store import TRAFFIC, configuration, fetch, ship, verdict
from support.stores.coded_store import LATER, code_share, scope_of, search, write_exchanges
from support.stores.databases import Databases
from support.stores.estimation_reads import rows_to_estimate

from auditor.domain.exchange import Exchange
from auditor.domain.ids import floor_id
from auditor.jobs.code import find_chunks
from auditor.jobs.run_once import run_once
from auditor.store.engine import transaction
from auditor.store.plans import count_as_answered
from auditor.store.uncoded import CodingScope, begin_search, count_uncoded, find_uncoded, oldest_uncoded
from auditor.work import open_work


async def found(engine: AsyncEngine, scope: CodingScope, held: tuple[Exchange, ...] = ()) -> list[object]:
    async with transaction(engine) as connection:
        await begin_search(connection)
        return list(await find_uncoded(connection, scope, 100, [each.id for each in held]))


async def marks(url: str) -> list[asyncpg.Record]:
    return await fetch(url, "SELECT since FROM coding_marks WHERE routes <> '{}'")


def ids(exchanges: list[Exchange]) -> list[object]:
    return [each.id for each in exchanges]


@pytest.fixture
async def scope(engine: AsyncEngine, tmp_path: Path) -> CodingScope:
    return await scope_of(engine, tmp_path)


@pytest.fixture
def exchanges() -> list[Exchange]:
    return [verdict("E", "D", index) for index in range(9)]


async def test_what_comes_late_is_counted_at_once_and_found_by_the_next_search(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path, scope: CodingScope, exchanges: list[Exchange]
) -> None:
    assert await found(engine, scope) == []
    await ship(migrated_url, exchanges[3:6])
    assert await found(engine, scope) == await found(engine, scope) == ids(exchanges[3:6])
    await run_once(configuration(tmp_path, TRAFFIC), engine, lambda: LATER)
    assert await found(engine, scope) == []
    # New ones, and then some of an earlier time than any that was coded.
    await ship(migrated_url, exchanges[6:])
    assert await found(engine, scope) == ids(exchanges[6:])
    await ship(migrated_url, exchanges[1:3])
    async with transaction(engine) as connection:
        assert await count_uncoded(connection, scope) == {("d1", "client"): 5}
        assert await oldest_uncoded(connection, scope) == exchanges[1].id
        # Another coder has coded nothing, and content that is gone is not searched.
        assert await count_uncoded(connection, replace(scope, coder="another")) == {("d1", "client"): 8}
        assert await count_uncoded(connection, replace(scope, since=exchanges[8].id)) == {("d1", "client"): 1}
    assert await found(engine, scope) == ids(exchanges[1:3] + exchanges[6:])
    # The search has seen those; what comes later still, even earlier, is another arrival.
    await ship(migrated_url, exchanges[:1])
    assert await found(engine, scope) == ids(exchanges[:3] + exchanges[6:])
    assert await fetch(migrated_url, "SELECT * FROM arrivals") == []


async def test_another_coder_and_other_routes_search_from_the_beginning(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path, scope: CodingScope, exchanges: list[Exchange]
) -> None:
    await ship(migrated_url, exchanges)
    await run_once(configuration(tmp_path, TRAFFIC), engine, lambda: LATER)
    assert await found(engine, scope) == []
    assert await found(engine, replace(scope, coder="another")) == ids(exchanges)
    await fetch(migrated_url, "UPDATE exchanges SET route = 'other' WHERE id = $1", exchanges[4].id)
    await fetch(migrated_url, "DELETE FROM codings WHERE exchange_id = $1", exchanges[4].id)
    assert await found(engine, scope) == []
    assert scope.routes is not None
    assert await found(engine, replace(scope, routes=(*scope.routes, "other"))) == [exchanges[4].id]


async def test_the_mark_stays_before_what_is_held_so_that_a_lost_job_is_found_again(
    migrated_url: str, engine: AsyncEngine, scope: CodingScope, exchanges: list[Exchange]
) -> None:
    await ship(migrated_url, exchanges)
    assert await found(engine, scope) == ids(exchanges)
    held = tuple(exchanges[2:5])
    assert await found(engine, scope, held) == ids(exchanges[:2] + exchanges[5:])
    assert await found(engine, scope, tuple(exchanges)) == []
    assert [row["since"] for row in await marks(migrated_url)] == [exchanges[0].id]
    assert await found(engine, scope) == ids(exchanges)  # nobody holds them any more


async def test_a_batch_that_commits_after_a_later_one_was_searched_is_found(
    migrated_url: str, engine: AsyncEngine, scope: CodingScope, exchanges: list[Exchange]
) -> None:
    await ship(migrated_url, exchanges)
    row = "SELECT e.* FROM exchanges e WHERE id = $1"
    await fetch(migrated_url, f"CREATE TABLE kept AS {row.replace('$1', repr(str(exchanges[0].id)))}")
    await fetch(migrated_url, "DELETE FROM exchanges WHERE id = $1", exchanges[0].id)
    slow = await asyncpg.connect(migrated_url)
    try:
        batch = slow.transaction()
        await batch.start()
        await slow.execute("INSERT INTO exchanges SELECT * FROM kept")
        assert await found(engine, scope, tuple(exchanges[1:])) == []
        assert await found(engine, scope) == ids(exchanges[1:])
        await batch.commit()
    finally:
        await slow.close()
    assert await found(engine, scope) == ids(exchanges)


async def test_auditors_that_search_at_once_while_exchanges_arrive_find_every_one(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path, scope: CodingScope, thorough: bool
) -> None:
    exchanges = [verdict("E", "D", index) for index in range(60)]
    arriving = exchanges[1::2] + exchanges[::2][::-1]  # the second half is ever later than what came before
    config = configuration(tmp_path, TRAFFIC)

    async def arrive() -> None:
        for start in range(0, len(arriving), 5):
            await ship(migrated_url, arriving[start : start + 5])

    async def audit() -> None:
        for _ in range(6 if thorough else 3):
            await run_once(config, engine, lambda: LATER)

    await asyncio.gather(arrive(), audit(), audit())
    await run_once(config, engine, lambda: LATER)
    coded = await fetch(migrated_url, "SELECT exchange_id FROM codings WHERE coder = $1 ORDER BY 1", scope.coder)
    assert [row["exchange_id"] for row in coded] == sorted(each.id for each in exchanges)


async def test_what_was_changed_by_hand_is_found_by_the_days_full_search(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path, scope: CodingScope, exchanges: list[Exchange]
) -> None:
    await ship(migrated_url, exchanges)
    await run_once(configuration(tmp_path, TRAFFIC), engine, lambda: LATER)
    await fetch(migrated_url, "DELETE FROM codings WHERE exchange_id = $1", exchanges[2].id)
    assert await found(engine, scope) == []
    await fetch(migrated_url, "UPDATE coding_marks SET searched_all_at = now() - interval '25 hours'")
    assert await found(engine, scope) == [exchanges[2].id]
    assert await fetch(migrated_url, "SELECT * FROM coding_marks WHERE searched_all_at < now() - interval '1 h'") != []


async def test_what_was_not_coded_while_the_clock_was_ahead_is_found_when_it_is_right_again(
    migrated_url: str, engine: AsyncEngine, scope: CodingScope, exchanges: list[Exchange]
) -> None:
    await ship(migrated_url, exchanges)
    ahead = timedelta(days=3 * 365)
    assert await found(engine, replace(scope, since=floor_id(LATER + ahead))) == []  # content of then is gone
    await fetch(migrated_url, "UPDATE coding_marks SET searched_all_at = now() + $1", ahead)
    assert await found(engine, scope) == ids(exchanges)


async def test_an_exchange_that_counts_as_an_answer_only_later_is_searched_again(
    migrated_url: str, engine: AsyncEngine, exchanges: list[Exchange]
) -> None:
    async with transaction(engine) as connection:
        await count_as_answered(connection, {"ref": exchanges[0].id})
    assert [row["since"] for row in await fetch(migrated_url, "SELECT since FROM arrivals")] == [exchanges[0].id]


async def test_a_great_backlog_is_handed_out_in_large_chunks(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    await write_exchanges(migrated_url, engine, tmp_path, 30_000)
    async with (
        open_work(engine, configuration(tmp_path, TRAFFIC), lambda: LATER) as work,
        transaction(engine) as connection,
    ):
        chunks = await find_chunks(connection, work)
        again = await find_chunks(connection, work, chunks)
    assert sum(len(chunk.ids) for chunk in chunks) == 30_000
    assert max(len(chunk.ids) for chunk in chunks) > 100
    assert again == []


@pytest.mark.parametrize("scattered", [False, True])
async def test_a_search_reads_no_more_of_a_store_that_is_coded(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path, scope: CodingScope, thorough: bool, *, scattered: bool
) -> None:
    count = 20_000 if thorough else 6_000
    await write_exchanges(migrated_url, engine, tmp_path, count)
    nothing = await search(migrated_url, scope)
    assert nothing.found == count
    assert nothing.rows > count
    await code_share(migrated_url, count, 0.99, scattered=scattered)
    await search(migrated_url, scope)  # moves the mark
    most = await search(migrated_url, scope)
    assert most.found == count // 100
    assert most.rows <= (2.5 if scattered else 0.1) * nothing.rows, (most, nothing)


@pytest.mark.slow
async def test_estimating_reads_as_much_of_the_store_whatever_was_coded_before(
    tmp_path: Path, databases: Databases
) -> None:
    read = {}
    for past in (500, 20_000):
        with databases.fresh() as url:
            read[past] = await rows_to_estimate(url, tmp_path, past)
            ((stored,),) = await fetch(url, "SELECT count(*) FROM codings")
            assert stored == past + 200
    assert abs(read[20_000] - read[500]) < 0.2 * read[500], read
