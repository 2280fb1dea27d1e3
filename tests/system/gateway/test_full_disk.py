"""A full disk below `data_dir`: requests are served, keys are followed, and the spool is shipped."""

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest
from support.clients.each_worker import ask_each_worker
from support.clients.scrape import by_label, parsed, scrape
from support.servers.product import STARTUP, Product, Running, installation, settings
from support.stores.databases import Databases
from support.stores.postgres import wait_until_stopped
from support.stores.small_disks import fill, mounted
from support.upstreams.scripted_upstream import ScriptedUpstream
from support.waiting import eventually

from gateway import snapshot

CHAT = "/v1/chat/completions"
#: Room for the counters of three processes (3 MiB each), and for some segments.
DISK_BYTES = 16 << 20


@pytest.fixture(scope="module")
def served(
    tmp_path_factory: pytest.TempPathFactory, databases: Databases, answering_url: str
) -> Iterator[tuple[Product, Running]]:
    """A gateway whose `data_dir` is a small disk, and that knows a first key."""
    folder = tmp_path_factory.mktemp("small")
    with (
        databases.fresh() as database_url,
        mounted(folder / "data", f"size={DISK_BYTES}"),
        installation(folder, settings(answering_url, workers=1), database_url) as product,
    ):
        product.create_key()
        with product.running("gateway") as running:
            yield product, running


async def ask(client: aiohttp.ClientSession, product: Product, secret: str, content: str = "") -> int:
    headers = {"authorization": f"Bearer {secret}"}
    payload = {"model": "gpt", "messages": [{"role": "user", "content": content}]}
    async with client.post(product.url + CHAT, json=payload, headers=headers) as answer:
        await answer.read()
        return answer.status


async def status(product: Product, secret: str, content: str = "") -> int:
    async with aiohttp.ClientSession() as client:
        return await ask(client, product, secret, content)


async def all_answer(product: Product, secret: str, wanted: int, patience: float) -> None:
    """Wait until every worker answers a key with the wanted status."""

    async def answered() -> bool:
        if await status(product, secret) != wanted:  # costs less than to look for each worker
            return False
        return set(await ask_each_worker(product, lambda client: ask(client, product, secret))) == {wanted}

    await eventually(answered, patience)


async def outcomes(product: Product) -> dict[str, float]:
    return by_label(parsed(await scrape(product.url)), "biasmeter_capture_total", "outcome")


async def test_on_a_full_disk_requests_are_served_and_keys_are_followed(served: tuple[Product, Running]) -> None:
    product, running = served
    _, kept = product.create_key()
    revoked_id, revoked = product.create_key()
    await all_answer(product, kept, 200, patience=30)
    await all_answer(product, revoked, 200, patience=30)
    await product.shipped()
    ballast = fill(product.data_dir)
    assert {await status(product, kept, "x" * 5000) for _ in range(40)} == {200}
    assert (await outcomes(product))["dropped_spool_error"] > 0
    product.run("key", "revoke", "-c", str(product.config), revoked_id)
    await all_answer(product, revoked, 401, patience=5)
    _, made = product.create_key()
    await all_answer(product, made, 200, patience=5)
    assert 1 <= running.said().count("the spool cannot be written") <= 12
    ballast.unlink()
    before = (await outcomes(product))["stored"]
    assert {await status(product, kept) for _ in range(10)} == {200}
    counted = await outcomes(product)
    assert counted["stored"] == before + 10
    await product.shipped()
    assert len(await product.rows("SELECT 1 FROM exchanges")) == counted["stored"]
    assert "Traceback" not in running.said()


async def test_the_spool_is_shipped_although_the_keys_cannot_be_written(served: tuple[Product, Running]) -> None:
    """Shipping frees the disk; it must not wait for a snapshot that does not fit."""
    product, running = served
    _, known = product.create_key()
    await all_answer(product, known, 200, patience=30)
    (keys,) = (await product.rows("SELECT count(*) FROM client_keys"))[0]
    (shipper,) = running.pids("gateway.processes.ship")
    os.kill(shipper, signal.SIGSTOP)
    assert {await status(product, known, "x" * 50_000) for _ in range(20)} == {200}
    ballast = fill(product.data_dir)
    assert product.spooled() > 1_000_000
    await product.rows(
        "INSERT INTO client_keys (id, name, hash, models, rights, created_at) "
        "SELECT 'key_' || n, 'many', sha256(n::text::bytea), models, rights, now() "
        "FROM (SELECT * FROM client_keys LIMIT 1) one, generate_series(1, 500) n"
    )
    os.kill(shipper, signal.SIGKILL)
    await product.shipped()
    counted = await outcomes(product)
    ballast.unlink()
    await eventually(lambda: len(snapshot.read(product.data_dir / "gateway" / "keys.json").keys) == keys + 500)
    assert len(await product.rows("SELECT 1 FROM exchanges")) == counted["stored"]
    assert "Traceback" not in running.said()


@pytest.mark.slow
async def test_an_embedded_store_that_cannot_start_on_a_full_disk_stops_no_known_key(
    upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    with (
        mounted(tmp_path / "data", f"size={DISK_BYTES}"),
        installation(tmp_path, settings(upstream.url, workers=1), None) as product,
    ):
        product.run("migrate", "-c", str(product.config), timeout=STARTUP)
        _, known = product.create_key()
        with product.running("gateway"):
            await all_answer(product, known, 200, patience=STARTUP)
            await product.shipped()
        await asyncio.to_thread(wait_until_stopped, product.data_dir, 60)
        ballast = fill(product.data_dir)
        with product.running("gateway") as running:
            assert "No space left" in running.said()
            assert {await status(product, known) for _ in range(4)} == {200}
            assert await status(product, "unknown") in {401, 503}
            ballast.unlink()
            before = (await outcomes(product)).get("stored", 0)
            assert {await status(product, known) for _ in range(4)} == {200}
            await eventually(lambda: product.spooled() == 0, patience=STARTUP)
            assert (await outcomes(product))["stored"] == before + 4
            assert "Traceback" not in running.said()
