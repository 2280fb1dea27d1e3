"""The chain of facts: whatever is changed, removed or added behind the product's back is named by `verify`."""

import asyncio
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy.ext.asyncio import AsyncEngine
from support.stores.audited_store import fetch, ship
from support.stores.databases import Databases
from support.stores.dump_restore import restore
from support.stores.exchanges import NOON, exchange, full_exchange

from auditor.domain.exchange import Exchange
from auditor.domain.ids import day_bounds, floor_id
from auditor.store.chain import COVERED, ChainFault, ChainFaultKind, ChainPoint, ChainState, verify_chain
from auditor.store.engine import make_engine, metadata
from auditor.store.exchanges import add_exchanges
from auditor.store.retention import RetentionBounds, remove_expired


def some(count: int, days: int = 1) -> list[Exchange]:
    step = timedelta(days=days) / count
    return [exchange(NOON + place * step, tags={"b": "2", "a": "é"}, prompt_tokens=place) for place in range(count)]


#: The first exchange that retention keeps: facts are kept for 400 days.
KEPT_FROM = floor_id(NOON - timedelta(days=400))


async def verify(url: str) -> ChainState:
    engine = make_engine(url)
    try:
        return await verify_chain(engine, KEPT_FROM)
    finally:
        await engine.dispose()


def fault(kind: ChainFaultKind, position: int | None, exchange_id: UUID | None) -> ChainFault:
    return ChainFault(kind=kind, position=position, exchange_id=exchange_id)


async def test_batches_of_shippers_and_imports_make_one_chain(migrated_url: str, engine: AsyncEngine) -> None:
    assert await verify_chain(engine, KEPT_FROM) == ChainState(
        batches=0,
        length=0,
        rows=0,
        head=ChainPoint(digest=bytes(32), newest=UUID(int=0), erased=0, expired=0),
        expired_before=UUID(int=0),
        begin=0,
        wanted=None,
        fault=None,
    )
    made = some(700)
    await ship(migrated_url, [*made[:600], full_exchange()])  # two batches
    await ship(migrated_url, made[:600])  # after a crash: nothing is new, and the chain does not grow
    await add_exchanges(engine, made[600:])
    state = await verify_chain(engine, KEPT_FROM)
    assert (state.batches, state.rows, state.fault) == (3, 701, None)
    assert state.head.digest == (await fetch(migrated_url, "SELECT digest FROM chain WHERE position = 3"))[0]["digest"]
    assert [(state.head.newest,)] == await fetch(migrated_url, "SELECT id FROM exchanges ORDER BY id DESC LIMIT 1")


async def test_shippers_of_several_hosts_extend_one_chain(migrated_url: str, engine: AsyncEngine) -> None:
    made = some(60)

    async def host(own: list[Exchange]) -> None:
        for one in own:
            await ship(migrated_url, [one])

    await asyncio.gather(*(host(made[place::4]) for place in range(4)))
    state = await verify_chain(engine, KEPT_FROM)
    assert (state.batches, state.rows, state.fault) == (60, 60, None)


@settings(max_examples=12)
@given(data=st.data())
def test_the_first_change_is_named(databases: Databases, data: st.DataObject) -> None:
    made = some(12, days=3)
    places = data.draw(st.sets(st.integers(0, 11), min_size=1, max_size=3), label="places")
    column = data.draw(
        st.sampled_from(
            [
                "model = 'other'",
                "status = 500",
                "tags = '{}'",
                "at = at + interval '1 us'",
                "prompt_tokens = NULL",
                "inclusion = 0.5",
                "redacted = NOT redacted",
            ]
        )
    )
    what = data.draw(st.sampled_from(["altered", "missing"]))

    async def check(url: str) -> None:
        for start in range(0, 12, 4):
            await ship(url, made[start : start + 4])
        for place in places:
            query = "DELETE FROM exchanges" if what == "missing" else f"UPDATE exchanges SET {column}"
            await fetch(url, f"{query} WHERE id = $1", made[place].id)
        first = min(places)
        assert (await verify(url)).fault == fault(ChainFaultKind(what), 1 + first // 4, made[first].id)

    with databases.fresh() as url:
        asyncio.run(check(url))


#: A copy of a stored row under an id of its own, put into the day's partition, where no trigger sees it.
COPIED = ", ".join(
    "'019ca945-0000-7000-8000-000000000001'" if column.name == "id" else column.name
    for column in metadata.tables["exchanges"].columns
)
INTO = ", ".join(column.name for column in metadata.tables["exchanges"].columns)
CHANGES = {
    "a row past the trigger": (
        f"INSERT INTO exchanges_20260301 ({INTO}) SELECT {COPIED} FROM exchanges LIMIT 1", "inserted", None
    ),
    "a batch that is gone": ("DELETE FROM chain WHERE position = 2", "broken", 2),
    "a changed entry": ("UPDATE chain SET entries = set_byte(entries, 20, 1 # get_byte(entries, 20))", "broken", 1),
    "a changed digest": ("UPDATE chain SET digest = sha256(digest) WHERE position = 3", "broken", 3),
    "a newer exchange": ("UPDATE chain SET newest = 'ffffffff-0000-7000-8000-000000000001'", "broken", 1),
    "an older one": ("UPDATE chain SET newest = (SELECT newest FROM chain WHERE position = 1)", "broken", 2),
    "entries that are cut": ("UPDATE chain SET entries = substring(entries FOR 50) WHERE position = 2", "broken", 2),
    "no entries": ("UPDATE chain SET entries = '' WHERE position = 2", "broken", 2),
    "a chain that begins later": ("DELETE FROM chain WHERE position = 1", "broken", 1),
}  # fmt: skip


@pytest.mark.parametrize("case", CHANGES)
async def test_a_change_of_the_chain_is_named(migrated_url: str, engine: AsyncEngine, case: str) -> None:
    made = some(9)
    for start in range(0, 9, 3):
        await ship(migrated_url, made[start : start + 3])
    statement, what, position = CHANGES[case]
    await fetch(migrated_url, statement)
    first = (await verify_chain(engine, KEPT_FROM)).fault
    assert first is not None
    assert (first.kind, first.position) == (what, position)


async def test_retention_shortens_the_chain_and_leaves_it_verifiable(migrated_url: str, engine: AsyncEngine) -> None:
    made = some(40, days=10)
    for start in range(0, 40, 4):
        await ship(migrated_url, made[start : start + 4])
    await ship(migrated_url, [exchange(NOON + timedelta(hours=1))])  # late: it expires with its day, its batch later
    today = (NOON + timedelta(days=10)).date()
    await remove_expired(engine, RetentionBounds(content=today, facts=today - timedelta(days=6)))
    kept_from = day_bounds(today - timedelta(days=6))[0]
    state = await verify_chain(engine, kept_from)
    assert state.fault is None
    assert (state.length, state.batches) == (11, 8)
    assert (state.rows, state.head.expired) == (26, 3)
    await fetch(migrated_url, "DELETE FROM exchanges WHERE id = $1", made[30].id)
    assert (await verify_chain(engine, kept_from)).fault == fault(ChainFaultKind.MISSING, 8, made[30].id)
    # When all of it has expired, the chain goes on from its last batch.
    await remove_expired(engine, RetentionBounds(content=today, facts=today + timedelta(days=1)))
    await ship(migrated_url, [exchange(NOON + timedelta(days=12))])
    state = await verify_chain(engine, day_bounds(today + timedelta(days=1))[0])
    assert (state.length, state.batches, state.rows, state.fault) == (12, 1, 1, None)


async def test_a_restored_backup_verifies_and_goes_on(
    migrated_url: str, database_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    made = some(50, days=4)
    await ship(migrated_url, made[:20])
    await ship(migrated_url, [*made[20:40], full_exchange()])
    before = await verify_chain(engine, KEPT_FROM)
    restore(migrated_url, database_url, tmp_path)
    assert await verify(database_url) == before
    await ship(database_url, made[40:])
    state = await verify(database_url)
    assert (state.length, state.rows, state.fault) == (3, 51, None)
    await fetch(database_url, "UPDATE exchanges SET status = 201 WHERE id = $1", made[25].id)
    assert (await verify(database_url)).fault == fault(ChainFaultKind.ALTERED, 2, made[25].id)


async def test_every_column_is_covered_and_a_later_one_changes_no_digest(
    migrated_url: str, engine: AsyncEngine
) -> None:
    assert set(COVERED) == {column.name for column in metadata.tables["exchanges"].columns}
    made = some(8)
    await ship(migrated_url, made[:4])
    await fetch(migrated_url, "ALTER TABLE exchanges ADD COLUMN added text NOT NULL DEFAULT 'x'")
    await ship(migrated_url, made[4:])
    state = await verify_chain(engine, KEPT_FROM)
    assert (state.rows, state.fault) == (8, None)
    await fetch(migrated_url, "UPDATE exchanges SET status = 500 WHERE id = $1", made[5].id)
    assert (await verify_chain(engine, KEPT_FROM)).fault == fault(ChainFaultKind.ALTERED, 2, made[5].id)
