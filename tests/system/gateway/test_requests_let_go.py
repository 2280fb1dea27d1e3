"""A request that went wrong is let go at once; its prompt does not wait for a collection, which comes late."""

import json
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from support.servers.ports import free_port
from support.servers.process_memory import resident
from support.servers.product import Product, installation, settings
from support.stores.databases import Databases
from support.upstreams.scripted_upstream import upstream_process
from support.waiting import eventually

PROMPT = b"x" * 1_000_000


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory, databases: Databases) -> Iterator[tuple[Product, int]]:
    """A gateway and its one worker; nobody listens behind `refused`."""
    with databases.fresh() as database_url, upstream_process() as (url, _):
        made = settings(url, workers=1, retries=0)
        made["deployments"].append({"name": "refused", "base_url": f"http://127.0.0.1:{free_port()}/v1"})
        made["routes"] = [{"model": "refused", "deployments": ["refused"]}, {"model": "*", "deployments": ["relayed"]}]
        with (
            installation(tmp_path_factory.mktemp("worker"), made, database_url) as product,
            product.running("gateway") as running,
        ):
            yield product, running.pids("gateway.worker")[0]


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
async def test_the_prompt_of_a_request_that_went_wrong_is_let_go(worker, going_wrong, thorough: bool) -> None:
    times = 60 if thorough else 30
    product, pid = worker
    for _ in range(10):
        await going_wrong(product)
    held = resident(pid)
    for _ in range(times):
        await going_wrong(product)
    assert resident(pid) - held < times * len(PROMPT) / 2**20 / 4
