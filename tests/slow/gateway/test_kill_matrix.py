"""The whole product under load, and each of its processes killed several times: no row of a whole answer is lost."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest
from support.clients.load import Load, grown, load
from support.servers.product import Product, Running, installation, marked_pids, settings
from support.stores.embedded_processes import postgres_pids
from support.upstreams.scripted_upstream import upstream_process
from support.waiting import eventually


@pytest.fixture
def product(tmp_path: Path) -> Iterator[Product]:
    """The whole product with its embedded store, as `biasmeter up` runs it."""
    with upstream_process() as (url, _), installation(tmp_path, settings(url), None) as made:
        yield made


async def alive(product: Product, running: Running, victim: str, killed: set[int]) -> int:
    """The process to kill, as soon as there is one that was not killed before."""
    # Looked up once a try: who was there a moment ago may be gone, a killed one not yet.
    found: list[int] = []

    def is_there() -> bool:
        there = postgres_pids(product) if victim == "postgres" else running.pids(victim)
        found[:] = [pid for pid in there if pid not in killed]
        return bool(found)

    await eventually(is_there)
    return found[0]


async def all_are_stored(product: Product, asked: Load) -> None:
    await product.shipped()
    found = await product.stored_ids()
    assert set(asked.complete) <= set(found)
    assert set(found.values()) == {1}


@pytest.mark.parametrize(
    "victim", ["gateway.processes.worker", "gateway.processes.ship", "postgres", "postgres.supervisor"]
)
async def test_a_killed_child_costs_no_row_of_a_whole_answer(product: Product, victim: str) -> None:
    with product.running("up") as running:
        async with load(product.url) as asked:
            killed: set[int] = set()
            for _ in range(3):
                await grown(asked, 150)
                pid = await alive(product, running, victim, killed)
                killed.add(pid)
                os.kill(pid, signal.SIGKILL)
            await grown(asked, 300)
        if victim != "gateway.processes.worker":
            assert asked.failures == []
        await eventually(lambda: _api_answers(product))
        await all_are_stored(product, asked)


async def test_a_killed_parent_costs_no_row_of_a_whole_answer(product: Product) -> None:
    async with load(product.url) as asked:
        for _ in range(3):
            running = product.start("up")
            await grown(asked, 200)
            running.process.kill()
            running.process.wait()
        with product.running("up"):
            await grown(asked, 200)
            asked.stopped = True
            await all_are_stored(product, asked)


async def test_nothing_is_left_running_after_the_parent_was_killed(product: Product) -> None:
    running = product.start("up")
    assert running.pids("gateway.processes.worker")
    assert postgres_pids(product)
    running.process.kill()
    running.process.wait()
    await eventually(lambda: not marked_pids(product.mark) and not postgres_pids(product))


async def test_a_store_that_stands_still_is_not_noticed(product: Product) -> None:
    with product.running("up"):
        async with load(product.url) as asked:
            await grown(asked, 200)
            stopped = postgres_pids(product)
            for pid in stopped:
                os.kill(pid, signal.SIGSTOP)
            await grown(asked, 300)
            waiting = product.spooled()
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)
            await grown(asked, 200)
        assert asked.failures == []
        assert waiting > 0
        await all_are_stored(product, asked)


async def _api_answers(product: Product) -> bool:
    async with aiohttp.ClientSession() as client:
        try:
            async with client.get(product.api + "/api/exchanges", params={"limit": "1"}) as answer:
                return answer.status == 200
        except aiohttp.ClientError:
            return False
