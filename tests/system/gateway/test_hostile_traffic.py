"""Clients and deployments that try to stop one worker from serving the others."""

import asyncio
import contextlib
import json
import re
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio
from support.documents.routes import add_route
from support.servers.product import Product, Running, installation, settings
from support.stores.databases import Databases
from support.upstreams.scripted_upstream import ScriptedUpstream, scripted_upstream
from support.upstreams.upstream_answers import event, json_answer, ordinary, sse
from support.upstreams.upstream_wire import HANG, Outcome, Request, Steps
from support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT = "/v1/chat/completions"
#: Costs redaction the most for each of its bytes.
COSTLY = "password=1a2b3c4d "
CHUNKED = b"transfer-encoding: chunked\r\n\r\n"
MIB = 1 << 20
DESCRIPTORS = 256


def by_model(request: Request) -> Steps:
    """`costly`: an answer that takes redaction long; `endless`: 64 MiB of events; `waiting`: waits for `release`."""
    if request.model == "waiting":
        return [HANG, *ordinary(request)]
    if request.model == "endless" and request.stream:
        return sse([event({"choices": [{"delta": {"content": "x" * 65_536}}]})] * 1024, packets=False)
    if request.model != "costly":
        return ordinary(request)
    text = COSTLY * (900_000 // len(COSTLY))
    return json_answer({"choices": [{"index": 0, "message": {"content": text}, "finish_reason": "stop"}]})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def upstream() -> AsyncIterator[ScriptedUpstream]:
    async with scripted_upstream(by_model) as up:
        yield up


@pytest.fixture(scope="module")
def served(
    tmp_path_factory: pytest.TempPathFactory, databases: Databases, upstream: ScriptedUpstream
) -> Iterator[tuple[Product, Running]]:
    """A gateway of one worker that has few file descriptors, and that soon ends answers of `endless`."""
    made = settings(upstream.url, workers=1, retries=0)
    add_route(made, "endless", upstream.url, concurrency=1, timeouts={"total": "3s"})
    with (
        databases.fresh() as url,
        installation(tmp_path_factory.mktemp("served"), made, url) as product,
    ):
        product.prefix = ("sh", "-c", f'ulimit -n {DESCRIPTORS}; ulimit -Sn 200; exec "$@"', "sh")
        with product.running("gateway") as running:
            yield product, running


@pytest.fixture
def product(served: tuple[Product, Running]) -> Product:
    return served[0]


@pytest.fixture
def running(served: tuple[Product, Running]) -> Running:
    return served[1]


async def test_costly_copies_do_not_hold_other_requests(
    product: Product, upstream: ScriptedUpstream, thorough: bool
) -> None:
    costly = 6 if thorough else 3
    during = 0
    async with aiohttp.ClientSession() as client:

        async def ask(model: str) -> None:
            async with client.post(product.url + CHAT, json={"model": model}) as answer:
                assert answer.status == 200
                await answer.read()

        asking = asyncio.gather(*(ask("costly") for _ in range(costly)))
        await upstream.until(
            lambda up: sum(one.model == "costly" and one.outcome is Outcome.SENT for one in up.requests) == costly,
            60,
        )
        while not asking.done():
            await ask("small")
            during += 1
        await asking
    # Each costly copy takes longer than many small requests. If it held the worker, none or one would end meanwhile.
    assert during >= 3 * costly


def connect(product: Product) -> socket.socket:
    host, port = product.settings["gateway"]["listen"].split(":")
    return socket.create_connection((host, int(port)), timeout=60)


def worker(running: Running) -> Path:
    (pid,) = running.pids("gateway.processes.worker")
    return Path(f"/proc/{pid}")


def forget_most_memory(running: Running) -> None:
    """Let the worker's peak begin anew, at what it has now."""
    (worker(running) / "clear_refs").write_text("5")


def most_memory(running: Running) -> int:
    """The most memory that the worker has had since its peak was forgotten, in bytes."""
    found = re.search(r"VmHWM:\s+(\d+) kB", (worker(running) / "status").read_text())
    assert found is not None
    return int(found[1]) * 1024


async def ask(product: Product, model: str = "small") -> int:
    async with (
        aiohttp.ClientSession() as client,
        client.post(product.url + CHAT, json={"model": model, "messages": []}) as answer,
    ):
        await answer.read()
        return answer.status


async def asks(product: Product, model: str, status: int = 200) -> bool:
    return await ask(product, model) == status


async def get(product: Product, path: str) -> int:
    async with aiohttp.ClientSession() as client, client.get(product.url + path) as answer:
        await answer.read()
        return answer.status


async def test_a_body_in_tiny_chunks_takes_little_more_memory_than_its_size(
    product: Product, running: Running, thorough: bool
) -> None:
    size = (4 if thorough else 2) * MIB
    body = json.dumps({"model": "m", "input": "x" * (size - 64)}).encode().ljust(size)

    def send() -> bytes:
        with connect(product) as connection:
            connection.sendall(f"POST {CHAT} HTTP/1.1\r\nhost: 127.0.0.1\r\n".encode())
            connection.sendall(b"transfer-encoding: chunked\r\nconnection: close\r\n\r\n")
            for at in range(0, size, 65_536):
                piece = body[at : at + 65_536]
                connection.sendall(b"".join(b"2\r\n%b\r\n" % piece[n : n + 2] for n in range(0, len(piece), 2)))
            connection.sendall(b"0\r\n\r\n")
            return connection.recv(12)

    assert await ask(product) == 200
    forget_most_memory(running)
    before = most_memory(running)
    assert await asyncio.to_thread(send) == b"HTTP/1.1 200"
    assert most_memory(running) - before < 12 * size


async def test_the_soft_limit_of_open_files_is_raised_to_the_hard_one(running: Running) -> None:
    found = re.search(r"Max open files +(\S+) +(\S+)", (worker(running) / "limits").read_text())
    assert found is not None
    assert found[1] == found[2] == str(DESCRIPTORS)


async def test_silent_connections_do_not_take_the_worker_out(product: Product, running: Running) -> None:
    began = time.monotonic()
    silent = [connect(product) for _ in range(400)]
    for _ in range(10):
        assert await asyncio.wait_for(ask(product), 60) == 200
    for connection in silent:
        connection.close()
    assert await asyncio.wait_for(ask(product), 60) == 200
    said = running.said()
    lines = said.count("file descriptors are in use")
    assert 1 <= lines <= 1 + (time.monotonic() - began) / 30
    assert "Traceback" not in said


class Drips:
    """Clients that begin a request and send one more byte of it ever so often, until `stop`."""

    def __init__(self, product: Product, count: int) -> None:
        head = f"POST {CHAT} HTTP/1.1\r\nhost: 127.0.0.1\r\n".encode()
        self._beginnings = [head, b"P", head + b"content-length: 9999\r\n\r\n{", head + CHUNKED + b"9999\r\n{"]
        self._product = product
        self._count = count
        self._open: list[socket.socket] = []

    async def drip(self) -> None:
        """Begin the requests, and go on with them."""
        for number in range(self._count):
            self._open.append(connect(self._product))
            self._open[-1].setblocking(False)
            self._open[-1].send(self._beginnings[number % len(self._beginnings)])
        while True:
            await asyncio.sleep(0.5)
            for connection in self._open:
                with contextlib.suppress(OSError):  # the worker has closed it
                    connection.send(b"x")

    def stop(self) -> None:
        for connection in self._open:
            connection.close()


@asynccontextmanager
async def dripping(product: Product, count: int) -> AsyncIterator[None]:
    drips = Drips(product, count)
    task = asyncio.create_task(drips.drip())
    try:
        yield
        assert not task.done()
    finally:
        task.cancel()
        drips.stop()


async def test_requests_that_drip_do_not_take_the_worker_out(
    product: Product, running: Running, upstream: ScriptedUpstream
) -> None:
    answered = asyncio.create_task(ask(product, "waiting"))
    await upstream.until(lambda up: up.hanging == 1)
    async with dripping(product, 400):
        for _ in range(5):
            assert await asyncio.wait_for(get(product, "/healthz"), 30) == 200
            assert await asyncio.wait_for(ask(product), 30) in {200, 503}
        await eventually(lambda: asks(product, "small"), 30)
    upstream.release()
    assert await answered == 200, "a whole request was taken for one that is not"
    assert "Traceback" not in running.said()


async def test_operators_are_answered_while_whole_requests_hold_all_file_descriptors(
    product: Product, running: Running, upstream: ScriptedUpstream
) -> None:
    count = DESCRIPTORS * 3 // 8
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as client:

        async def wait() -> int:
            async with client.post(product.url + CHAT, json={"model": "waiting"}) as answer:
                return answer.status

        waiting = [asyncio.create_task(wait()) for _ in range(count)]
        await upstream.until(lambda up: up.hanging > count * 3 // 4)
        await eventually(lambda: asks(product, "small", 503), 30)
        for path in ("/healthz", "/readyz", "/metrics"):
            assert await asyncio.wait_for(get(product, path), 30) == 200
        upstream.release()
        statuses = await asyncio.gather(*waiting)
    assert set(statuses) <= {200, 503}
    assert statuses.count(200) > count * 3 // 4
    await eventually(lambda: asks(product, "small"), 30)
    assert "Traceback" not in running.said()


@pytest.mark.slow
async def test_a_connection_that_never_sends_a_byte_is_closed(
    upstream: ScriptedUpstream, tmp_path: Path, migrated_url: str
) -> None:
    made = settings(upstream.url, workers=1, first_byte="1s")
    with (
        installation(tmp_path, made, migrated_url) as product,
        product.running("gateway"),
        connect(product) as silent,
        connect(product) as begun,
    ):
        begun.sendall(b"POST ")
        assert await asyncio.to_thread(silent.recv, 1) == b""
        begun.sendall(b"/nowhere HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        assert await asyncio.to_thread(begun.recv, 12) == b"HTTP/1.1 404"


async def test_a_client_that_reads_slowly_is_cut_at_the_total_timeout(product: Product) -> None:

    async def has_place() -> bool:
        return await ask(product, "endless") == 200

    with connect(product) as slow:
        body = json.dumps({"model": "endless", "stream": True}).encode()
        slow.sendall(f"POST {CHAT} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
        assert await asyncio.to_thread(slow.recv, 12) == b"HTTP/1.1 200"
        await eventually(has_place, 120)
        query = "SELECT outcome, status, error_type FROM exchanges WHERE model = 'endless' AND stream"
        assert [tuple(row) for row in await product.found(query)] == [("client_gone", 499, "client_too_slow")]
