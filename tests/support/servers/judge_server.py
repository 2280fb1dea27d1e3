"""A judge's server for tests: a real HTTP server on loopback that answers by script and keeps what it received."""

import asyncio
import contextlib
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from queue import Queue
from typing import Any

from aiohttp import web

from auditor.judges.endpoint import JudgeEndpoint, open_client
from auditor.judges.llm import LLMJudge
from auditor.judges.rubric import STATEMENT, find_rubric

Body = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Say:
    """One answer: a status, a body (JSON unless text is given), headers, and how long it takes."""

    status: int = 200
    body: Any = None
    text: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0


def completion(content: object, *, finish: str = "stop", **message: object) -> Say:
    """Answer with a chat completion of that content."""
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": content, **message}}
    return Say(body={"id": "c1", "object": "chat.completion", "choices": [choice]})


def label(name: str, rationale: str = "The words decide.") -> Say:
    """Answer with a valid verdict."""
    return completion(json.dumps({"rationale": rationale, "label": name}))


def error(status: int, message: str, *, headers: Mapping[str, str] | None = None, **members: object) -> Say:
    """Answer with OpenAI's error shape."""
    return Say(status=status, body={"error": {"message": message, **members}}, headers=headers or {})


@dataclass(slots=True)
class JudgeServer:
    """Where it listens, and what it was sent."""

    url: str = ""
    bodies: list[Body] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    most_at_once: int = 0
    now: int = 0

    @property
    def formats(self) -> list[str]:
        """The response formats asked for, in order."""
        return [body.get("response_format", {}).get("type", "plain") for body in self.bodies]


Script = Sequence[Say] | Callable[[Body], Say]


@contextlib.asynccontextmanager
async def serve(script: Script) -> AsyncIterator[JudgeServer]:
    """Answer by the script; when it is used up, its last line is repeated."""
    server = JudgeServer()

    async def answer(request: web.Request) -> web.Response:
        body = await request.json()
        server.bodies.append(body)
        server.headers.append(dict(request.headers))
        say = script(body) if callable(script) else script[min(len(server.bodies), len(script)) - 1]
        server.now += 1
        server.most_at_once = max(server.most_at_once, server.now)
        try:
            await asyncio.sleep(say.delay)
        finally:
            server.now -= 1
        text = say.text if say.text is not None else json.dumps(say.body)
        return web.Response(status=say.status, text=text, headers=say.headers, content_type="application/json")

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    app.router.add_post("/v1/embeddings", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    server.url = f"http://{host}:{port}/v1"
    try:
        yield server
    finally:
        await runner.cleanup()


@contextlib.contextmanager
def running(script: Script) -> Iterator[JudgeServer]:
    """Serve in a thread of its own: a command runs its own event loop."""
    ready: Queue[tuple[JudgeServer, asyncio.Event, asyncio.AbstractEventLoop]] = Queue()

    async def run() -> None:
        stop = asyncio.Event()
        async with serve(script) as server:
            ready.put((server, stop, asyncio.get_running_loop()))
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    server, stop, loop = ready.get(timeout=10)
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)


@contextlib.asynccontextmanager
async def judge_of(
    script: Script, *, rubric: str = STATEMENT, **settings: Any
) -> AsyncIterator[tuple[LLMJudge, JudgeServer]]:
    """A judge in front of such a server, with waits short enough for a test."""
    chosen: dict[str, Any] = {
        "name": "j1",
        "model": "judge-model",
        "api_key": "sk-judge",
        "timeout": 5.0,
        "attempts": 3,
    }
    async with serve(script) as server:
        endpoint = JudgeEndpoint(**(chosen | {"base_url": server.url, "first_backoff": 0.01} | settings))
        judge = LLMJudge(endpoint, find_rubric(rubric), open_client())
        try:
            yield judge, server
        finally:
            await judge.aclose()
