"""Four gateways with data folders of their own on one store: limits over all of them, and one that is cut off."""

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
from cut_off import StoreLine, store_line
from product import Product, eventually, installation, settings
from upstream import upstream_process

CHAT = "/v1/chat/completions"
HOSTS = 4
LIMIT = 80


async def asked(product: Product, secret: str, requests: int, ids: Counter[str]) -> Counter[int]:
    """Send requests at once, and count the answers by status; the exchanges of those answered are kept in ``ids``."""
    async with aiohttp.ClientSession(headers={"authorization": f"Bearer {secret}"}) as session:

        async def one() -> int:
            async with session.post(product.url + CHAT, json={"model": "gpt"}) as answer:
                await answer.read()
                if answer.status == 200:
                    ids[answer.headers["x-biasmeter-exchange-id"]] += 1
                return answer.status

        return Counter(await asyncio.gather(*(one() for _ in range(requests))))


async def shares(product: Product, key_id: str) -> list[int]:
    found = await product.rows("SELECT requests FROM key_shares WHERE key_id = $1 ORDER BY requests", key_id)
    return [row["requests"] for row in found]


async def known(products: list[Product], key_id: str, secret: str) -> None:
    """Wait until each host has its equal share and serves the key."""
    async with aiohttp.ClientSession(headers={"authorization": f"Bearer {secret}"}) as session:

        async def ready() -> bool:
            statuses = set()
            for product in products:
                async with session.get(product.url + "/v1/models") as answer:
                    statuses.add(answer.status)
            return statuses == {200} and await shares(products[0], key_id) == [LIMIT // HOSTS] * HOSTS

        await eventually(ready)
    await asyncio.sleep(1.0)  # a share that the store has reaches the workers half a second later


async def test_limits_hold_over_four_hosts_and_one_that_is_cut_off_loses_nothing(
    tmp_path: Path, migrated_url: str
) -> None:
    ids: Counter[str] = Counter()
    async with AsyncExitStack() as stack:
        upstream_url, _ = stack.enter_context(upstream_process())
        lines: list[StoreLine] = [await stack.enter_async_context(store_line(migrated_url)) for _ in range(HOSTS)]
        products = []
        for number, line in enumerate(lines):
            folder = tmp_path / str(number)
            folder.mkdir()
            products.append(stack.enter_context(installation(folder, settings(upstream_url, workers=1), line.url)))
        running = await asyncio.gather(*(asyncio.to_thread(product.start, "gateway") for product in products))
        *near, far = products

        key_id, secret = await asyncio.to_thread(near[0].create_key, "--rpm", str(LIMIT))
        await known(products, key_id, secret)
        counted: Counter[int] = Counter()
        for _ in range(3):  # in less than a minute
            for found in await asyncio.gather(*(asked(product, secret, LIMIT, ids) for product in products)):
                counted += found
        assert counted[200] == LIMIT
        assert counted.keys() == {200, 429}

        # Asked through one host, a key gets most of its limit there: the others give back what they do not use.
        key_id, secret = await asyncio.to_thread(near[0].create_key, "--rpm", str(LIMIT))
        await known(products, key_id, secret)
        first = (await asked(near[0], secret, LIMIT, ids))[200]
        assert first == LIMIT // HOSTS

        async def served() -> bool:
            nonlocal first
            first += (await asked(near[0], secret, LIMIT, ids))[200]
            return first >= LIMIT * 3 // 4

        await eventually(served)
        assert first + (await asked(near[1], secret, LIMIT, ids))[200] <= LIMIT

        # A host that is cut off keeps its share, and its copies wait.
        key_id, secret = await asyncio.to_thread(near[0].create_key, "--rpm", str(LIMIT))
        await known(products, key_id, secret)
        await lines[-1].cut()
        counted = Counter()
        for _ in range(2):
            for found in await asyncio.gather(*(asked(product, secret, LIMIT, ids) for product in products)):
                counted += found
            await asyncio.sleep(2.5)  # the hosts renew their shares
        assert LIMIT - LIMIT // HOSTS <= counted[200] <= LIMIT
        assert far.spooled() > 0
        await lines[-1].join()
        for product in products:
            await product.shipped()
        rows = await near[0].rows("SELECT id FROM exchanges WHERE status = 200")
        assert Counter(str(row["id"]) for row in rows) == ids
        for one in running:
            one.stop()
