"""A gateway that remembers heads beside one that parses each: the same clients, deployments and events for both.

A `Way` is a gateway in the test's event loop with deployments of its own. `told` gives all that can be seen of one
afterwards, without what is different each time: ids, times and span ids.
"""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.servers.gateway_app import Served, served
from support.upstreams.scripted_upstream import ScriptedUpstream, scripted_upstream
from support.upstreams.upstream_wire import Request, Steps
from typing_extensions import override

from auditor.domain.exchange import Exchange
from auditor.domain.keys import Key, hash_secret
from gateway import snapshot
from gateway.http import Request as ParsedRequest
from gateway.http.connection import ClientConnection
from gateway.http.head_cache import Offer, RequestCache
from gateway.limits import key_limits
from gateway.recording.counters import read_all
from gateway.routing import breaker

SECRETS = ("sk-bias-one", "sk-bias-two", "sk-bias-three")
#: The first has no limits, the second has few requests a minute, the third may ask for two models only.
KEYS = (
    Key(id="key_1", name="one", hash=hash_secret(SECRETS[0])),
    Key(id="key_2", name="two", hash=hash_secret(SECRETS[1]), rpm=3, tpm=4000),
    Key(id="key_3", name="three", hash=hash_secret(SECRETS[2]), models=("m", "waiting")),
)
_CHANGING = [
    (re.compile(rb"(?m)^date: .*\r$"), b"date: D\r"),
    (re.compile(rb"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), b"ID"),
    (re.compile(rb"127\.0\.0\.1:\d+"), b"HOST"),
    (re.compile(rb"req_[0-9a-f]{32}"), b"req_ID"),
    (re.compile(rb"(00-[0-9a-f]{32})-[0-9a-f]{16}-"), rb"\1-SPAN-"),
    (re.compile(rb"(?m)^x-ratelimit-reset-(\w+): .*\r$"), rb"x-ratelimit-reset-\1: R\r"),
    (re.compile(rb"(?m)^(retry-after: ).*\r$"), rb"\1R\r"),
    (re.compile(rb"Try again in \d+ s"), b"Try again in N s"),
    (re.compile(rb"content-length: \d+\r\n(?=.*Try again in N s)", re.DOTALL), b"content-length: N\r\n"),
]


def constant(data: bytes) -> bytes:
    """Return bytes without what is different each time."""
    for pattern, by in _CHANGING:
        data = pattern.sub(by, data)
    return data


class CountingCache(RequestCache):
    """A server's cache of request heads, and how many requests it has taken."""

    def __init__(self, cache: RequestCache) -> None:
        self._cache = cache
        self.taken = 0

    @override
    def take(self, client: ClientConnection, data: bytes, arrived_ns: int) -> Offer | int:
        offer = self._cache.take(client, data, arrived_ns)
        self.taken += offer is Offer.TAKEN
        return offer

    @override
    def remember(self, data: bytes, request: ParsedRequest) -> None:
        self._cache.remember(data, request)


@dataclass
class Way:
    """A gateway, its deployments, and what its clients have received."""

    gateway: Served
    upstream: ScriptedUpstream
    settings: dict[str, Any]
    connections: dict[int, tuple[asyncio.StreamReader, asyncio.StreamWriter]] = field(default_factory=dict)
    heard: dict[int, bytes] = field(default_factory=dict)

    @property
    def taken(self) -> int:
        """How many requests the cache has taken."""
        cache = self.gateway.server.cache
        return cache.taken if isinstance(cache, CountingCache) else 0

    async def send(self, connection: int, pieces: Sequence[bytes]) -> None:
        """Send pieces one after the other, on a connection that is opened again if it has ended."""
        reader, writer = self.connections.get(connection, (None, None))
        if reader is None or writer is None or reader.at_eof() or writer.is_closing():
            await self.close(connection)
            host, port = self.gateway.url.removeprefix("http://").split(":")
            self.connections[connection] = reader, writer = await asyncio.open_connection(host, int(port))
        for number, piece in enumerate(pieces):
            if number:
                await asyncio.sleep(0.001)
            with suppress(ConnectionError):
                writer.write(piece)
                await writer.drain()

    async def receive(self, connection: int) -> None:
        """Read one answer to its end."""
        reader, _ = self.connections[connection]
        try:
            async with asyncio.timeout(20):
                data = await _read_answer(reader)
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            data = getattr(error, "partial", b"") + b"<end>"
        self.heard[connection] = self.heard.get(connection, b"") + data
        if data.endswith(b"<end>") or b"\r\nconnection: close\r\n" in data:
            await self.close(connection)

    async def leave(self, connection: int) -> None:
        """Close a connection without reading, once the deployment has the request."""
        await self.upstream.until(lambda up: up.hanging == 1)
        await self.close(connection)
        await self.at_rest()
        self.upstream.release()

    async def close(self, connection: int) -> None:
        """Reset a connection, if it is open."""
        if connection in self.connections:
            _, writer = self.connections.pop(connection)
            writer.transport.abort()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def at_rest(self) -> None:
        """Wait until nothing is in flight, and no slot is held: an exchange holds its own after the terminator, too."""
        async with asyncio.timeout(20):
            while self._is_busy():  # noqa: ASYNC110 -- counters are no event
                await asyncio.sleep(0.001)

    def _is_busy(self) -> bool:
        slots = self.gateway.gateway.slots
        in_flight = any(self.gateway.counted("biasmeter_in_flight").values()) or self.gateway.server.is_busy
        return in_flight or any(slots.pending(deployment) for deployment, _ in slots.states())

    def revoke(self, revoked: str) -> None:
        """Revoke a key, as the shipper and the worker's maintenance do."""
        left = [key for key in KEYS if key.id != revoked]
        snapshot.write(self.gateway.folders.snapshot, left)
        self.gateway.gateway.snapshot.refresh()

    def told(self) -> dict[str, Any]:
        """Return everything that can be seen of this way."""
        gateway = self.gateway.gateway
        gateway.limits.return_leases()
        return {
            "clients": {number: constant(data) for number, data in sorted(self.heard.items())},
            "deployments": sorted(_asked(request) for request in self.upstream.requests),
            "records": sorted((_record(exchange) for exchange in self.gateway.exchanges()), key=repr),
            "counters": _counts(self.gateway),
            "limits": {key_id: _uses(row) for key_id, row in gateway.limits._table.rows()},
            "slots": {name: _standing(row) for name, row in gateway.slots._table.rows()},
        }


@asynccontextmanager
async def way(settings: dict[str, Any], script: Any, folder: Path, *, remembers: bool) -> AsyncIterator[Way]:
    """Run one way; ``settings`` name the deployments' URL ``UP``."""

    def played(request: Request) -> Steps:
        steps: Steps = script(request)
        return steps

    async with scripted_upstream(played) as up:
        filled = _filled(settings, up.url)
        async with served(filled, folder, KEYS, remembers=remembers) as gateway:
            if gateway.server.cache is not None:
                gateway.server.cache = CountingCache(gateway.server.cache)
            made = Way(gateway, up, filled)
            try:
                yield made
            finally:
                for connection in list(made.connections):
                    await made.close(connection)


def _filled(settings: Any, url: str) -> Any:
    if isinstance(settings, dict):
        return {name: _filled(value, url) for name, value in settings.items()}
    if isinstance(settings, list):
        return [_filled(value, url) for value in settings]
    return url if settings == "UP" else settings


async def _read_answer(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    if head.startswith(b"HTTP/1.1 100"):
        return head + await _read_answer(reader)
    if (length := re.search(rb"(?im)^content-length: (\d+)\r$", head)) is not None:
        return head + await reader.readexactly(int(length[1]))
    if b"\r\ntransfer-encoding: chunked\r\n" not in head:
        return head + await reader.read()
    body = b""
    while True:
        line = await reader.readuntil(b"\r\n")
        chunk = await reader.readexactly(int(line, 16) + 2)
        body += chunk[:-2]
        if line == b"0\r\n":
            return head + body


def _asked(request: Request) -> bytes:
    lines = [f"{request.method} {request.path}", *[f"{name}: {value}\r" for name, value in request.headers]]
    return constant("\n".join(lines).encode("latin-1") + b"\n" + request.body)


def _record(exchange: Exchange) -> Exchange:
    assert exchange.total_us >= exchange.upstream_us >= 0
    first = None if exchange.first_byte_us is None else 0
    return exchange._replace(
        id=None,  # type: ignore[arg-type]  # two records are compared with each other only
        at_us=0,
        config_hash="",
        request_id=constant(exchange.request_id.encode()).decode(),
        total_us=0,
        upstream_us=0,
        first_byte_us=first,
        response=None if exchange.response is None else constant(exchange.response),
    )


def _counts(gateway: Served) -> Counter[tuple[str, ...]]:
    """Return the counts of all series; those of a histogram are added up, because durations differ."""
    counts: Counter[tuple[str, ...]] = Counter()
    for key, count in read_all(gateway.folders.counters).items():
        if key[0].endswith("_seconds"):
            if key[-1] != "sum_us":
                counts[key[:-1]] += count
        else:
            counts[key] += count
    return +counts


def _uses(row: Any) -> tuple[int, int]:
    """Return what a key has spent, and the sum of the units in its windows; the seconds at which are left out."""
    return row[key_limits.SPENT], _units(row[key_limits.REQUESTS]) * 10**6 + _units(row[key_limits.TOKENS])


def _standing(row: Any) -> list[int]:
    """Return a deployment's row; only whether its breaker is open, not until when."""
    cells = list(row)
    cells[breaker._OPEN_UNTIL] = bool(cells[breaker._OPEN_UNTIL])
    return cells


def _units(window: Any) -> int:
    return sum(window[1:])
