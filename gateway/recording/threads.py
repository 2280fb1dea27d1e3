"""A thread for work that would hold the event loop, and with it every other request, for too long."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class WorkThread:
    """One thread that does pieces of work in the order in which they come. It starts with the first."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="large copies")

    def submit(self, function: Callable[..., T], *arguments: object) -> "asyncio.Future[T]":
        """Do a piece of work. The future has what the function returns or raises."""
        return asyncio.get_running_loop().run_in_executor(self._executor, function, *arguments)

    def close(self) -> None:
        """End the thread. Work that has not started is dropped."""
        self._executor.shutdown(wait=False, cancel_futures=True)
