"""PostgreSQL away for 20 seconds under load: no client error, no row lost, and what it does to latency, as a ratio.

Run: make measurements PYTEST_ARGS="tests/bench/test_store_outage.py -s"
"""

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest
from support.clients.load import Load, load
from support.servers.product import Product, all_pids, installation, settings, working_folder
from support.upstreams.scripted_upstream import upstream_process

from auditor.postgres.folder import StoreFolder
from auditor.postgres.home import find_home

AWAY_S = 20.0


@pytest.mark.bench
@pytest.mark.parametrize("way", ["stands still", "is killed again and again"])
async def test_a_store_that_is_away_for_twenty_seconds(tmp_path: Path, way: str) -> None:
    with (
        upstream_process() as (url, _),
        installation(tmp_path, settings(url), None) as product,
        product.running("up"),
    ):
        asked = await _measured(product, way)
        assert asked.failures == []
        await product.shipped()
        assert set(asked.complete) <= set(await product.stored_ids())


async def _measured(product: Product, way: str) -> Load:
    data = find_home(StoreFolder(product.data_dir / "postgres")).data

    def send(number: int) -> None:
        for pid in all_pids():
            if working_folder(pid) == data:
                os.kill(pid, number)

    async with load(product.url) as asked:
        await asyncio.sleep(3)
        before = time.monotonic()
        await asyncio.sleep(10)
        away = time.monotonic()
        if way == "stands still":
            send(signal.SIGSTOP)
            await asyncio.sleep(AWAY_S)
            send(signal.SIGCONT)
        else:
            while time.monotonic() - away < AWAY_S:
                send(signal.SIGKILL)
                await asyncio.sleep(0.5)
        back = time.monotonic()
        await asyncio.sleep(3)
    median_before, median_away = asked.median_ms(before, away), asked.median_ms(away, back)
    rate = sum(away <= began < back for began, _ in asked.latencies) / (back - away)
    print(
        f"\nstore {way} for {back - away:.0f} s at {rate:.0f} requests/s: median {median_before:.2f} ms before, "
        f"{median_away:.2f} ms meanwhile (ratio {median_away / median_before:.2f}); {len(asked.failures)} errors"
    )
    return asked
