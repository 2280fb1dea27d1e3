"""Runs the simulator's server until it is told to stop; ``server`` is what runs."""

import asyncio
import signal
from collections.abc import Callable

from aiohttp import web

from auditor.errors import UsageError
from auditor.simulate.config import Loaded
from auditor.simulate.server import create_app

#: How long answers under way may take once the process is told to stop, in seconds.
_PATIENCE = 1.0


def run(loaded: Loaded, host: str, port: int, on_ready: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM; ``on_ready`` is given the base URL once the port is open.

    Raises
    ------
    UsageError : the address cannot be listened on
    """
    asyncio.run(_serve(loaded, host, port, on_ready))


async def _serve(loaded: Loaded, host: str, port: int, on_ready: Callable[[str], None]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, stop.set)
    app = create_app(loaded.scenario, pool=loaded.pool, statements=loaded.texts)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=_PATIENCE)
    await runner.setup()
    try:
        await _listen(runner, host, port)
        bound = runner.addresses[0]
        shown = f"[{bound[0]}]" if ":" in bound[0] else bound[0]
        on_ready(f"http://{shown}:{bound[1]}/v1")
        await stop.wait()
    finally:
        await runner.cleanup()


async def _listen(runner: web.AppRunner, host: str, port: int) -> None:
    try:
        await web.TCPSite(runner, host, port).start()
    except OSError as error:
        raise UsageError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
