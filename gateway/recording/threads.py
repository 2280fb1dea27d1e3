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

    async def run(self, function: Callable[..., T], *arguments: object) -> T:
        """Do a piece of work. A cancellation during the work takes effect at the caller's next wait.

        Raises
        ------
        Exception
            What the function raises.
        """
        task = asyncio.current_task()
        assert task is not None
        work = asyncio.get_running_loop().run_in_executor(self._executor, function, *arguments)
        cancelled = False
        while not work.done():
            try:
                await asyncio.wait([work])
            except asyncio.CancelledError:
                task.uncancel()
                cancelled = True
        if cancelled:
            task.cancel()
        return work.result()

    def close(self) -> None:
        """End the thread. Work that has not started is dropped."""
        self._executor.shutdown(wait=False, cancel_futures=True)
