"""The soak's clients: whole answers, answers left at any moment, slow readers, requests that are wrong.

They keep book of every request to a known model by its `x-request-id`, so that the gateway's own counts can be held
against theirs.
"""

import asyncio
import json
import random
import socket
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

import aiohttp

CHAT = "/v1/chat/completions"
#: A request that takes longer than this has been forgotten by the gateway.
_FORGOTTEN = aiohttp.ClientTimeout(total=60)
_SLOW_BUFFER = 8 << 10


@dataclass(slots=True)
class Asked:
    """What the clients did, and what came of it. A request's id begins with its model."""

    sent: set[str] = field(default_factory=set)  #: whole or not
    answered: set[str] = field(default_factory=set)  #: at least the head of an answer came
    statuses: Counter[int] = field(default_factory=Counter)
    endings: Counter[str] = field(default_factory=Counter)
    refused: Counter[int] = field(default_factory=Counter)  #: statuses of requests that were wrong

    def of(self, model: str) -> set[str]:
        """The ids of the requests for one model that were answered."""
        return {each for each in self.answered if each.startswith(model + "-")}


@asynccontextmanager
async def soaking(url: str, key: str, *, clients: int, pause: float, seed: int = 0) -> AsyncIterator[Asked]:
    """Let clients ask until the block ends, each with a pause of about `pause` seconds between two requests."""
    asked = Asked()
    over = asyncio.Event()
    async with AsyncExitStack() as stack:
        brisk = await stack.enter_async_context(_session(url, key))
        slow = await stack.enter_async_context(_session(url, key, _SLOW_BUFFER))
        asking = [
            asyncio.create_task(_Client(brisk, slow, asked, random.Random(f"{seed}/{number}")).run(pause, over))
            for number in range(clients)
        ]
        try:
            yield asked
        finally:
            over.set()
            await asyncio.gather(*asking)


def _session(url: str, key: str, buffer: int | None = None) -> aiohttp.ClientSession:
    """A client; with `buffer`, one whose kernel takes little more than that before the sender must wait."""

    def connection(info: aiohttp.AddrInfoType) -> socket.socket:
        made = socket.socket(*info[:3])
        if buffer is not None:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        return made

    return aiohttp.ClientSession(
        url,
        headers={"authorization": f"Bearer {key}"},
        timeout=_FORGOTTEN,
        connector=aiohttp.TCPConnector(limit=0, socket_factory=connection),
        read_bufsize=buffer or 1 << 16,
    )


class _Client:
    """One caller, who does one thing after another."""

    def __init__(
        self, brisk: aiohttp.ClientSession, slow: aiohttp.ClientSession, asked: Asked, draw: random.Random
    ) -> None:
        self._brisk = brisk
        self._slow = slow
        self._asked = asked
        self._draw = draw

    async def run(self, pause: float, over: asyncio.Event) -> None:
        errands: dict[Callable[[], Awaitable[None]], int] = {
            self._steady: 40,
            self._weather: 25,
            self._sampled: 10,
            self._hopeless: 4,
            self._leave_at_any_moment: 10,
            self._leave_in_the_answer: 10,
            self._read_slowly: 2,
            self._ask_wrongly: 3,
        }
        while not over.is_set():
            (errand,) = self._draw.choices(list(errands), list(errands.values()))
            try:
                await errand()
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                self._asked.endings[type(error).__name__] += 1
            await asyncio.sleep(self._draw.expovariate(1 / pause))

    async def _steady(self) -> None:
        await self._read("steady")

    async def _weather(self) -> None:
        await self._read("weather")

    async def _sampled(self) -> None:
        await self._read("sampled")

    async def _hopeless(self) -> None:
        await self._read(self._draw.choice(("limited", "down")))

    async def _read(self, model: str) -> None:
        async with self._ask(model) as answer:
            await answer.read()
        self._asked.endings["whole"] += 1

    async def _leave_at_any_moment(self) -> None:
        """Before the request is out, before the answer's head, or in the answer."""
        try:
            async with asyncio.timeout(self._draw.expovariate(1 / 0.02)):
                await self._read(self._draw.choice(("steady", "weather")))
        except TimeoutError:
            self._asked.endings["left"] += 1

    async def _leave_in_the_answer(self) -> None:
        async with self._ask(self._draw.choice(("steady", "long", "sampled")), stream=True) as answer:
            for _ in range(self._draw.randrange(6)):
                await answer.content.readany()
            answer.close()
        self._asked.endings["left in the answer"] += 1

    async def _read_slowly(self) -> None:
        async with self._ask("long", stream=True, client=self._slow) as answer:
            async for _ in answer.content.iter_chunked(_SLOW_BUFFER):
                await asyncio.sleep(0.01)
        self._asked.endings["read slowly"] += 1

    async def _ask_wrongly(self) -> None:
        body, key = self._draw.choice(
            (
                (b"{", None),
                (b'{"model": 1}', None),
                (b'{"model": "unknown"}', None),
                (b'{"model": "steady"}', "sk-bias-wrong"),
            )
        )
        headers = {"authorization": f"Bearer {key}"} if key else {}
        async with self._brisk.post(CHAT, data=body, headers=headers) as answer:
            await answer.read()
        self._asked.refused[answer.status] += 1

    @asynccontextmanager
    async def _ask(
        self, model: str, *, stream: bool | None = None, client: aiohttp.ClientSession | None = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        asked_id = f"{model}-{len(self._asked.sent)}"
        self._asked.sent.add(asked_id)
        if stream is None:
            stream = self._draw.random() < 0.5
        prompt = "x" * self._draw.choice((100, 1000, 100_000))
        payload = {"model": model, "stream": stream, "messages": [{"role": "user", "content": prompt}]}
        headers = {"x-request-id": asked_id, "content-type": "application/json"}
        async with (client or self._brisk).post(CHAT, data=json.dumps(payload), headers=headers) as answer:
            self._asked.answered.add(asked_id)
            self._asked.statuses[answer.status] += 1
            yield answer
