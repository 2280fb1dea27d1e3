"""Bodies that arrive slowly: the key of their request is looked at again at their end, and their time is limited."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.servers.gateway_app import Served, served
from support.upstreams.scripted_upstream import ScriptedUpstream, scripted_upstream
from support.waiting import PATIENCE

from auditor.domain.keys import Key, hash_secret
from gateway import snapshot

KEY = Key(id="key_1", name="k", hash=hash_secret("secret"))
BODY = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hello"}]}).encode()
HEAD = (
    b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer secret\r\n"
    b"content-length: %d\r\n\r\n" % len(BODY)
)


@pytest.fixture
async def upstream() -> AsyncIterator[ScriptedUpstream]:
    async with scripted_upstream() as up:
        yield up


def serving(
    upstream: ScriptedUpstream, folder: Path, body_timeout: float = 60.0
) -> AbstractAsyncContextManager[Served]:
    settings = {
        "gateway": {"body_timeout": body_timeout},
        "deployments": [{"name": "a", "base_url": upstream.url}],
        "routes": [{"model": "*", "deployments": ["a"]}],
    }
    return served(settings, folder, keys=[KEY])


class Client:
    """A client that sends its request in pieces of its choice."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def send(self, piece: bytes) -> None:
        self._writer.write(piece)
        await self._writer.drain()

    async def answer(self) -> tuple[int, bytes]:
        """Read one answer. Return its status and body."""
        async with asyncio.timeout(PATIENCE):
            head = await self._reader.readuntil(b"\r\n\r\n")
            (length,) = [int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"content-length:")]
            return int(head.split()[1]), await self._reader.readexactly(length)

    async def ended(self) -> bool:
        """Wait for the end of the connection."""
        async with asyncio.timeout(PATIENCE):
            return not await self._reader.read()


@asynccontextmanager
async def connected(gateway: Served, *, is_known: bool) -> AsyncIterator[Client]:
    """Open a connection; ``is_known``: on which the gateway knows the head of the next request."""
    host, port = gateway.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        client = Client(reader, writer)
        for _ in range(2 if is_known else 0):
            await client.send(HEAD + BODY)
            assert (await client.answer())[0] == 200
        yield client
    finally:
        writer.close()


def revoke(gateway: Served) -> None:
    snapshot.write(gateway.folders.snapshot, [replace(KEY, revoked=True)])
    gateway.gateway.snapshot.refresh()


def expire(gateway: Served) -> None:
    snapshot.write(gateway.folders.snapshot, [replace(KEY, expires_at=datetime.now(UTC) - timedelta(seconds=1))])
    gateway.gateway.snapshot.refresh()


@pytest.mark.parametrize("end", [revoke, expire])
@pytest.mark.parametrize("is_known", [False, True], ids=["new", "known"])
async def test_a_key_that_ends_while_the_body_arrives_is_not_served(
    upstream: ScriptedUpstream, tmp_path: Path, end: Callable[[Served], None], *, is_known: bool
) -> None:
    async with serving(upstream, tmp_path) as gateway, connected(gateway, is_known=is_known) as client:
        before = len(upstream.requests)
        await client.send(HEAD + BODY[:10])
        await asyncio.sleep(0.05)
        end(gateway)
        await client.send(BODY[10:])
        status, body = await client.answer()
        assert (status, json.loads(body)["error"]["code"]) == (401, "invalid_api_key")
        assert len(upstream.requests) == before


async def test_a_key_whose_time_ends_while_the_body_of_a_known_head_arrives_is_not_served(
    upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    async with serving(upstream, tmp_path) as gateway:
        expires_at = datetime.now(UTC) + timedelta(seconds=1)
        snapshot.write(gateway.folders.snapshot, [replace(KEY, expires_at=expires_at)])
        gateway.gateway.snapshot.refresh()
        async with connected(gateway, is_known=True) as client:
            await client.send(HEAD + BODY[:10])
            while datetime.now(UTC) <= expires_at:  # noqa: ASYNC110 -- the passing of time is no event
                await asyncio.sleep(0.05)
            await client.send(BODY[10:])
            assert (await client.answer())[0] == 401


@pytest.mark.parametrize("is_known", [False, True], ids=["new", "known"])
async def test_a_body_that_takes_too_long_is_refused_though_it_goes_on_arriving(
    upstream: ScriptedUpstream, tmp_path: Path, *, is_known: bool
) -> None:
    async with (
        serving(upstream, tmp_path, body_timeout=0.3) as gateway,
        connected(gateway, is_known=is_known) as client,
    ):
        before = len(upstream.requests)
        await client.send(HEAD)
        dripping = asyncio.create_task(drip(client))
        await asyncio.sleep(0.05)
        gateway.server.look()  # as every five seconds
        status, body = await client.answer()
        assert (status, json.loads(body)["error"]["code"]) == (408, "request_timeout")
        assert await client.ended()
        dripping.cancel()
        await asyncio.gather(dripping, return_exceptions=True)
        assert len(upstream.requests) == before


async def drip(client: Client) -> None:
    """Send the body so that its end is not reached."""
    for byte in BODY[:-1]:
        await client.send(bytes([byte]))
        await asyncio.sleep(0.05)


async def test_a_body_in_pieces_that_arrives_in_time_is_served(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    async with serving(upstream, tmp_path) as gateway:
        for is_known in (False, True):
            async with connected(gateway, is_known=is_known) as client:
                await client.send(HEAD)
                for at in range(0, len(BODY), 10):
                    await client.send(BODY[at : at + 10])
                    await asyncio.sleep(0)
                    gateway.server.look()
                assert (await client.answer())[0] == 200
