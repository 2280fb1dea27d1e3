"""Asking each worker of a running gateway: workers learn of keys and configurations each by itself.

New connections are accepted by whichever worker is first, which may be the same one for a long time. So a number of
equal answers in a row shows nothing about the other workers.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
from support.servers.product import Product, command_line, marked_pids
from support.waiting import PATIENCE

T = TypeVar("T")
_AT_ONCE = 8


async def ask_each_worker(product: Product, ask: Callable[[aiohttp.ClientSession], Awaitable[T]]) -> list[T]:
    """Call `ask` with a session whose one connection leads to a worker, once for each worker."""
    told: dict[int, T] = {}

    async def connect() -> None:
        made: list[socket.socket] = []

        def new_socket(address: Any) -> socket.socket:
            made.append(socket.socket(*address[:3]))
            return made[-1]

        connector = aiohttp.TCPConnector(limit=1, socket_factory=new_socket)
        async with aiohttp.ClientSession(connector=connector) as session:
            async with session.get(product.url + "/healthz") as answer:
                await answer.read()
            worker = _worker_behind(made[-1].getsockname()[1], workers)
            if worker is not None and worker not in told:
                told[worker] = await ask(session)

    async with asyncio.timeout(PATIENCE):
        while True:
            workers = [pid for pid in marked_pids(product.mark) if "gateway.processes.worker" in command_line(pid)]
            if workers and told.keys() >= set(workers):
                return [told[worker] for worker in workers]
            await asyncio.gather(*(connect() for _ in range(_AT_ONCE if len(workers) > 1 else 1)))


def _worker_behind(port: int, workers: list[int]) -> int | None:
    """The worker that holds the other end of the connection from a local port."""
    end = f":{port:04X}"
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    held = {f"socket:[{fields[9]}]" for fields in lines if fields[2].endswith(end)}
    for worker in workers:
        with suppress(OSError):  # it has ended since it was listed
            for descriptor in Path(f"/proc/{worker}/fd").iterdir():
                with suppress(OSError):  # closed meanwhile
                    if str(descriptor.readlink()) in held:
                        return worker
    return None
