"""kill -9 of each process under load: whatever reached a client in full is in the store, once, after the restart.

`slow/gateway/test_kill_matrix.py` kills each several times, of the whole product.
"""

import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.clients.load import grown, load
from support.servers.product import STARTUP, Product, Running, installation, marked_pids, settings
from support.stores.embedded_processes import postgres_pids
from support.upstreams.scripted_upstream import upstream_process
from support.waiting import eventually

from auditor.postgres.embedded import attach


@pytest.fixture
def product(tmp_path: Path) -> Iterator[Product]:
    """An installation with its embedded store."""
    with upstream_process() as (url, _), installation(tmp_path, settings(url), None) as made:
        made.run("migrate", "-c", str(made.config), timeout=STARTUP)
        yield made


async def kill(product: Product, running: Running, victim: str) -> None:
    """Kill one of a gateway's children, as soon as there is one."""
    found: list[int] = []

    def is_there() -> bool:
        found[:] = postgres_pids(product) if victim == "postgres" else running.pids(victim)
        return bool(found)

    await eventually(is_there)
    os.kill(found[0], signal.SIGKILL)


async def stored_ids(product: Product) -> Counter[str]:
    await product.shipped()
    with attach(product.data_dir) as store:
        product.database_url = store.url
        return Counter(str(row["id"]) for row in await product.rows("SELECT id FROM exchanges"))


async def test_no_killed_process_and_no_store_that_stands_still_costs_a_row_of_a_whole_answer(product: Product) -> None:
    running = product.start("gateway")
    async with load(product.url, connections=8, pause=0.1) as asked:
        await grown(asked, 30)
        stopped = postgres_pids(product)
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        await grown(asked, 30)
        await eventually(lambda: product.spooled() > 0)
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
        for victim in ("gateway.processes.ship", "postgres", "postgres.supervisor"):
            await grown(asked, 30)
            await kill(product, running, victim)
        await grown(asked, 30)
        assert asked.failures == []
        await kill(product, running, "gateway.processes.worker")
        await grown(asked, 30)
        running.process.kill()
        running.process.wait()
        # Nothing is left running after the parent.
        await eventually(lambda: not marked_pids(product.mark) and not postgres_pids(product))
        again = product.start("gateway")
        await grown(asked, 30)
    found = await stored_ids(product)
    assert set(asked.complete) <= set(found)
    assert set(found.values()) == {1}
    assert again.stop() == 0
