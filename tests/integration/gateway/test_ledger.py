"""What keys have spent, through a real PostgreSQL: counted once however often it is told, and on every host."""

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import asyncpg
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from auditor.config import Price
from auditor.domain.keys import Key, hash_secret
from auditor.store.keys import spent_by_keys
from gateway import bootstrap, snapshot
from gateway.errors import Limited
from gateway.limits.key_limits import KeyLimits, TokenCount
from gateway.limits.ledger import Ledger
from gateway.processes.ship import Shipper
from gateway.recording.counters import Counters
from gateway.recording.quarantine import Quarantine

KEY = Key(id="key_1", name="app", hash=hash_secret("sk-1"), budget=0.01)
OTHER = Key(id="key_2", name="other", hash=hash_secret("sk-2"), budget=0.5)
PRICE = Price(input=1, output=10)
NANO_PER_TOKEN = 1000


class Host:
    """One host's file, with a worker and a shipper that share it."""

    def __init__(self, folder: Path) -> None:
        self.folders = bootstrap.Folders(root=folder)
        self.worker = KeyLimits(self.folders.limits)
        self.ledger = Ledger(self.folders.limits)

    def spend(self, key: Key, prompt_tokens: int, spent_elsewhere: int = 0) -> None:
        grant = self.worker.admit(key, spent_elsewhere, TokenCount(0, 0))
        assert grant is not None
        grant.settle(prompt_tokens, 0, PRICE, failed=False)

    def close(self) -> None:
        self.worker.close()
        self.ledger.close()


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Callable[[str], Host]]:
    """Make a host of that name, or let another process of it begin."""
    made: list[Host] = []

    def make(name: str) -> Host:
        made.append(Host(tmp_path / name))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
async def store(migrated_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(migrated_url, statement_cache_size=0)
    await add(connection, KEY, OTHER)
    yield connection
    connection.terminate()


async def add(connection: asyncpg.Connection, *keys: Key) -> None:
    await connection.executemany(
        "INSERT INTO client_keys (id, name, hash, models, rights, budget, created_at) "
        "VALUES ($1, $2, $3, '{}', '{}', $4, now())",
        [(key.id, key.name, key.hash, key.budget) for key in keys],
    )


async def rows(store: asyncpg.Connection) -> list[tuple[str, int]]:
    found = await store.fetch("SELECT key_id, nano_usd FROM key_spending ORDER BY key_id, nano_usd")
    return [(row["key_id"], row["nano_usd"]) for row in found]


async def last_write(store: asyncpg.Connection) -> datetime:
    moment = await store.fetchval("SELECT max(updated_at) FROM key_spending")
    assert isinstance(moment, datetime)
    return moment


async def test_the_total_of_each_key_is_told_as_it_grows(
    store: asyncpg.Connection, host: Callable[[str], Host]
) -> None:
    one = host("a")
    await one.ledger.write_spending(store)
    assert await rows(store) == []
    for tokens in (5, 2, 40):
        one.spend(KEY, tokens)
        one.spend(OTHER, 1)
        await one.ledger.write_spending(store)
    assert await rows(store) == [("key_1", 47 * NANO_PER_TOKEN), ("key_2", 3 * NANO_PER_TOKEN)]


async def test_what_has_not_grown_is_not_written(store: asyncpg.Connection, host: Callable[[str], Host]) -> None:
    one = host("a")
    one.spend(KEY, 5)
    await one.ledger.write_spending(store)
    written = await last_write(store)
    await one.ledger.write_spending(store)
    assert await last_write(store) == written
    one.spend(KEY, 1)
    await one.ledger.write_spending(store)
    assert await last_write(store) > written


async def test_a_shipper_that_dies_between_its_commit_and_anything_else_has_told_it_once(
    store: asyncpg.Connection, host: Callable[[str], Host]
) -> None:
    one = host("a")
    one.spend(KEY, 7)
    await one.ledger.write_spending(store)
    written = await last_write(store)
    for _ in range(3):  # nothing but the file and the store survives; the next begins with these
        await host("a").ledger.write_spending(store)
    assert await rows(store) == [("key_1", 7 * NANO_PER_TOKEN)]
    assert await last_write(store) == written


async def test_a_budget_is_of_all_hosts(store: asyncpg.Connection, host: Callable[[str], Host]) -> None:
    """A spends most of it, B the rest; then neither serves, while the other key goes on."""
    a, b = host("a"), host("b")
    a.spend(KEY, 6000)
    a.spend(OTHER, 1)
    await a.ledger.write_spending(store)
    elsewhere = await b.ledger.spent_elsewhere(store)
    assert elsewhere == {"key_1": 6000 * NANO_PER_TOKEN, "key_2": NANO_PER_TOKEN}
    b.spend(KEY, 4000, elsewhere["key_1"])
    with pytest.raises(Limited):
        b.worker.admit(KEY, elsewhere["key_1"], TokenCount(0, 0))
    await b.ledger.write_spending(store)
    elsewhere = await a.ledger.spent_elsewhere(store)
    assert elsewhere == {"key_1": 4000 * NANO_PER_TOKEN}
    with pytest.raises(Limited):
        a.worker.admit(KEY, elsewhere["key_1"], TokenCount(0, 0))
    a.spend(OTHER, 1)


async def test_a_host_whose_file_was_lost_begins_another_ledger_and_nothing_is_forgotten(
    store: asyncpg.Connection, host: Callable[[str], Host]
) -> None:
    before = host("a")
    before.spend(KEY, 9999)
    await before.ledger.write_spending(store)
    before.folders.limits.unlink()
    after = host("a")
    elsewhere = await after.ledger.spent_elsewhere(store)
    assert elsewhere == {"key_1": 9999 * NANO_PER_TOKEN}
    after.spend(KEY, 1, elsewhere["key_1"])
    with pytest.raises(Limited):
        after.worker.admit(KEY, elsewhere["key_1"], TokenCount(0, 0))
    await after.ledger.write_spending(store)
    assert await rows(store) == [("key_1", NANO_PER_TOKEN), ("key_1", 9999 * NANO_PER_TOKEN)]


async def test_an_older_copy_of_the_file_takes_nothing_back(
    store: asyncpg.Connection, host: Callable[[str], Host]
) -> None:
    one = host("a")
    one.spend(KEY, 1)
    old = one.folders.limits.read_bytes()
    one.spend(KEY, 1000)
    await one.ledger.write_spending(store)
    one.folders.limits.write_bytes(old)
    await host("a").ledger.write_spending(store)
    assert await rows(store) == [("key_1", 1001 * NANO_PER_TOKEN)]


async def test_a_key_that_the_store_does_not_know_costs_no_other(
    store: asyncpg.Connection, host: Callable[[str], Host]
) -> None:
    one = host("a")
    one.spend(replace(KEY, id="key_of_another_store"), 5)
    one.spend(OTHER, 5)
    await one.ledger.write_spending(store)
    assert await rows(store) == [("key_2", 5 * NANO_PER_TOKEN)]


async def test_sums_beyond_what_a_row_holds_are_summed_all_the_same(
    store: asyncpg.Connection, host: Callable[[str], Host], engine: AsyncEngine
) -> None:
    await store.execute(
        "INSERT INTO key_spending "
        "SELECT 'key_1', gen_random_uuid(), 9223372036854775807, now() FROM generate_series(1, 3)"
    )
    elsewhere = await host("a").ledger.spent_elsewhere(store)
    assert elsewhere == {"key_1": 3 * (2**63 - 1)}
    async with engine.connect() as connection:
        assert await spent_by_keys(connection) == elsewhere


async def test_the_shipper_publishes_what_was_spent_elsewhere_and_ends_with_all_told(
    store: asyncpg.Connection, host: Callable[[str], Host], migrated_url: str
) -> None:
    here, there = host("here"), host("there")
    there.spend(KEY, 20)
    await there.ledger.write_spending(store)
    counters = Counters(here.folders.counters / "shipper.counters")
    quarantine = Quarantine(here.folders.spool / "quarantine", counters, 1 << 20)
    shipper = Shipper(migrated_url, here.folders, quarantine, here.ledger)
    for tokens in (1, 2):  # the second within the two seconds in which the keys are not looked at again
        here.spend(OTHER, tokens)
        await shipper.empty()
    published = snapshot.read(here.folders.snapshot)
    assert published.keys == {KEY.hash: KEY, OTHER.hash: OTHER}
    assert published.spent_elsewhere == {"key_1": 20 * NANO_PER_TOKEN}
    assert await rows(store) == [("key_1", 20 * NANO_PER_TOKEN), ("key_2", 3 * NANO_PER_TOKEN)]
    await there.ledger.write_spending(store)
    there.spend(KEY, 5)
    await there.ledger.write_spending(store)
    await shipper.empty()
    assert snapshot.read(here.folders.snapshot).spent_elsewhere == {"key_1": 25 * NANO_PER_TOKEN}
    shipper.close()
    counters.close()
