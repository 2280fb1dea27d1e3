"""SIGTERM, Ctrl-C, a parent that dies: what is in flight ends well, what is captured is kept, all is over in time."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from support.servers.product import Product, marked_pids
from support.upstreams.scripted_upstream import ScriptedUpstream
from support.waiting import eventually

CHAT = "/v1/chat/completions"


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(headers={"connection": "close"}) as session:
        yield session


def limit(product: Product, **gateway: Any) -> None:
    product.settings["gateway"] |= gateway
    product.write()


async def ready(client: aiohttp.ClientSession, product: Product) -> int:
    async with client.get(product.url + "/readyz") as answer:
        return answer.status


async def test_load_balancers_have_time_to_notice_and_what_they_still_send_is_served(
    product: Product, client: aiohttp.ClientSession
) -> None:
    limit(product, drain_notice="3s", workers=1)
    running = product.start("gateway")
    running.process.terminate()

    async def turned() -> bool:
        return await ready(client, product) == 503

    await eventually(turned, patience=0.5)
    async with client.post(product.url + CHAT, json={"model": "gpt", "messages": []}) as answer:
        assert answer.status == 200
    assert await ready(client, product) == 503
    assert await asyncio.to_thread(running.process.wait, 30) == 0
    assert len(await product.rows("SELECT 1 FROM exchanges WHERE outcome = 'complete'")) == 1


async def test_ctrl_c_waits_for_what_is_in_flight_and_for_no_load_balancer(
    product: Product, upstream: ScriptedUpstream, client: aiohttp.ClientSession
) -> None:
    limit(product, drain="120s", drain_notice="60s")
    running = product.start("gateway")
    payload = {"model": "hang-mid-stream", "stream": True, "messages": []}
    async with client.post(product.url + CHAT, json=payload) as streaming:
        await upstream.until(lambda up: up.hanging == 1)
        running.process.send_signal(signal.SIGINT)
        await eventually(lambda: len(running.pids("gateway.processes.worker")) == 1)
        upstream.release()
        assert (await streaming.read()).endswith(b"data: [DONE]\n\n")
    assert await asyncio.to_thread(running.process.wait, 30) == 0


async def test_what_is_not_done_at_the_limit_is_ended_and_kept(
    product: Product, upstream: ScriptedUpstream, client: aiohttp.ClientSession
) -> None:
    limit(product, drain="1s", workers=1)
    running = product.start("gateway")
    asked = [
        asyncio.create_task(read(client, product, model, stream=stream))
        for model, stream in (("hang-mid-stream", True), ("silence", True), ("silence", False))
    ]
    await upstream.until(lambda up: up.hanging == 3)
    running.process.terminate()
    assert await asyncio.to_thread(running.process.wait, 30) == 0
    assert "Traceback" not in running.said()
    assert marked_pids(product.mark) == []
    broken, *unanswered = await asyncio.gather(*asked)
    assert broken[0] == 200
    assert b"gateway_stopped" in broken[1]
    assert broken[1].endswith(b"data: [DONE]\n\n")
    for status, body in unanswered:
        assert (status, json.loads(body)["error"]["code"]) == (503, "gateway_stopped")
    rows = await product.rows("SELECT status, outcome, error_type FROM exchanges ORDER BY status")
    assert [tuple(row) for row in rows] == [
        (200, "cut", "gateway_stopped"),
        (503, "failed", "gateway_stopped"),
        (503, "failed", "gateway_stopped"),
    ]


async def read(client: aiohttp.ClientSession, product: Product, model: str, *, stream: bool) -> tuple[int, bytes]:
    """Read an answer to its end: its status and body."""
    payload = {"model": model, "stream": stream, "messages": []}
    async with client.post(product.url + CHAT, json=payload) as answer:
        return answer.status, await answer.read()


@pytest.mark.slow
async def test_the_workers_of_a_parent_that_died_let_go_of_the_address_at_once(product: Product) -> None:
    limit(product, drain="120s", drain_notice="60s")
    running = product.start("gateway")
    os.kill(running.process.pid, signal.SIGKILL)
    running.process.wait()
    await eventually(lambda: not marked_pids(product.mark))
    limit(product, drain_notice="0s", workers=1)
    with product.running("gateway"):
        pass
