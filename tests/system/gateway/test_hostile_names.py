"""Names that callers choose, thousands of them, long and odd: no series, no file and no memory is made of them."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

import aiohttp
import pytest
from support.clients.scrape import parsed, scrape
from support.servers.process_memory import resident
from support.servers.product import Product, Running, installation, settings
from support.stores.databases import Databases
from yarl import URL

CHAT = "/v1/chat/completions"
CANARY = "canary9f27"
#: What breaks text formats, labels, paths, patterns and terminals.
ODD = ('"} 1', "a\nb", "\\", "{{.}}", "../..", "%00", "\x1b[31m", "é水🌍", "' OR 1=1", "${HOME}")
#: As much of a name as a request line or a header field may carry.
LENGTH = 7500


@pytest.fixture(scope="module")
def named(
    tmp_path_factory: pytest.TempPathFactory, databases: Databases, answering_url: str
) -> Iterator[tuple[Product, Running, str]]:
    """A gateway of one worker that knows one key and one tag, and takes any model without keeping its text."""
    with databases.fresh() as database_url:
        made = settings(answering_url, tags=["tenant"], workers=1)
        made["routes"] = [{"model": "*", "deployments": ["relayed"]}]
        with installation(tmp_path_factory.mktemp("named"), made, database_url) as product:
            _, key = product.create_key("--allow", "pin,origin")
            with product.running("gateway") as running:
                yield product, running, key


def name(number: int) -> str:
    return f"{CANARY}-{number}-{ODD[number % len(ODD)]}-".ljust(LENGTH, "x")


def header(number: int) -> str:
    """What a header can carry of a name."""
    return "".join(char for char in name(number) if " " <= char <= "~")


def requests(url: str, key: str, number: int) -> Iterator[tuple[str, URL | str, dict[str, Any]]]:
    """Give method, URL and options of requests that choose anew everything that a caller may choose."""
    mine = {"authorization": f"Bearer {key}"}
    body = {"model": name(number), "user": name(number), "messages": [{"role": "user", "content": name(number)}]}
    chosen = {
        "x-request-id": f"{CANARY}/{number}",
        "user-agent": header(number),
        "traceparent": f"00-{number + 1:032x}-{number + 1:016x}-01",
        "x-biasmeter-tags": f"tenant={header(number)[:100]}",
        "x-biasmeter-ref": f"{CANARY}/{number}",
        "x-biasmeter-origin": "probe",
        f"x-{CANARY}-{number}": header(number),
    }
    yield "POST", url + CHAT, {"json": body, "headers": mine | chosen}
    yield "POST", url + CHAT, {"json": body, "headers": {"authorization": f"Bearer {header(number)}"}}
    yield "POST", url + CHAT, {"json": body, "headers": mine | {"x-biasmeter-deployment": header(number)}}
    yield "POST", url + CHAT, {"json": body, "headers": mine | {"x-biasmeter-tags": f"{CANARY}{number}=1"}}
    yield "GET", URL(url).with_path(f"/v1/{name(number)}"[:LENGTH]), {"headers": mine}
    yield "GET", URL(url + "/v1/models") / f"{CANARY}-{number}", {"headers": mine, "params": {header(number): "1"}}
    yield f"{CANARY}{number}".upper(), url + CHAT, {"headers": mine}


async def ask(url: str, key: str, numbers: range, kinds: int = 7) -> Counter[tuple[int, int]]:
    """Let eight callers ask; give the statuses, each with the place of its request in the round."""
    statuses: Counter[tuple[int, int]] = Counter()

    async def caller(client: aiohttp.ClientSession, mine: range) -> None:
        for number in mine:
            for place, (method, to, options) in enumerate(islice(requests(url, key, number), kinds)):
                async with client.request(method, to, **options) as answer:
                    await answer.read()
                    statuses[place, answer.status] += 1

    async with aiohttp.ClientSession() as client:
        await asyncio.gather(*(caller(client, numbers[first::8]) for first in range(8)))
    return statuses


async def test_no_series_and_no_file_is_made_of_a_name(named: tuple[Product, Running, str], thorough: bool) -> None:
    rounds = 300 if thorough else 50
    product, running, key = named
    await ask(product.url, key, range(20))
    await product.shipped()
    before = await scrape(product.url)
    statuses = await ask(product.url, key, range(20, 20 + rounds))
    await product.shipped()
    after = await scrape(product.url)
    # An unknown tag is no tag; of methods, aiohttp knows all there are.
    assert statuses == dict.fromkeys(enumerate([200, 401, 400, 200, 404, 404, 400]), rounds)
    assert set(parsed(after)) == set(parsed(before))
    assert len(after) < 1.1 * len(before)
    shown = [after, running.said(), *_kept(product)]
    assert not any(CANARY in text.lower() for text in shown)


async def test_no_memory_is_kept_of_a_name(named: tuple[Product, Running, str], thorough: bool) -> None:
    product, running, key = named
    (worker,) = running.pids("gateway.processes.worker")
    # A connection with an unknown method is left to the collector, which comes late: that is no name kept.
    await ask(product.url, key, range(1000, 1000 + (300 if thorough else 120)), kinds=6)
    held = resident(worker)
    rounds = 1000 if thorough else 300
    await ask(product.url, key, range(2000, 2000 + rounds), kinds=6)
    # Less than half of what it would be, had one name of each round been kept.
    assert resident(worker) - held < rounds * LENGTH / 2**20 / 2


def _kept(product: Product) -> list[str]:
    """What the gateway's files hold, but for the spool, where copies belong."""
    gateway = product.data_dir / "gateway"
    files = [path for path in gateway.rglob("*") if path.is_file() and "spool" not in path.parts]
    assert files
    return [path.read_bytes().decode("latin-1") for path in files]
