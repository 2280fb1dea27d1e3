"""Shippers of several hosts on one PostgreSQL store every exchange once. tests/bench/test_growth.py has 100."""

from collections import Counter
from pathlib import Path

import asyncpg
from support.servers.shipping_fleet import ShippingFleet, postmaster_of, shippers

HOSTS, ROWS = 4, 250


async def test_shippers_of_four_hosts_lose_and_double_nothing(tmp_path: Path, migrated_url: str) -> None:
    with shippers(tmp_path, migrated_url, HOSTS) as hosts:
        store = await asyncpg.connect(migrated_url)
        fleet = ShippingFleet(hosts, store, await postmaster_of(store))
        before = fleet.usage()
        for turn in range(2 * HOSTS):
            fleet.write(ROWS // 2, turn)
        await fleet.shipped()
        used = fleet.usage().since(before)
        found = Counter(str(row["id"]) for row in await store.fetch("SELECT id FROM exchanges"))
        assert found == Counter(fleet.written)
        assert await store.fetchval("SELECT count(*) FROM exchange_content") == HOSTS * ROWS
        assert await fleet.connections() == 2 * HOSTS
        assert used.shippers > 0
        assert used.server > 0
        await store.close()
