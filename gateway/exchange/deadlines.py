"""Deadlines of all waits of a worker, checked by one timer.

A timer of the event loop for each wait would cost more than most waits, and nearly all waits end long before it.
"""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")
#: Seconds between two checks: a wait ends at most this late.
_LOOK = 0.02
#: Replaces a deadline that has passed.
_PASSED = float("-inf")


class Deadlines:
    """Ends waits that take too long. Each instance belongs to one event loop."""

    def __init__(self) -> None:
        self._due: dict[asyncio.Task[object], float] = {}
        self._checking = False

    async def wait(self, task: "asyncio.Task[object]", awaitable: Awaitable[T], due: float) -> T:
        """Wait for something, at most until about ``due`` on the loop's clock.

        Parameters
        ----------
        task
            The task that waits; it waits for one thing at a time.

        Raises
        ------
        TimeoutError
            It took longer, and has been cancelled.
        """
        self._due[task] = due
        if not self._checking:
            self._look_later()
        cancelled = task.cancelling()
        try:
            return await awaitable
        except asyncio.CancelledError:
            # Another cancellation in the meantime applies to the whole task.
            if self._due[task] == _PASSED and task.cancelling() == cancelled + 1:
                raise TimeoutError from None
            raise
        finally:
            if self._due.pop(task) == _PASSED:
                task.uncancel()

    def _look(self) -> None:
        now = asyncio.get_running_loop().time()
        for task, due in self._due.items():
            if _PASSED < due <= now:
                self._due[task] = _PASSED
                task.cancel()
        self._checking = False
        if self._due:
            self._look_later()

    def _look_later(self) -> None:
        self._checking = True
        asyncio.get_running_loop().call_later(_LOOK, self._look)
