"""Deadlines of what requests wait for, all kept by one timer.

A timer of the event loop for each wait costs more than most waits do, and nearly all of them end long before it rings.
"""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")
#: Seconds between two looks at the clock: the most by which a wait may be ended late.
_LOOK = 0.02
#: Stands in place of a deadline that has been kept.
_PASSED = float("-inf")


class Deadlines:
    """Ends waits that take too long. Belongs to one event loop."""

    def __init__(self) -> None:
        self._due: dict[asyncio.Task[object], float] = {}
        self._looking = False

    async def wait(self, task: "asyncio.Task[object]", awaitable: Awaitable[T], due: float) -> T:
        """Wait for something, at most until about ``due`` of the loop's clock.

        Parameters
        ----------
        task
            The one that waits; it waits for one thing at a time.

        Raises
        ------
        TimeoutError
            It took longer, and has been cancelled.
        """
        self._due[task] = due
        if not self._looking:
            self._look_later()
        cancelled = task.cancelling()
        try:
            return await awaitable
        except asyncio.CancelledError:
            # Whoever else has cancelled the task meanwhile means all of it.
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
        self._looking = False
        if self._due:
            self._look_later()

    def _look_later(self) -> None:
        self._looking = True
        asyncio.get_running_loop().call_later(_LOOK, self._look)
