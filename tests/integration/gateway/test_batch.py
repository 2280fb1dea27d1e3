"""What exchanges write waits for the end of the event loop's iteration: who ends before loses nothing.

The test's own deployment is a socket, so that it may answer or leave at any moment. Where it matters what has happened
within one iteration, the test ends it itself (`Iterations`).
"""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support.servers.gateway_app import Served, served
from typing_extensions import override

from auditor.domain.exchange import Outcome
from gateway.exchange.batch import Asking, Ending, IterationBatch
from gateway.recording.spool import SpoolWriter

BODY = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hello"}]}).encode()
REQUEST = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n%b" % (len(BODY), BODY)
WHOLE = b'{"choices":[{"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":4}}'
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(WHOLE), WHOLE)
FORGED = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"


class CountingWriter(SpoolWriter):
    """A writer that knows how many records it wrote at once."""

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(folder, name)
        self.batches: list[int] = []

    @override
    def append_all(self, records):
        self.batches.append(len(records))
        return super().append_all(records)


class Iterations:
    """Ends the iterations in place of the event loop, from `hold` on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self._batches: set[IterationBatch] = set()

    def hold(self) -> None:
        self._monkeypatch.setattr(IterationBatch, "_flush_later", lambda batch: self._batches.add(batch))  # noqa: PLW0108 -- no method

    @property
    def are_due(self) -> bool:
        return bool(self._batches)

    @property
    def ended(self) -> int:
        """How many exchanges wait to be recorded and answered."""
        return sum(len(batch._ending) for batch in self._batches)

    def end(self) -> None:
        batches, self._batches = self._batches, set()
        for batch in batches:
            batch._flush()


class Deployment:
    """A deployment on a socket, whose connections the test holds."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.setblocking(False)
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}/v1"
        self.open: list[socket.socket] = []

    async def accept(self) -> socket.socket:
        async with asyncio.timeout(20):
            one, _ = await asyncio.get_running_loop().sock_accept(self._listening)
        one.setblocking(False)
        self.open.append(one)
        return one

    def close(self) -> None:
        for one in (self._listening, *self.open):
            one.close()


async def request_of(one: socket.socket) -> bytes:
    data = b""
    async with asyncio.timeout(20):
        while not data.endswith(BODY):
            data += await asyncio.get_running_loop().sock_recv(one, 1 << 16)
    return data


async def answer_to(client: socket.socket) -> bytes:
    """Return the body of an answer; empty: the connection has ended."""
    data = b""
    async with asyncio.timeout(20):
        while not data.endswith(b"}"):
            more = await asyncio.get_running_loop().sock_recv(client, 1 << 16)
            if not more:
                return b""
            data += more
    return data.partition(b"\r\n\r\n")[2]


class Scene:
    """A gateway that has a plan for the request, and clients and connections to the deployment that are idle."""

    def __init__(self, gateway: Served, deployment: Deployment) -> None:
        self.gateway = gateway
        self.deployment = deployment
        self.clients: list[socket.socket] = []
        self._warmed = 0

    async def warm_up(self, count: int) -> None:
        """Open ``count`` clients, and have them answered together, three times."""
        host, port = self.gateway.url.removeprefix("http://").split(":")
        for _ in range(count):
            client = socket.create_connection((host, int(port)))
            client.setblocking(False)
            self.clients.append(client)
        for time in range(3):
            for client in self.clients:
                client.send(REQUEST)
            for number in range(count):
                upstream = self.deployment.open[number] if time else await self.deployment.accept()
                await request_of(upstream)
            for upstream in self.deployment.open:
                upstream.send(ANSWER)
            for client in self.clients:
                assert await answer_to(client) == WHOLE
        self._warmed = 3 * count

    async def until(self, condition) -> None:
        async with asyncio.timeout(20):
            while not condition():  # noqa: ASYNC110 -- what has arrived is no event
                await asyncio.sleep(0.001)

    def ended(self) -> list[Outcome]:
        """The outcomes of all exchanges after the warm-up."""
        return [exchange.outcome for exchange in self.gateway.exchanges()][self._warmed :]


@asynccontextmanager
async def scene(folder: Path, clients: int = 1) -> AsyncIterator[Scene]:
    deployment = Deployment()
    settings = {
        "deployments": [{"name": "a", "base_url": deployment.url}],
        "routes": [{"model": "m", "deployments": ["a"], "capture": "full"}],
    }
    try:
        async with served(settings, folder) as gateway:
            made = Scene(gateway, deployment)
            try:
                await made.warm_up(clients)
                yield made
            finally:
                for client in made.clients:
                    client.close()
    finally:
        deployment.close()


@pytest.fixture
def iterations(monkeypatch: pytest.MonkeyPatch) -> Iterations:
    return Iterations(monkeypatch)


async def test_exchanges_that_end_in_one_iteration_are_written_at_once(tmp_path: Path, iterations: Iterations) -> None:
    async with scene(tmp_path, clients=5) as at:
        spool = at.gateway.gateway.recorder.spool = CountingWriter(at.gateway.folders.spool, "counting")
        for client in at.clients:
            client.send(REQUEST)
        for upstream in at.deployment.open:
            await request_of(upstream)
        iterations.hold()
        for upstream in at.deployment.open:
            upstream.send(ANSWER)
        await at.until(lambda: iterations.ended == 5)
        iterations.end()
        assert [await answer_to(client) for client in at.clients] == [WHOLE] * 5
        assert spool.batches == [5]
        assert len(at.gateway.exchanges()) == 20
        assert at.gateway.counted("biasmeter_capture") == {("stored",): 20}
        spool.close()


async def test_an_answer_waits_until_its_record_is_in_the_spool(tmp_path: Path, iterations: Iterations) -> None:
    async with scene(tmp_path) as at:
        (client,), (upstream,) = at.clients, at.deployment.open
        client.send(REQUEST)
        await request_of(upstream)
        iterations.hold()
        upstream.send(ANSWER)
        await at.until(lambda: iterations.are_due)
        assert at.ended() == []
        with pytest.raises(BlockingIOError):
            client.recv(1)
        iterations.end()
        assert at.ended() == [Outcome.COMPLETE]
        assert await answer_to(client) == WHOLE


async def test_a_spool_that_cannot_be_written_costs_no_answer(tmp_path: Path) -> None:
    async with scene(tmp_path, clients=2) as at:
        place = tmp_path / "a file"
        place.touch()
        at.gateway.gateway.recorder.spool = SpoolWriter(place, "w")
        for client in at.clients:
            client.send(REQUEST)
        for upstream in at.deployment.open:
            await request_of(upstream)
        for upstream in at.deployment.open:
            upstream.send(ANSWER)
        assert [await answer_to(client) for client in at.clients] == [WHOLE] * 2
        assert at.gateway.counted("biasmeter_capture") == {("stored",): 6, ("dropped_spool_error",): 2}


@pytest.mark.parametrize("is_lost", [False, True], ids=["it sends something", "it ends"])
async def test_a_connection_that_is_not_idle_before_it_is_asked_is_replaced(
    is_lost: bool, tmp_path: Path, iterations: Iterations
) -> None:
    async with scene(tmp_path) as at:
        (client,), (upstream,) = at.clients, at.deployment.open
        iterations.hold()
        client.send(REQUEST)
        await at.until(lambda: iterations.are_due)
        if is_lost:
            upstream.close()
        else:
            upstream.send(FORGED)
        await at.until(lambda: not at.gateway.gateway.pool._open)
        iterations.end()
        another = await at.deployment.accept()
        await request_of(another)
        another.send(ANSWER)
        await at.until(lambda: iterations.are_due)
        iterations.end()
        assert await answer_to(client) == WHOLE
        assert at.ended() == [Outcome.COMPLETE]
        if not is_lost:
            assert await asyncio.get_running_loop().sock_recv(upstream, 1) == b"", "the request was sent there as well"


async def test_nothing_is_sent_for_a_client_that_has_left(tmp_path: Path, iterations: Iterations) -> None:
    async with scene(tmp_path) as at:
        (client,), (upstream,) = at.clients, at.deployment.open
        iterations.hold()
        client.send(REQUEST)
        await at.until(lambda: iterations.are_due)
        client.close()
        await at.until(lambda: at.ended() == [Outcome.CLIENT_GONE])
        iterations.end()
        assert await asyncio.get_running_loop().sock_recv(upstream, 1) == b""
        assert not any(at.gateway.counted("biasmeter_in_flight").values())


async def test_an_exchange_that_has_ended_is_complete_though_its_client_leaves(
    tmp_path: Path, iterations: Iterations
) -> None:
    async with scene(tmp_path) as at:
        (client,), (upstream,) = at.clients, at.deployment.open
        client.send(REQUEST)
        await request_of(upstream)
        iterations.hold()
        upstream.send(ANSWER)
        await at.until(lambda: iterations.are_due)
        client.close()
        await at.until(lambda: not at.gateway.server._connections)
        iterations.end()
        assert at.ended() == [Outcome.COMPLETE]
        assert not any(at.gateway.counted("biasmeter_in_flight").values())


@pytest.mark.parametrize("has_ended", [False, True], ids=["before it is sent", "after its answer"])
async def test_a_drain_loses_no_request(has_ended: bool, tmp_path: Path, iterations: Iterations) -> None:
    async with scene(tmp_path) as at:
        (client,), (upstream,) = at.clients, at.deployment.open
        if has_ended:
            client.send(REQUEST)
            await request_of(upstream)
        iterations.hold()
        (upstream if has_ended else client).send(ANSWER if has_ended else REQUEST)
        await at.until(lambda: iterations.are_due)
        at.gateway.server.drain()
        assert at.gateway.server.is_busy
        iterations.end()
        if not has_ended:
            await request_of(upstream)
            upstream.send(ANSWER)
            await at.until(lambda: iterations.are_due)
            iterations.end()
        assert await answer_to(client) == WHOLE
        assert at.ended() == [Outcome.COMPLETE]


async def test_a_request_behind_another_is_answered_after_it(tmp_path: Path, iterations: Iterations) -> None:
    async with scene(tmp_path) as at:
        (client,), (upstream,) = at.clients, at.deployment.open
        client.send(REQUEST)
        await request_of(upstream)
        iterations.hold()
        upstream.send(ANSWER)
        await at.until(lambda: iterations.are_due)
        client.send(b"no request\r\n\r\n")
        (connection,) = at.gateway.server._connections
        await at.until(lambda: bool(connection._held))
        iterations.end()
        first = await answer_to(client)
        assert first.startswith(WHOLE)
        rest = first[len(WHOLE) :] or await asyncio.get_running_loop().sock_recv(client, 1 << 16)
        assert rest.startswith(b"HTTP/1.1 400 ")


class Step(Asking, Ending):
    """Asks, and ends; fails at some of its calls."""

    def __init__(self, *failing: str) -> None:
        self._failing = failing
        self.calls: list[str] = []

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if name in self._failing:
            raise RuntimeError(name)

    @override
    def ask(self) -> None:
        self._call("ask")

    @override
    def record(self) -> None:
        self._call("record")

    @override
    def answer(self, lines: bytes) -> None:
        self._call("answer")

    @override
    def broken(self, error: Exception) -> None:
        self._call("broken")


class FailingRecorder:
    """Writes nothing."""

    def write_held(self) -> None:
        raise RuntimeError("a fault of the gateway")


@pytest.mark.parametrize("failing", ["record", "answer", "ask"])
async def test_an_error_at_the_end_of_an_iteration_ends_no_other(failing: str) -> None:
    recorder: Any = FailingRecorder()
    batch, step, other = IterationBatch(recorder), Step(failing, "broken"), Step()
    for each in (step, other):
        batch.end(each)
        batch.ask(each)
    await asyncio.sleep(0)
    assert other.calls == ["record", "answer", "ask"]
    assert [call for call in step.calls if call != "broken"] == (
        ["record", "ask"] if failing == "record" else ["record", "answer", "ask"]
    )
    assert step.calls.count("broken") == 1
