"""How long Prometheus waits for a fleet's series, and how many it then has: 200 deployments under 21 conditions.

Run: make measurements PYTEST_ARGS="tests/bench/test_scrape_time.py -s"
"""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from support.documents.deployed_rules import found_or_skip
from support.documents.fleet_estimates import SIZE, fleet_rows
from support.servers.product import Product, installation, settings
from support.servers.prometheus import prometheus_server
from support.stores.databases import Databases
from support.upstreams.scripted_upstream import upstream_process

from auditor.store.engine import make_engine, transaction
from auditor.store.estimates import replace_estimates

LIMIT_S = 0.3
SCRAPES = 20


def fleet_settings(upstream: str) -> dict[str, Any]:
    made = settings(upstream)
    names = [f"deployment-{number:03}" for number in range(SIZE)]
    made["deployments"] = [{"name": name, "base_url": upstream, "model": "gpt"} for name in names]
    made["routes"] = [{"model": name, "deployments": [name], "capture": "full"} for name in names]
    return made


async def fill(url: str) -> None:
    """Store the fleet's snapshot; it is of a later time, so the product's own does not take its place."""
    later = datetime.now(UTC) + timedelta(hours=2)
    engine = make_engine(url)
    async with transaction(engine) as connection:
        assert await replace_estimates(connection, fleet_rows(later), later)
    await engine.dispose()


async def ask_everyone(product: Product, key: str) -> None:
    """Ask every deployment for a stream as an application does, and once as a probe."""

    async def ask(client: aiohttp.ClientSession, name: str, headers: Mapping[str, str], *, stream: bool) -> None:
        body = {"model": name, "stream": stream, "messages": [{"role": "user", "content": "Good morning."}]}
        async with client.post(f"{product.url}/v1/chat/completions", json=body, headers=headers) as answer:
            await answer.read()
            assert answer.status == 200

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=8)) as client:
        routes = [route["model"] for route in product.settings["routes"]]
        own = {"authorization": f"Bearer {key}"}
        await asyncio.gather(*(ask(client, name, own, stream=True) for name in routes))
        probe = {**own, "x-biasmeter-origin": "probe"}
        await asyncio.gather(*(ask(client, name, probe, stream=False) for name in routes))


@pytest.mark.bench
def test_a_scrape_takes_less_than_300_ms(tmp_path: Path, databases: Databases) -> None:
    program = found_or_skip("prometheus")
    with (
        databases.fresh() as url,
        upstream_process() as (upstream, _),
        installation(tmp_path, fleet_settings(upstream), url) as product,
    ):
        asyncio.run(fill(url))
        _, key = product.create_key("--allow", "pin,origin")
        targets = {
            "biasmeter-gateway": product.url.removeprefix("http://"),
            "biasmeter-auditor": product.api.removeprefix("http://"),
        }
        with (
            product.running("gateway"),
            product.running("auditor", until=r"listening on"),
            prometheus_server(program, tmp_path, targets) as prometheus,
        ):
            asyncio.run(ask_everyone(product, key))
            counted = f"count_over_time(scrape_samples_scraped{{job='biasmeter-auditor'}}[5m]) > {SCRAPES}"
            prometheus.until(counted, patience=120)
            for sample in prometheus.query("quantile_over_time(0.5, scrape_duration_seconds[20s])"):
                job, taken = sample["metric"]["job"], float(sample["value"][1])
                (size,) = prometheus.query(f'scrape_samples_scraped{{job="{job}"}}')
                (slowest,) = prometheus.query(f'max_over_time(scrape_duration_seconds{{job="{job}"}}[20s])')
                print(
                    f"{job}: {size['value'][1]} series, median of 20 s {taken * 1000:.0f} ms,"
                    f" slowest {float(slowest['value'][1]) * 1000:.0f} ms"
                )
                assert taken < LIMIT_S
            (series,) = prometheus.query('count({__name__=~"biasmeter.+"})')
            (recorded,) = prometheus.query('count({__name__=~"biasmeter:.+"})')
            print(f"series: {series['value'][1]}, of these recorded by rules: {recorded['value'][1]}")
            assert int(series["value"][1]) < 50_000
