"""Limits of keys on a running gateway: two workers share them, and two gateways share a budget."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import aiohttp
import pytest
from multidict import CIMultiDictProxy
from support.clients.each_worker import ask_each_worker
from support.servers.product import Product, Running, installation, settings
from support.stores.databases import Databases
from support.waiting import eventually

CHAT = "/v1/chat/completions"
#: A token costs a thousandth of a dollar, so that a budget ends within a test.
PRICE = {"input": 1000, "output": 1000}


def priced(upstream_url: str, *, workers: int) -> dict[str, Any]:
    given = settings(upstream_url, retries=0, workers=workers)
    for deployment in given["deployments"]:
        deployment["price"] = PRICE
    return given


@pytest.fixture(scope="module")
def started(
    tmp_path_factory: pytest.TempPathFactory, databases: Databases, answering_url: str
) -> Iterator[tuple[list[Product], Running]]:
    """Two running gateways on one store, each with its own data directory; the first has two workers."""
    with (
        databases.fresh() as url,
        installation(tmp_path_factory.mktemp("one"), priced(answering_url, workers=2), url) as one,
        installation(tmp_path_factory.mktemp("two"), priced(answering_url, workers=1), url) as two,
    ):
        one.create_key()
        with one.running("gateway"), two.running("gateway") as second:
            yield [one, two], second


@pytest.fixture
def hosts(started: tuple[list[Product], Running]) -> list[Product]:
    return started[0]


@pytest.fixture
def second(started: tuple[list[Product], Running]) -> Running:
    return started[1]


class Owner:
    """A key's owner, who opens a connection for each request, so that both workers get some."""

    def __init__(self, product: Product, secret: str) -> None:
        self.product = product
        self.headers = {"authorization": f"Bearer {secret}"}
        self.tokens = 0  # used, as the answers say

    async def ask(self, **body: Any) -> tuple[int, CIMultiDictProxy[str], Any]:
        async with (
            aiohttp.ClientSession(headers=self.headers) as session,
            session.post(self.product.url + CHAT, json={"model": "gpt"} | body) as answer,
        ):
            told = await answer.json()
            self.tokens += told.get("usage", {}).get("total_tokens", 0)
            return answer.status, answer.headers, told

    async def status(self, **body: Any) -> int:
        return (await self.ask(**body))[0]

    async def known(self) -> None:
        """Wait until both workers know the key. No limit counts a request without a body that can be read."""

        async def unreadable(client: aiohttp.ClientSession) -> int:
            async with client.post(self.product.url + CHAT, headers=self.headers, data=b"{") as answer:
                return answer.status

        async def accepted() -> bool:
            async with aiohttp.ClientSession() as client:
                if await unreadable(client) != 400:  # costs less than to look for each worker
                    return False
            return set(await ask_each_worker(self.product, unreadable)) == {400}

        await eventually(accepted)


async def owner_of_key(product: Product, *options: str) -> Owner:
    owner = Owner(product, product.create_key(*options)[1])
    await owner.known()
    return owner


async def test_two_workers_admit_together_what_the_key_may_have_in_a_minute(hosts: list[Product]) -> None:
    owner = await owner_of_key(hosts[0], "--rpm", "20")
    answers = await asyncio.gather(*(owner.ask() for _ in range(60)))
    counted = Counter(status for status, _, _ in answers)
    assert counted.total() == counted[200] + counted[429] == 60
    assert 1 <= counted[200] <= 20  # this host's share
    for headers, told in ((headers, told) for status, headers, told in answers if status == 429):
        assert told["error"]["code"] == "rate_limit_exceeded"
        assert 1 <= int(headers["retry-after"]) <= 61
        assert 1 <= int(headers["x-ratelimit-limit-requests"]) <= 20
        assert headers["x-ratelimit-remaining-requests"] == "0"
        assert "x-should-retry" not in headers


async def test_tokens_of_a_minute_hold_within_one_request(hosts: list[Product]) -> None:
    owner = await owner_of_key(hosts[0], "--tpm", "100")
    statuses = [await owner.status() for _ in range(40)]
    assert statuses == sorted(statuses)
    assert set(statuses) == {200, 429}
    assert owner.tokens < 100 + owner.tokens // statuses.count(200)


@pytest.mark.parametrize("model", ["gpt", "status:500", "reset-at-once"])
async def test_what_was_reserved_and_not_used_is_given_back(hosts: list[Product], model: str) -> None:
    owner = await owner_of_key(hosts[0], "--tpm", "1000")
    assert 429 not in [await owner.status(model=model, max_tokens=900) for _ in range(4)]


async def test_a_budget_is_spent_on_two_hosts_and_listed(hosts: list[Product]) -> None:
    one, two = hosts
    key_id, secret = one.create_key("--budget", "0.2")
    here, there = Owner(one, secret), Owner(two, secret)
    await here.known()
    await there.known()
    while here.tokens < 150:
        assert await here.status() == 200

    async def both_refused() -> bool:
        return [await owner.status() for owner in (there, here)] == [429, 429]

    await eventually(both_refused)
    _, headers, told = await there.ask()
    assert told["error"]["code"] == told["error"]["type"] == "insufficient_quota"
    assert headers["x-should-retry"] == "false"
    assert "retry-after" not in headers

    async def listed() -> bool:
        done = await asyncio.to_thread(one.run, "key", "list", "-c", str(one.config), "--json")
        spent = {line["id"]: line["spent_usd"] for line in json.loads(done.stdout)}
        return bool(spent[key_id] == pytest.approx((here.tokens + there.tokens) / 1000))

    await eventually(listed)


async def test_a_spent_budget_stays_spent_when_the_gateway_starts_again(hosts: list[Product], second: Running) -> None:
    """The last that uses the second host, as it is another process from here on."""
    owner = Owner(hosts[1], hosts[1].create_key("--budget", "0.01")[1])
    await owner.known()
    assert [await owner.status() for _ in range(8)] == [200] + [429] * 7
    assert await asyncio.to_thread(second.stop) == 0
    with hosts[1].running("gateway"):
        assert await owner.status() == 429
