"""What is kept of an exchange: sampling, capture modes, the bound on a copy, and counts that add up."""

from typing import Any
from uuid import UUID

import aiohttp
from prometheus_client.parser import text_string_to_metric_families
from support.servers.product import Product
from support.waiting import eventually

from auditor.domain.sampling import sampled

CHAT = "/v1/chat/completions"


async def ask(
    product: Product, model: str, times: int = 1, stream: bool = False, content: str = "canary-7f3a"
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


def outcomes(found: dict[tuple[tuple[str, str], ...], float]) -> dict[str, float]:
    return {dict(labels)["outcome"]: value for labels, value in found.items()}


def route(product: Product, **changes: Any) -> None:
    product.settings["routes"][0] |= changes
    product.write()


async def test_hashed_is_the_default_and_keeps_no_content(product: Product) -> None:
    del product.settings["routes"][0]["capture"]
    product.write()
    with product.running("gateway"):
        await ask(product, "gpt")
        await ask(product, "gpt", stream=True)
        await product.shipped()
    rows = await product.rows("SELECT * FROM exchanges")
    assert [row["capture"] for row in rows] == ["hashed", "hashed"]
    assert all(len(row["request_hash"]) == len(row["response_hash"]) == 32 for row in rows)
    assert await product.rows("SELECT 1 FROM exchange_content") == []
    # Neither the store nor the disk holds a word of it.
    assert "canary" not in str([dict(row) for row in rows])
    gateway = product.data_dir / "gateway"
    assert not any(b"canary" in path.read_bytes() for path in gateway.rglob("*") if path.is_file())


async def test_off_keeps_nothing_and_is_counted(product: Product) -> None:
    route(product, capture="off")
    with product.running("gateway"):
        await ask(product, "gpt", times=3)
        await product.shipped()
        assert outcomes(await series(product, "biasmeter_capture_total")) == {"capture_off": 3}
    assert await product.rows("SELECT 1 FROM exchanges") == []


async def test_sampling_is_deterministic_and_counts_add_up(product: Product) -> None:
    route(product, sample=0.25)
    with product.running("gateway"):
        ids = await ask(product, "gpt", times=60)
        await product.shipped()
        counted = outcomes(await series(product, "biasmeter_capture_total"))
        requests = await series(product, "biasmeter_requests_total")
    rows = await product.rows("SELECT id, inclusion FROM exchanges")
    expected = {each for each in ids if sampled(0, UUID(each).bytes, 0.25)}
    assert {str(row["id"]) for row in rows} == expected
    assert {row["inclusion"] for row in rows} <= {0.25}
    assert counted.get("stored", 0) == len(expected)
    assert sum(counted.values()) == sum(requests.values()) == 60


async def test_the_copy_of_a_long_answer_is_bounded_and_says_so(product: Product) -> None:
    product.settings["gateway"]["capture_limit"] = "4KiB"
    product.write()
    with product.running("gateway"):
        await ask(product, "large-event:50000", stream=True)
        await product.shipped()
    (row,) = await product.rows("SELECT * FROM exchanges JOIN exchange_content USING (id)")
    assert row["truncated"] is True
    assert len(row["response"]) == 4096
    assert row["response_bytes"] > 50000
    assert (row["outcome"], row["finish_reason"]) == ("complete", "stop")


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


async def test_every_end_is_counted_once(product: Product) -> None:
    with product.running("gateway"):
        for model in ("gpt", "bad-request", "status:503", "close-at-once", "in-band-error", "ended-early"):
            await ask(product, model, stream=True)
        async with aiohttp.ClientSession() as client:
            for payload in ({"model": "gpt", "stream": 1}, [], {"messages": []}):
                async with client.post(product.url + CHAT, json=payload) as answer:
                    assert answer.status == 400
        await product.shipped()
        counted = outcomes(await series(product, "biasmeter_capture_total"))
        errors = await series(product, "biasmeter_upstream_errors_total")
    rows = await product.rows("SELECT model, outcome, error_type FROM exchanges ORDER BY id")
    assert counted == {"stored": 6}
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
