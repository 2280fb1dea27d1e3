"""Shares of limits per minute: through a real PostgreSQL, and in many simulated fleets."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import asyncpg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.domain.keys import Key, hash_secret
from gateway.errors import Limited
from gateway.limits.key_limits import KeyLimits, TokenCount
from gateway.limits.ledger import KeyUse, Ledger
from gateway.limits.shares import KeyShares, OtherHosts, needs_more, next_share

KEY = Key(id="key_1", name="app", hash=hash_secret("sk-1"), rpm=40)
NO_TOKENS = TokenCount(0, 0)


class Host:
    """A host's file with a worker, and the shipper's shares."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.worker = KeyLimits(path)
        self.ledger = Ledger(path)
        self.shares = KeyShares(self.ledger)
        self.key = replace(KEY, rpm=1)

    async def publish(self, connection: asyncpg.Connection) -> None:
        (self.key,) = await self.shares.take(connection, [KEY])
        self.shares.published([self.key])

    def admitted(self, requests: int) -> int:
        """Send requests, and count those that are admitted."""
        found = 0
        for _ in range(requests):
            try:
                self.worker.admit(self.key, 0, NO_TOKENS)
            except Limited:
                return found
            found += 1
        return found

    def close(self) -> None:
        self.worker.close()
        self.ledger.close()


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[list[Host]]:
    made = [Host(tmp_path / f"{number}.table") for number in range(4)]
    yield made
    for one in made:
        one.close()


@pytest.fixture
async def store(migrated_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(migrated_url, statement_cache_size=0)
    await connection.execute(
        "INSERT INTO client_keys (id, name, hash, models, rights, rpm, created_at) "
        "VALUES ($1, $2, $3, '{}', '{}', $4, now())",
        KEY.id, KEY.name, KEY.hash, KEY.rpm,
    )  # fmt: skip
    yield connection
    connection.terminate()


async def test_a_host_alone_has_the_whole_limit(store: asyncpg.Connection, hosts: list[Host]) -> None:
    for _ in range(3):
        await hosts[0].publish(store)
        assert hosts[0].key.rpm == 40


async def test_idle_hosts_have_equal_shares_and_one_in_need_gets_what_they_give_back(
    store: asyncpg.Connection, hosts: list[Host]
) -> None:
    for _ in range(8):
        for host in hosts:
            await host.publish(store)
    assert [host.key.rpm for host in hosts] == [10, 10, 10, 10]
    assert hosts[0].admitted(40) == 10
    for _ in range(4):
        for host in hosts:
            await host.publish(store)
    assert [host.key.rpm for host in hosts] == [34, 2, 2, 2]
    assert sum(host.admitted(60) for host in hosts) == 30


async def test_hosts_keep_their_shares_while_the_store_is_away_and_one_that_is_gone_no_longer_counts(
    store: asyncpg.Connection, hosts: list[Host]
) -> None:
    for _ in range(8):
        for host in hosts[:2]:
            await host.publish(store)
    assert sum(host.admitted(60) for host in hosts) <= 40 + 2  # two hosts have never seen the store
    await store.execute(
        "UPDATE key_shares SET renewed_at = now() - interval '301 s' WHERE ledger = $1", hosts[1].ledger.id
    )
    for _ in range(3):
        await hosts[0].publish(store)
    assert hosts[0].key.rpm == 40


async def test_a_shipper_that_starts_again_gives_back_nothing_that_workers_may_use(
    store: asyncpg.Connection, hosts: list[Host]
) -> None:
    one = hosts[0]
    for _ in range(2):
        await one.publish(store)
    one.shares = KeyShares(one.ledger)
    for host in hosts[1:]:
        await host.publish(store)
        assert host.key.rpm == 1
    await one.publish(store)
    assert await store.fetchval("SELECT requests FROM key_shares WHERE ledger = $1", one.ledger.id) == 40


async def test_keys_are_published_while_another_host_holds_the_lock(
    store: asyncpg.Connection, migrated_url: str, hosts: list[Host]
) -> None:
    for _ in range(2):
        await hosts[0].publish(store)
    other = await asyncpg.connect(migrated_url)
    try:
        async with other.transaction():
            await other.execute("SELECT pg_advisory_xact_lock(hashtext('biasmeter key shares'))")
            await hosts[0].publish(store)
            assert hosts[0].key.rpm == 40
            await hosts[1].publish(store)
            assert hosts[1].key.rpm == 1
    finally:
        other.terminate()


async def test_hosts_that_publish_at_the_same_time_wait_for_their_turn(
    store: asyncpg.Connection, migrated_url: str, hosts: list[Host]
) -> None:
    async with AsyncExitStack() as stack:
        connections = [
            await stack.enter_async_context(asyncpg.create_pool(migrated_url, min_size=1, max_size=1)) for _ in hosts
        ]

        async def publish(host: Host, pool: asyncpg.Pool) -> None:
            async with pool.acquire() as connection:
                await host.publish(connection)

        await asyncio.gather(*map(publish, hosts, connections))
    assert await store.fetchval("SELECT count(*) FROM key_shares") == len(hosts)


@settings(max_examples=150)
@given(
    limit=st.integers(4, 500), hosts=st.integers(1, 4),
    steps=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 120), st.booleans()), max_size=150),
)  # fmt: skip
def test_together_hosts_never_admit_more_than_the_limit_and_one_for_each(
    limit: int, hosts: int, steps: list[tuple[int, int, bool]]
) -> None:
    """A step: a host gets requests and perhaps renews its share. A minute passes every 30 steps, all at once."""
    share, known, held, used = [1] * hosts, [0] * hosts, [0] * hosts, [0] * hosts
    needs, seen = [False] * hosts, [False] * hosts
    for number, (which, requests, renews) in enumerate(steps):
        host = which % hosts
        used[host] += min(requests, max(share[host] - used[host], 0))
        if renews:
            others = [one for one in range(hosts) if one != host and seen[one]]
            told = OtherHosts(
                len(others), sum(held[one] for one in others), sum(needs[one] for one in others),
                sum(held[one] for one in others if not needs[one]),
            )  # fmt: skip
            needs[host] = seen[host] and needs_more(
                limit, known[host], told.hosts + 1, KeyUse(used[host], 0, False), used[host]
            )
            share[host] = next_share(limit, needs=needs[host], is_new=not seen[host], others=told)
            held[host] = max(share[host], known[host], used[host])
            known[host], seen[host] = share[host], True
        assert sum(used) <= limit + hosts - 1
        if number % 30 == 29:
            used = [0] * hosts
