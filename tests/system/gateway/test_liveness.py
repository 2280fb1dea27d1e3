"""Probes of an orchestrator are answered while every worker has all it can do."""

import asyncio
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest
from support.clients.load import grown, load
from support.servers.product import Product, installation, settings

#: Seconds for one probe; orchestrators commonly allow 1 to 5, on machines that run no load generator of their own.
_ALLOWED = 2.0


@pytest.fixture
def product(tmp_path: Path, migrated_url: str, answering_url: str) -> Iterator[Product]:
    """In front of an upstream process, so that it is not the test that is short of time."""
    with installation(tmp_path, settings(answering_url), migrated_url) as made:
        yield made


async def test_probes_are_answered_under_full_load(product: Product, thorough: bool) -> None:
    streams, probes = (300, 80) if thorough else (40, 16)
    payload = {"model": "slow-tokens:1", "stream": True, "messages": []}
    url = product.url + "/v1/chat/completions"
    with product.running("gateway"):
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as client:
            opened = await asyncio.gather(*(client.post(url, json=payload) for _ in range(streams)))
            async with load(product.url, connections=64, pause=0) as asked:
                await grown(asked, 200)
                slowest = await asyncio.to_thread(_probe, product.url, probes)
            streamed = await asyncio.gather(*(answer.read() for answer in opened))
    assert slowest < _ALLOWED
    assert asked.failures == []
    assert {body[-14:] for body in streamed} == {b"data: [DONE]\n\n"}


def _probe(url: str, probes: int) -> float:
    """Ask as orchestrators do, each time on a new connection; give the longest that an answer took."""
    slowest = 0.0
    for number in range(probes):
        began = time.monotonic()
        path = ("/healthz", "/readyz")[number % 2]
        with urllib.request.urlopen(url + path, timeout=_ALLOWED) as answer:
            assert answer.status == 200
        slowest = max(slowest, time.monotonic() - began)
        time.sleep(0.05)
    return slowest
