"""The deadlines of all exchanges of a worker, checked by one timer.

A timer of the event loop for each wait would cost more than most waits, and nearly all waits end long before it.
"""

import asyncio
import logging
import math
from typing import Final, Protocol

log = logging.getLogger(__name__)

#: Seconds between two checks: an exchange is told at most this late.
_CHECK_EVERY: Final = 0.05


class Breakable(Protocol):
    """A part of an exchange that is called together with parts of others."""

    def broken(self, error: Exception) -> None:
        """End the exchange after an error of another method."""


class Waiting(Breakable, Protocol):
    """Waits for a deployment, or for a client, until some time."""

    def on_due(self) -> None:
        """End the wait, or have `Deadlines.watch` called with a later time: that time has come."""


class Deadlines:
    """Tells those that wait when their time has come. Created inside a running event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.now = self._loop.time
        self._due: dict[Waiting, float] = {}
        self._is_checking = False

    def watch(self, waiting: Waiting, due: float) -> None:
        """Tell ``waiting`` at ``due``, in the event loop's time, and not at what was due before."""
        self._due[waiting] = due
        if not self._is_checking:
            self._is_checking = True
            self._loop.call_later(_CHECK_EVERY, self._check)

    def forget(self, waiting: Waiting) -> None:
        """Tell ``waiting`` no more."""
        self._due.pop(waiting, None)

    def _check(self) -> None:
        try:
            now = self._loop.time()
            for waiting in [waiting for waiting, due in self._due.items() if due <= now]:
                if self._due.get(waiting, math.inf) > now:  # another one has ended it
                    continue
                try:
                    waiting.on_due()
                except Exception as error:  # noqa: BLE001 -- it ends its exchange
                    self._due.pop(waiting, None)
                    end_broken(waiting, error)
        finally:
            self._is_checking = bool(self._due)
            if self._is_checking:
                self._loop.call_later(_CHECK_EVERY, self._check)


def end_broken(breakable: Breakable, error: Exception) -> None:
    """Have an exchange end after an error of the gateway itself, and log an error of that: the others go on."""
    try:
        breakable.broken(error)
    except Exception:
        log.exception("the end of an exchange failed")
