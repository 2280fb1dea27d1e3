"""Four gateways with data folders of their own on one store: limits over all of them, and one that is cut off."""

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
from support.servers.product import Product, installation, settings
from support.stores.postgres_proxy import StoreLine, store_line
from support.upstreams.scripted_upstream import upstream_process
from support.upstreams.upstream_payloads import usage
from support.waiting import eventually

from gateway import snapshot

CHAT = "/v1/chat/completions"
HOSTS = 4
LIMIT = 80
#: A budget in requests, the price of a million tokens of an answer, and what a request costs, in USD.
BUDGET = 20
PRICE = 1000.0
COST = usage()["completion_tokens"] * PRICE / 1e6


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
                async with session.post(product.url + CHAT, data=b"{") as answer:  # no limit counts it
                    statuses.add(answer.status)
            return statuses == {400} and await shares(products[0], key_id) == [LIMIT // HOSTS] * HOSTS

        await eventually(ready)
    await asyncio.sleep(1.0)  # a share that the store has reaches the workers half a second later


async def test_limits_and_budgets_hold_over_four_hosts_and_one_that_is_cut_off_loses_nothing(
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
            own = settings(upstream_url, workers=1)
            own["deployments"][0]["price"] = {"input": 0.0, "output": PRICE}
            products.append(stack.enter_context(installation(folder, own, line.url)))
        running = await asyncio.gather(*(asyncio.to_thread(product.start, "gateway") for product in products))
        await all_hosts_use_a_limit(products, ids)
        await one_host_gets_what_the_others_do_not_need(products, ids)
        await a_host_that_is_cut_off_keeps_its_share(products, lines[-1], ids)
        await a_budget_is_exceeded_by_no_more_than_is_said(products, lines[-1], ids)
        for product in products:
            await product.shipped()
        rows = await products[0].rows("SELECT id FROM exchanges WHERE status = 200")
        assert Counter(str(row["id"]) for row in rows) == ids
        for one in running:
            one.stop()


async def use_it_all(products: list[Product], secret: str, limit: int, ids: Counter[str]) -> Counter[int]:
    """Ask hosts until they have answered so many requests, in less than a minute, and once more."""
    counted: Counter[int] = Counter()

    async def ask() -> None:
        for found in await asyncio.gather(*(asked(product, secret, limit, ids) for product in products)):
            counted.update(found)

    async def is_used() -> bool:  # shares move while hosts are asked one earlier than the other
        await ask()
        return counted[200] >= limit

    await eventually(is_used)
    await ask()
    return counted


async def all_hosts_use_a_limit(products: list[Product], ids: Counter[str]) -> None:
    key_id, secret = await asyncio.to_thread(products[0].create_key, "--rpm", str(LIMIT))
    await known(products, key_id, secret)
    counted = await use_it_all(products, secret, LIMIT, ids)
    assert counted[200] == LIMIT
    assert counted.keys() == {200, 429}


async def one_host_gets_what_the_others_do_not_need(products: list[Product], ids: Counter[str]) -> None:
    """Asked through one host, a key gets most of its limit there: the others give back what they do not use."""
    key_id, secret = await asyncio.to_thread(products[0].create_key, "--rpm", str(LIMIT))
    await known(products, key_id, secret)
    counted = await use_it_all(products[:1], secret, LIMIT * 3 // 4, ids)
    assert counted[200] + (await asked(products[1], secret, LIMIT, ids))[200] <= LIMIT


async def a_host_that_is_cut_off_keeps_its_share(products: list[Product], line: StoreLine, ids: Counter[str]) -> None:
    """Its copies wait until it returns."""
    key_id, secret = await asyncio.to_thread(products[0].create_key, "--rpm", str(LIMIT))
    await known(products, key_id, secret)
    await line.cut()
    counted = await use_it_all(products, secret, LIMIT, ids)
    assert counted[200] == LIMIT
    assert products[-1].spooled() > 0
    await line.join()
    await products[-1].shipped()


async def a_budget_is_exceeded_by_no_more_than_is_said(
    products: list[Product], line: StoreLine, ids: Counter[str]
) -> None:
    """Each host spends at most what it last knew to be left; what all have spent is in the store, once."""
    key_id, secret = await asyncio.to_thread(products[0].create_key, "--budget", str(BUDGET * COST))

    async def spend(product: Product, most: int) -> int:
        """Spend by requests one after the other, until the budget ends; return how many were answered."""
        for number in range(most):
            if (await asked(product, secret, 1, ids))[200] == 0:
                return number
        return most

    async def spent_in_store() -> int:
        found = await products[0].rows("SELECT sum(nano_usd) AS spent FROM key_spending WHERE key_id = $1", key_id)
        return round(int(found[0]["spent"] or 0) / (COST * 1e9))

    async def is_known() -> bool:
        async with aiohttp.ClientSession(headers={"authorization": f"Bearer {secret}"}) as session:
            statuses = set()
            for product in products:
                async with session.get(product.url + "/v1/models") as answer:
                    statuses.add(answer.status)
            return statuses == {200}

    def spent_elsewhere(product: Product) -> int:
        read = snapshot.read(product.data_dir / "gateway" / "keys.json").spent_elsewhere
        return round(read.get(key_id, 0) / (COST * 1e9))

    await eventually(is_known)
    first = BUDGET // 2
    assert await spend(products[0], first) == first
    await eventually(lambda: all(spent_elsewhere(product) == first for product in products[1:]))
    await asyncio.sleep(1.0)  # what the snapshot has reaches the workers half a second later
    await line.cut()
    left = BUDGET - first
    counts = await asyncio.gather(*(spend(product, 2 * BUDGET) for product in products))
    assert counts[-1] == left, "a host that is cut off spends what it last knew to be left, and no more"
    assert left <= sum(counts) <= HOSTS * left
    assert sum(counts[:-1]) >= left
    await line.join()

    async def all_is_stored() -> bool:
        return await spent_in_store() == first + sum(counts)

    await eventually(all_is_stored)
    assert [await spend(product, 1) for product in products] == [0] * HOSTS
