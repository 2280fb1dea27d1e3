"""An OpenAI-compatible ``/v1/embeddings`` for tests: a real HTTP server on loopback that counts letters."""

import base64
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from aiohttp import web
from support.servers.judge_server import Say

LETTERS: Final = "abcdefghijklmnopqrstuvwxyz "


def vector_of(text: str) -> list[float]:
    """Count how often each letter and the blank occur, and add 1: no text is without a direction."""
    return [1.0 + text.lower().count(letter) for letter in LETTERS]


def packed(vector: Sequence[float]) -> str:
    """A vector as base64 of single precision."""
    return base64.b64encode(np.array(vector, dtype="<f4").tobytes()).decode()


def embeddings(body: dict[str, Any]) -> Say:
    """Answer as asked, the entries in another order than the texts."""
    wrap = packed if body.get("encoding_format") == "base64" else list
    data = [
        {"object": "embedding", "index": at, "embedding": wrap(vector_of(text))}
        for at, text in enumerate(body["input"])
    ]
    return Say(body={"object": "list", "model": body["model"], "data": data[::-1]})


@dataclass(slots=True)
class EmbeddingServer:
    """Where it listens, and what it was sent."""

    url: str = ""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)


@contextlib.asynccontextmanager
async def serve_embeddings(
    *first: Say, answer: Callable[[dict[str, Any]], Say] = embeddings
) -> AsyncIterator[EmbeddingServer]:
    """Give the first answers as they are, and then vectors."""
    server = EmbeddingServer()
    scripted = iter(first)

    async def handle(request: web.Request) -> web.Response:
        body = await request.json()
        server.bodies.append(body)
        server.headers.append(dict(request.headers))
        say = next(scripted, None) or answer(body)
        text = say.text if say.text is not None else json.dumps(say.body)
        return web.Response(status=say.status, text=text, headers=say.headers, content_type="application/json")

    app = web.Application(client_max_size=2**26)
    app.router.add_post("/v1/embeddings", handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    server.url = f"http://{host}:{port}/v1"
    try:
        yield server
    finally:
        await runner.cleanup()
