"""Asking through an upstream implementation, and what came of it."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from gateway.errors import UpstreamFailed
from gateway.upstreams import Upstream, UpstreamRequest
from gateway.upstreams.lean import LeanUpstream
from gateway.upstreams.reference import ReferenceUpstream

IMPLEMENTATIONS: dict[str, Callable[[], Upstream]] = {"lean": LeanUpstream, "reference": ReferenceUpstream}


@dataclass(frozen=True, slots=True)
class Told:
    """What came: an answer's head and as much of its body as there was, and how it failed, if it did."""

    status: int | None = None
    headers: tuple[tuple[str, str], ...] = ()
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
        return UpstreamRequest(f"{self.url}/chat/completions", headers or {}, body, connect_timeout, method, ca_file)

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
        return Told(answer.status, tuple(answer.headers), b"".join(pieces), failure)


@asynccontextmanager
async def asking(implementation: str, url: str) -> AsyncIterator[Asking]:
    """Make an upstream until the block ends."""
    upstream = IMPLEMENTATIONS[implementation]()
    try:
        yield Asking(upstream, url)
    finally:
        await upstream.close()
