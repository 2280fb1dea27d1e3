"""Requests to a deployment through the gateway's own client or the reference, and what has come of them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from typing_extensions import override

from gateway.errors import UpstreamFailed
from gateway.upstreams import UpstreamFailureCode, upstream_failed
from gateway.upstreams.answer_heads import AnswerHead
from gateway.upstreams.connection import AnswerFollower, UpstreamConnection
from gateway.upstreams.pool import ConnectionPool
from gateway.upstreams.requests import connection_key, parse_url, write_head

#: Bytes of an answer that wait to be read before reading is paused.
_MOST_HELD = 128 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamRequest:
    """One request to a deployment."""

    url: str
    method: str = "POST"
    headers: dict[str, str]
    body: bytes
    connect_timeout: float = 5.0
    ca_file: Path | None = None


class Answer(Protocol):
    """An answer whose head has come."""

    status: int
    fields: bytes  #: those that clients get, as `gateway.headers.returned_lines` writes them

    async def read(self) -> bytes:
        """Return the bytes of the body that have come, at least one, or none at its end."""

    def close(self) -> None:
        """Close the connection, if the answer has not ended."""


class Upstream(Protocol):
    """Sends requests to deployments."""

    async def send(self, request: UpstreamRequest) -> Answer:
        """Send a request and wait for the head of its answer."""

    async def close(self) -> None:
        """Close all connections."""


class OwnUpstream(Upstream):
    """The gateway's own client, read as the reference is: a caller waits for each piece."""

    def __init__(self) -> None:
        self.pool = ConnectionPool()

    @override
    async def send(self, request: UpstreamRequest) -> Answer:
        target = parse_url(request.url)
        length = len(request.body) if request.body or request.method == "POST" else None
        head = write_head(request.method, target, request.headers, length)
        key = connection_key(target, request.ca_file)
        kept = self.pool.take(key)
        if kept is not None:
            try:
                return await OwnAnswer(kept).ask(head, request.body)
            except UpstreamFailed as failed:
                if failed.code != "upstream_reset" or not kept.is_unanswered:
                    raise
        fresh = await self.pool.connect(key, request.connect_timeout)
        return await OwnAnswer(fresh).ask(head, request.body)

    @override
    async def close(self) -> None:
        self.pool.close()


class OwnAnswer(Answer, AnswerFollower):
    """An answer that the gateway's own client reads."""

    def __init__(self, connection: UpstreamConnection) -> None:
        self._connection = connection
        self._head: AnswerHead | None = None
        self._held = b""
        self._is_over = False
        self._failure: UpstreamFailureCode | None = None
        self._change = asyncio.Event()

    async def ask(self, head: bytes, body: bytes) -> Answer:
        """Send the request and wait for the head."""
        self._connection.send(head, body, self)
        try:
            while self._head is None:
                await self._wait()
        except asyncio.CancelledError:
            self.close()
            raise
        self.status, self.fields = self._head.status, self._head.fields
        return self

    async def _wait(self) -> None:
        if self._failure is not None:
            raise upstream_failed(self._failure)
        self._change.clear()
        await self._change.wait()

    @override
    async def read(self) -> bytes:
        while not self._held:
            if self._is_over and self._failure is None:
                return b""
            await self._wait()
        piece, self._held = self._held, b""
        if not self._is_over:
            self._connection.resume()
        return piece

    @override
    def close(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._connection.abort()

    @override
    def began(self, head: AnswerHead) -> None:
        self._head = head
        self._change.set()

    @override
    def received(self, payload: bytes, chunk: bytes) -> None:
        self._held += payload
        if len(self._held) > _MOST_HELD:
            self._connection.pause()
        self._change.set()

    @override
    def ended(self) -> None:
        self._is_over = True
        self._change.set()

    @override
    def failed(self, code: UpstreamFailureCode) -> None:
        self._is_over, self._failure = True, code
        self._change.set()

    @override
    def broken(self, error: Exception) -> None:
        raise error


def _reference() -> Upstream:
    from support.upstreams.reference import ReferenceUpstream  # noqa: PLC0415 -- it needs what is defined here

    return ReferenceUpstream()


IMPLEMENTATIONS: dict[str, Callable[[], Upstream]] = {"own": OwnUpstream, "reference": _reference}


@dataclass(frozen=True, slots=True)
class Told:
    """What came: an answer's head and as much of its body as there was, and how it failed, if it did."""

    status: int | None = None
    fields: bytes = b""
    body: bytes = b""
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class Asking:
    """An implementation, and where it is to ask."""

    upstream: Upstream
    url: str

    def request(
        self,
        *,
        method: str = "POST",
        headers: dict[str, str] | None = None,
        body: bytes = b"{}",
        ca_file: Path | None = None,
        connect_timeout: float = 5.0,
    ) -> UpstreamRequest:
        """Write a request; only what a test is about need be given."""
        return UpstreamRequest(
            url=f"{self.url}/chat/completions", method=method, headers=headers or {}, body=body,
            connect_timeout=connect_timeout, ca_file=ca_file,
        )  # fmt: skip

    async def ask(self, request: UpstreamRequest | None = None) -> Told:
        """Ask and read to the end."""
        try:
            answer = await self.upstream.send(request or self.request())
        except UpstreamFailed as failed:
            return Told(failure=failed.code)
        pieces: list[bytes] = []
        failure = None
        try:
            while piece := await answer.read():
                pieces.append(piece)
        except UpstreamFailed as failed:
            failure = failed.code
        finally:
            answer.close()
        return Told(answer.status, answer.fields, b"".join(pieces), failure)


@asynccontextmanager
async def asking(implementation: str, url: str) -> AsyncIterator[Asking]:
    """Make an upstream until the block ends."""
    upstream = IMPLEMENTATIONS[implementation]()
    try:
        yield Asking(upstream, url)
    finally:
        await upstream.close()
