"""Behaviours 39 and 40: a gateway that is stopped, and one whose store is gone. Each test runs a gateway of its own."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import aiohttp
import pytest
from support.clients.scrape import by_label, parsed, scrape
from support.clients.sdk_clients import Sdk
from support.servers.product import Product, installation, settings
from support.upstreams.scripted_upstream import ScriptedUpstream
from support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
def product(upstream: ScriptedUpstream, tmp_path: Path, migrated_url: str) -> Iterator[Product]:
    with installation(tmp_path, settings(upstream.url), migrated_url) as made:
        yield made


async def test_39_a_gateway_told_to_stop_says_so_finishes_its_streams_and_loses_no_row(
    unpointed_sdk: Sdk, product: Product, upstream: ScriptedUpstream
) -> None:
    sdk = unpointed_sdk.to(product.url + "/v1")
    running = product.start("gateway")
    streams = [asyncio.create_task(sdk.chat("hang-mid-stream", stream=True)) for _ in range(8)]
    await upstream.until(lambda up: up.hanging == 8)
    running.process.terminate()

    async def says_so() -> bool:
        async with aiohttp.ClientSession() as client, client.get(product.url + "/readyz") as answer:
            return answer.status == 503 and (await answer.json())["status"] == "draining"

    await eventually(says_so)
    late = await sdk.chat("ordinary")  # from somebody whose balancer has not looked yet
    upstream.release()
    heard = [late, *await asyncio.gather(*streams)]
    assert {one.failure for one in heard} == {None}
    assert {one.text for one in heard[1:]} == {"Level ground, as far as we see."}
    assert await asyncio.to_thread(running.process.wait, 10) == 0
    rows = await product.rows("SELECT id, outcome FROM exchanges")
    assert {row["id"] for row in rows} == {UUID(one.exchange_id) for one in heard}
    assert {row["outcome"] for row in rows} == {"complete"}


async def test_40_with_the_store_gone_and_the_spool_full_every_answer_comes_and_drops_are_counted(
    unpointed_sdk: Sdk, product: Product
) -> None:
    sdk = unpointed_sdk.to(product.url + "/v1")
    product.settings["store"]["url"] = "postgresql://nobody@127.0.0.1:1/nothing"
    product.settings["gateway"] |= {"auth": "open", "spool": {"max_bytes": "10KiB"}}
    product.write()
    asked = 0

    async def dropped() -> bool:
        nonlocal asked
        heard = await asyncio.gather(*(sdk.chat("gpt", stream=bool(number % 2)) for number in range(12)))
        assert {one.failure for one in heard} == {None}
        asked += len(heard)
        return "dropped_spool_full" in await outcomes(product)

    with product.running("gateway"):
        await eventually(dropped)
        assert sum((await outcomes(product)).values()) == asked


async def outcomes(product: Product) -> dict[str, float]:
    return by_label(parsed(await scrape(product.url)), "biasmeter_capture_total", "outcome")
