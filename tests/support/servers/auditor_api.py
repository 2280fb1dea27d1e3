"""The auditor's HTTP application on a loopback port, with a clock of a test's own."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime

from aiohttp import web
from prometheus_client import CollectorRegistry

from auditor.api.app import ApiServices, build_app
from auditor.api.auth import ApiAuth
from auditor.config import Config
from auditor.store.engine import make_engine


@asynccontextmanager
async def serving(
    url: str,
    config: Config,
    clock: Callable[[], datetime],
    exposed: Callable[[], bytes] = bytes,
    *,
    loopback: bool = True,
    public_url: str | None = None,
) -> AsyncIterator[str]:
    """Serve from a store until the block ends: the `host:port`."""
    engine = make_engine(url)
    served = ApiServices(
        engine=engine,
        auth=ApiAuth(engine, loopback=loopback, public_url=public_url),
        config=lambda: config,
        clock=clock,
        registry=CollectorRegistry(),
        exposed=exposed,
    )
    runner = web.AppRunner(build_app(served))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
