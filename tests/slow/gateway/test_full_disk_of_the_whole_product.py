"""`biasmeter up` on a full disk, where its embedded store cannot start: known keys are served, and all is kept."""

import asyncio
from pathlib import Path

import aiohttp
from support.clients.scrape import by_label, parsed, scrape
from support.servers.product import STARTUP, Product, installation, settings
from support.stores.postgres import wait_until_stopped
from support.stores.small_disks import fill, mounted
from support.upstreams.scripted_upstream import ScriptedUpstream
from support.waiting import eventually

DISK_BYTES = 16 << 20


async def status(product: Product, secret: str) -> int:
    url, headers = product.url + "/v1/chat/completions", {"authorization": f"Bearer {secret}"}
    payload = {"model": "gpt", "messages": []}
    async with aiohttp.ClientSession() as client, client.post(url, json=payload, headers=headers) as answer:
        await answer.read()
        return answer.status


async def stored(product: Product) -> float:
    return by_label(parsed(await scrape(product.url)), "biasmeter_capture_total", "outcome").get("stored", 0)


async def test_an_embedded_store_that_cannot_start_on_a_full_disk_stops_no_known_key(
    upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    with (
        mounted(tmp_path / "data", f"size={DISK_BYTES}"),
        installation(tmp_path, settings(upstream.url, workers=1), None) as product,
    ):
        product.run("migrate", "-c", str(product.config), timeout=STARTUP)
        _, known = product.create_key()

        async def is_known() -> bool:
            return await status(product, known) == 200

        with product.running("up"):
            await eventually(is_known, STARTUP)
            await product.shipped()
        await asyncio.to_thread(wait_until_stopped, product.data_dir, 60)
        ballast = fill(product.data_dir)
        with product.running("up") as running:
            assert "No space left" in running.said()
            assert {await status(product, known) for _ in range(4)} == {200}
            assert await status(product, "unknown") in {401, 503}
            ballast.unlink()
            before = await stored(product)
            assert {await status(product, known) for _ in range(4)} == {200}
            await eventually(lambda: product.spooled() == 0, patience=STARTUP)
            assert await stored(product) == before + 4
            assert "Traceback" not in running.said()
