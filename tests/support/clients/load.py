"""Bounded load on a gateway, and what its clients got in full."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
from support.waiting import eventually

_LIMIT = aiohttp.ClientTimeout(total=30)


@dataclass(slots=True)
class Load:
    """What happened so far. Times are seconds of the monotonic clock."""

    complete: list[str] = field(default_factory=list)  #: ids of exchanges whose answer was received in full
    failures: list[tuple[float, str]] = field(default_factory=list)
    latencies: list[tuple[float, float]] = field(default_factory=list)  #: (when it began, how long it took)
    stopped: bool = False

    def median_ms(self, start: float, end: float) -> float:
        taken = sorted(took for began, took in self.latencies if start <= began < end)
        return taken[len(taken) // 2] * 1000


async def grown(asked: Load, more: int) -> None:
    """Wait for `more` whole answers."""
    target = len(asked.complete) + more
    await eventually(lambda: len(asked.complete) >= target)


@asynccontextmanager
async def load(url: str, *, connections: int = 24, pause: float = 0.05, key: str | None = None) -> AsyncIterator[Load]:
    """Ask for chat completions, half of them streamed, until the block ends; at most `connections / pause` a second."""
    state = Load()
    headers = {"authorization": f"Bearer {key}"} if key else {}
    async with aiohttp.ClientSession(
        headers=headers, timeout=_LIMIT, connector=aiohttp.TCPConnector(limit=0)
    ) as client:
        asking = [asyncio.create_task(_ask_on(client, url, state, number, pause)) for number in range(connections)]
        try:
            yield state
        finally:
            state.stopped = True
            await asyncio.gather(*asking)


async def _ask_on(client: aiohttp.ClientSession, url: str, state: Load, number: int, pause: float) -> None:
    await asyncio.sleep(pause * number / 24)
    stream = bool(number % 2)
    payload = {"model": "ordinary", "stream": stream, "messages": [{"role": "user", "content": f"caller {number}"}]}
    while not state.stopped:
        began = time.monotonic()
        try:
            await _ask(client, url, state, payload)
            state.latencies.append((began, time.monotonic() - began))
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            state.failures.append((began, repr(error)))
        await asyncio.sleep(pause)


async def _ask(client: aiohttp.ClientSession, url: str, state: Load, payload: dict[str, object]) -> None:
    async with client.post(url + "/v1/chat/completions", json=payload) as answer:
        body = await answer.read()
    if answer.status != 200:
        raise aiohttp.ClientError(f"status {answer.status}: {body[:200]!r}")
    # A body that is cut short is no JSON, and raises by itself.
    if not (body.endswith(b"data: [DONE]\n\n") if payload["stream"] else json.loads(body)["choices"]):
        raise aiohttp.ClientError("not whole")
    state.complete.append(answer.headers["x-biasmeter-exchange-id"])
