"""Whether a proxy's answers are the upstream's, byte for byte, many at once and of all shapes."""

import asyncio
import random
from dataclasses import replace

import aiohttp
from bench.hot_path.rounds import Proxy
from bench.hot_path.scenarios import FURTHER, MODELS, OPEN_STREAMS, chat

_ASKED = 200
_AT_ONCE = 50

Answer = tuple[int, bytes]


def differing(proxy: Proxy, upstream: int) -> tuple[int, int]:
    """Give how many of a proxy's answers differ from the upstream's own, and of how many."""
    return asyncio.run(_differing(proxy, replace(proxy, port=upstream)))


async def _differing(proxy: Proxy, upstream: Proxy) -> tuple[int, int]:
    unlike = {OPEN_STREAMS.model, *(scenario.model for scenario in FURTHER if scenario.refused)}
    quick = [model for model in MODELS if model not in unlike]
    shapes = [(model, stream) for model in quick for stream in (False, True)]
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=_AT_ONCE)) as client:
        own = {shape: await _ask(client, upstream, *shape) for shape in shapes}
        asked = random.Random(0).choices(shapes, k=_ASKED)
        got = await asyncio.gather(*(_ask(client, proxy, *shape) for shape in asked))
    return sum(answer != own[shape] for shape, answer in zip(asked, got, strict=True)), len(asked)


async def _ask(client: aiohttp.ClientSession, proxy: Proxy, model: str, stream: bool) -> Answer:
    headers = {"Content-Type": "application/json", "Authorization": "Bearer sk-bench", **proxy.headers}
    url = f"http://127.0.0.1:{proxy.port}/v1/chat/completions"
    try:
        async with client.post(url, data=chat(model + proxy.suffix, stream=stream), headers=headers) as answer:
            return answer.status, await answer.read()
    except aiohttp.ClientError as error:
        return 0, repr(error).encode()
