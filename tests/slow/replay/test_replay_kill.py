"""kill -9 of a replay in its middle, and again: the same command goes on, and every planned call counts once.

What the provider blocks counts as well, and is not asked again.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from support.servers.product import Product
from support.stores.replayable_store import IN_FLIGHT, SELECT, choose, is_blocked, replayable, store_probes
from support.upstreams.scripted_upstream import ScriptedUpstream, scripted_upstream

KILLS = 2


@pytest.fixture
async def upstream() -> AsyncIterator[ScriptedUpstream]:
    async with scripted_upstream(choose) as up:
        yield up


@pytest.fixture
def product(upstream: ScriptedUpstream, tmp_path: Path, migrated_url: str) -> Iterator[Product]:
    with replayable(tmp_path, migrated_url, upstream.url) as made:
        yield made


@pytest.mark.parametrize("count", [200, pytest.param(2_000, marks=[pytest.mark.bench, pytest.mark.timeout(600)])])
async def test_a_replay_killed_twice_counts_every_planned_call_once(
    product: Product, upstream: ScriptedUpstream, count: int
) -> None:
    assert product.database_url is not None
    await store_probes(product.database_url, count)
    with product.running("gateway"):
        for kill in range(1, KILLS + 1):
            await is_killed(product, upstream, kill * count // (KILLS + 1), count)
        await asyncio.to_thread(product.run, "replay", "-c", str(product.config), *SELECT, "--yes", timeout=200)
        await every_call_counts_once(product, upstream, count)
        await nothing_is_left_to_send(product, upstream)


async def is_killed(product: Product, upstream: ScriptedUpstream, after: int, count: int) -> None:
    """Kill the replay as soon as the upstream has had so many requests."""
    replay = product.start("replay", *SELECT, "--yes", until="")
    try:
        await upstream.until(lambda up: up.received >= after, timeout_s=60)
    finally:
        replay.process.kill()
        await asyncio.to_thread(replay.process.wait, 10)
    assert after <= upstream.received < count, "it was killed too late to be resumed"
    assert not (product.folder / "out").exists()


async def every_call_counts_once(product: Product, upstream: ScriptedUpstream, count: int) -> None:
    (planned,) = await product.rows(
        "SELECT count(*) AS calls, count(i.ref) AS answered, count(DISTINCT i.exchange_id) AS exchanges, "
        "count(*) FILTER (WHERE e.origin = 'replay' AND e.ref = c.ref AND e.parent IS NOT NULL) AS asked_again, "
        "count(*) FILTER (WHERE e.outcome = 'complete') AS complete "
        "FROM planned_calls c LEFT JOIN planned_instances i USING (ref) LEFT JOIN exchanges e ON e.id = i.exchange_id "
        "WHERE c.ref LIKE 'rpl-%'"
    )
    asked = [request.body for request in upstream.requests]
    blocked = len({request.body for request in upstream.requests if is_blocked(request)})
    assert tuple(planned) == (count, count, count, count, count - blocked)
    assert 0 < blocked < count
    assert len(set(asked)) == count, "every question is another one"
    assert count <= len(asked) <= count + KILLS * IN_FLIGHT
    found = json.loads((product.folder / "out" / "comparison.json").read_text())
    assert found["calls"] == {"planned": count, "answered": count, "failed": {}}
    (group,) = found["groups"]
    (pair,) = group["pairs"]
    assert pair["n_pairs"] == count


async def nothing_is_left_to_send(product: Product, upstream: ScriptedUpstream) -> None:
    received, written = upstream.received, (product.folder / "out" / "comparison.json").read_bytes()
    await asyncio.to_thread(product.run, "replay", "-c", str(product.config), *SELECT)
    assert upstream.received == received
    assert (product.folder / "out" / "comparison.json").read_bytes() == written
