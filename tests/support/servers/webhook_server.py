"""Who findings are posted to: a loopback server that keeps what it gets, and fails as often as a test says."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web


@dataclass
class Receiver:
    """Answers with these statuses, one after the other, then 204; keeps what it was sent."""

    statuses: list[int] = field(default_factory=list)
    url: str = ""
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)

    async def take(self, request: web.Request) -> web.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.got.append((headers, await request.read()))
        return web.Response(status=self.statuses.pop(0) if self.statuses else 204)


@asynccontextmanager
async def receiving(*statuses: int) -> AsyncIterator[Receiver]:
    receiver = Receiver(list(statuses))
    app = web.Application()
    app.add_routes([web.post("/hook/secret-path", receiver.take)])
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    receiver.url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook/secret-path"
    try:
        yield receiver
    finally:
        await runner.cleanup()
