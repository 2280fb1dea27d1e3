"""What is kept of an exchange: sampling, capture modes, the bound on a copy, and counts that add up."""

import json
from collections import Counter
from collections.abc import Iterator
from uuid import UUID

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families
from support.servers.product import Product, installation, settings
from support.stores.databases import Databases
from support.waiting import eventually

from auditor.domain.sampling import sampled

CHAT = "/v1/chat/completions"
CAPTURE_LIMIT = 4096
CANARY = "canary-7f3a"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, databases: Databases, answering_url: str) -> Iterator[Product]:
    """A gateway that runs for the whole module, with a route for each way of capturing and without redaction."""
    with databases.fresh() as database_url:
        made = settings(answering_url, capture_limit=CAPTURE_LIMIT, redact=[])
        routes = {
            "default": {},
            "never": {"capture": "off"},
            "sampled": {"capture": "full", "sample": 0.25},
        }
        made["routes"] += [{"model": model, "deployments": ["alias"]} | how for model, how in routes.items()]
        folder = tmp_path_factory.mktemp("capturing")
        with installation(folder, made, database_url) as product, product.running("gateway"):
            yield product


async def ask(
    product: Product, model: str, times: int = 1, stream: bool = False, content: str = "is it level?"
) -> list[str]:
    ids = []
    payload = {"model": model, "stream": stream, "messages": [{"role": "user", "content": content}]}
    async with aiohttp.ClientSession() as client:
        for _ in range(times):
            async with client.post(product.url + CHAT, json=payload) as answer:
                await answer.read()
                ids.append(answer.headers["x-biasmeter-exchange-id"])
    return ids


async def series(product: Product, name: str) -> dict[tuple[tuple[str, str], ...], float]:
    async with aiohttp.ClientSession() as client, client.get(product.url + "/metrics") as answer:
        text = await answer.text()
    return {
        tuple(sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name
    }


def outcomes(found: dict[tuple[tuple[str, str], ...], float]) -> Counter[str]:
    """How many copies there were by what became of them."""
    return Counter({dict(labels)["outcome"]: int(value) for labels, value in found.items()})


async def captured(product: Product) -> Counter[str]:
    return outcomes(await series(product, "biasmeter_capture_total"))


async def test_hashed_is_the_default_and_keeps_no_content(gateway: Product) -> None:
    await ask(gateway, "default", content=CANARY)
    await ask(gateway, "default", stream=True, content=CANARY)
    await gateway.shipped()
    rows = await gateway.rows("SELECT * FROM exchanges WHERE route = 'default'")
    assert [row["capture"] for row in rows] == ["hashed", "hashed"]
    assert all(len(row["request_hash"]) == len(row["response_hash"]) == 32 for row in rows)
    kept = "SELECT 1 FROM exchange_content JOIN exchanges USING (id) WHERE route = 'default'"
    assert await gateway.rows(kept) == []
    # Neither the store nor the disk holds a word of it.
    assert CANARY not in str([dict(row) for row in rows])
    files = [path for path in (gateway.data_dir / "gateway").rglob("*") if path.is_file()]
    assert not any(CANARY.encode() in path.read_bytes() for path in files)


async def test_off_keeps_nothing_and_is_counted(gateway: Product) -> None:
    before = await captured(gateway)
    await ask(gateway, "never", times=3)
    await gateway.shipped()
    assert await captured(gateway) - before == {"capture_off": 3}
    assert await gateway.rows("SELECT 1 FROM exchanges WHERE route = 'never'") == []


async def test_sampling_is_deterministic_and_counts_add_up(gateway: Product) -> None:
    before, requests_before = await captured(gateway), await series(gateway, "biasmeter_requests_total")
    ids = await ask(gateway, "sampled", times=60)
    await gateway.shipped()
    counted, requests = await captured(gateway) - before, await series(gateway, "biasmeter_requests_total")
    rows = await gateway.rows("SELECT id, inclusion FROM exchanges WHERE route = 'sampled'")
    expected = {each for each in ids if sampled(0, UUID(each).bytes, 0.25)}
    assert {str(row["id"]) for row in rows} == expected
    assert {row["inclusion"] for row in rows} <= {0.25}
    assert counted["stored"] == len(expected)
    assert counted.total() == sum(requests.values()) - sum(requests_before.values()) == 60


async def test_the_copy_of_a_long_answer_is_bounded_and_says_so(gateway: Product) -> None:
    (exchange_id,) = await ask(gateway, "large-event:50000", stream=True)
    await gateway.shipped()
    query = "SELECT * FROM exchanges JOIN exchange_content USING (id) WHERE id = $1"
    (row,) = await gateway.rows(query, UUID(exchange_id))
    assert row["truncated"] is True
    assert len(row["response"]) == CAPTURE_LIMIT
    assert row["response_bytes"] > 50000
    assert (row["outcome"], row["finish_reason"]) == ("complete", "stop")


async def test_redaction_can_be_turned_off(gateway: Product) -> None:
    content = "Please remember mira.canary@example.com, will you?"
    (exchange_id,) = await ask(gateway, "gpt", content=content)
    await gateway.shipped()
    query = "SELECT redacted, request FROM exchanges JOIN exchange_content USING (id) WHERE id = $1"
    (row,) = await gateway.rows(query, UUID(exchange_id))
    assert row["redacted"] is False
    assert json.loads(row["request"])["messages"] == [{"role": "user", "content": content}]


@pytest.mark.slow
async def test_a_full_spool_drops_and_counts_and_serves_on(product: Product) -> None:
    product.settings["gateway"] |= {"spool": {"max_bytes": "10KiB"}, "workers": 1}
    product.settings["store"]["url"] = "postgresql://nobody@127.0.0.1:1/nothing"
    product.settings["gateway"]["auth"] = "open"
    product.write()
    with product.running("gateway"):

        async def dropped() -> bool:
            await ask(product, "gpt")
            return outcomes(await series(product, "biasmeter_capture_total")).get("dropped_spool_full", 0) > 3

        await eventually(dropped)
        counted = outcomes(await series(product, "biasmeter_capture_total"))
        requests = await series(product, "biasmeter_requests_total")
        waiting = await series(product, "biasmeter_spool_bytes")
        assert sum(counted.values()) == sum(requests.values())
        assert {dict(labels)["status"] for labels in requests} == {"200"}
        assert waiting[()] >= 10 * 1024
        assert (await series(product, "biasmeter_spool_oldest_seconds"))[()] > 0
        assert (await series(product, "biasmeter_in_flight"))[("origin", "client"),] == 0


async def test_every_end_is_counted_once(gateway: Product) -> None:
    before = await captured(gateway)
    ids = []
    for model in ("gpt", "bad-request", "status:503", "close-at-once", "in-band-error", "ended-early"):
        ids += await ask(gateway, model, stream=True)
    async with aiohttp.ClientSession() as client:
        for payload in ({"model": "gpt", "stream": 1}, [], {"messages": []}):
            async with client.post(gateway.url + CHAT, json=payload) as answer:
                assert answer.status == 400
    await gateway.shipped()
    assert await captured(gateway) - before == {"stored": 6}
    errors = await series(gateway, "biasmeter_upstream_errors_total")
    query = "SELECT model, outcome, error_type FROM exchanges WHERE id = ANY($1) ORDER BY id"
    rows = await gateway.rows(query, [UUID(each) for each in ids])
    assert [tuple(row) for row in rows] == [
        ("gpt", "complete", None),
        ("bad-request", "failed", "http_4xx"),
        ("status:503", "failed", "http_5xx"),
        ("close-at-once", "failed", "upstream_reset"),
        ("in-band-error", "failed", "in_band"),
        ("ended-early", "cut", "upstream_cut"),
    ]
    told = {dict(labels)["error_type"] for labels in errors}
    assert told == {"http_5xx", "upstream_reset", "in_band", "upstream_cut"}
