"""What is done is let go at once: a request that went wrong, by the worker; a batch in the store, by the shipper.

Neither waits for a collection, which comes late.
"""

import json
import os
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from support.servers.ports import free_port
from support.servers.process_memory import resident
from support.servers.product import Product, Running, installation, settings
from support.stores.databases import Databases
from support.waiting import eventually

PROMPT = b"x" * 1_000_000
#: MiB. glibc keeps free memory at the end of its heap, up to twice the largest buffer that it has given back.
_KEPT = 12


@pytest.fixture(scope="module")
def served(
    tmp_path_factory: pytest.TempPathFactory, databases: Databases, answering_url: str
) -> Iterator[tuple[Product, Running]]:
    """A gateway of one worker that keeps copies of `gpt` only; nobody listens behind `refused`."""
    with databases.fresh() as database_url:
        made = settings(answering_url, workers=1, retries=0)
        made["deployments"].append({"name": "refused", "base_url": f"http://127.0.0.1:{free_port()}/v1"})
        made["routes"] = [
            {"model": "refused", "deployments": ["refused"]},
            {"model": "gpt", "deployments": ["alias"], "capture": "full"},
            {"model": "*", "deployments": ["relayed"]},
        ]
        with (
            installation(tmp_path_factory.mktemp("served"), made, database_url) as product,
            product.running("gateway") as running,
        ):
            yield product, running


@asynccontextmanager
async def asked(product: Product, model: str) -> AsyncIterator[aiohttp.ClientResponse]:
    """Ask with a long prompt, over a connection that takes little at a time."""

    def narrow(info: aiohttp.AddrInfoType) -> socket.socket:
        made = socket.socket(*info[:3])
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        return made

    body = json.dumps({"model": model, "stream": True, "messages": [{"content": PROMPT.decode()}]}).encode()
    connector = aiohttp.TCPConnector(socket_factory=narrow)
    async with (
        aiohttp.ClientSession(connector=connector, read_bufsize=8192) as client,
        client.post(f"{product.url}/v1/chat/completions", data=body) as answer,
    ):
        yield answer


async def refused(product: Product) -> None:
    async with asked(product, "refused") as answer:
        assert answer.status in {502, 503}


async def left_in_mid_answer(product: Product) -> None:
    """Leave while the gateway waits for us to take more."""
    async with asked(product, "large-event:4000000") as answer:
        assert answer.status == 200
        await answer.content.readany()
        assert answer.connection is not None
        assert answer.connection.transport is not None
        _, port = answer.connection.transport.get_extra_info("sockname")
        await eventually(lambda: waiting_to_be_taken(port) > 65_536)
        answer.close()


def waiting_to_be_taken(port: int) -> int:
    """Bytes that were written to the client at a port of this host, and that it has not taken."""
    sockets = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(int(queues.split(":")[0], 16) for _, _, peer, _, queues, *_ in sockets if peer.endswith(f":{port:04X}"))


@pytest.mark.parametrize("going_wrong", [refused, left_in_mid_answer])
async def test_the_prompt_of_a_request_that_went_wrong_is_let_go(served, going_wrong, thorough: bool) -> None:
    product, running = served
    (pid,) = running.pids("gateway.processes.worker")
    for _ in range(10):
        await going_wrong(product)
    held = resident(pid)
    for _ in range(60 if thorough else 30):
        await going_wrong(product)
    assert resident(pid) - held < 15 * len(PROMPT) / 2**20


async def test_the_shipper_lets_go_of_a_batch_that_it_has_stored(served: tuple[Product, Running]) -> None:
    product, running = served
    (shipper,) = running.pids("gateway.processes.ship")
    await _shipped_at_once(product, shipper, requests=20, size=1 << 10)
    before = resident(shipper)
    for _ in range(3):
        await _shipped_at_once(product, shipper, requests=40, size=200 << 10)
    await eventually(lambda: resident(shipper) < before + _KEPT, patience=5)


async def _shipped_at_once(product: Product, shipper: int, *, requests: int, size: int) -> None:
    """Make requests while the shipper is stopped, so that it finds all of them in the spool."""
    payload = {"model": "gpt", "messages": [{"role": "user", "content": "a long question " * (size // 16)}]}
    os.kill(shipper, signal.SIGSTOP)
    async with aiohttp.ClientSession() as client:
        for _ in range(requests):
            async with client.post(product.url + "/v1/chat/completions", json=payload) as answer:
                await answer.read()
    os.kill(shipper, signal.SIGCONT)
    await product.shipped()
