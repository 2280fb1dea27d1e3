"""The deadlines of all exchanges on the short way of a worker, checked by one timer."""

import asyncio
from typing import Final, Protocol

#: Seconds between two checks: an exchange is told at most this late.
_LOOK: Final = 0.05


class DueExchange(Protocol):
    """An exchange whose deployment has until some time to answer."""

    def on_due(self) -> None:
        """End the wait, or watch for a later time: that time has come."""


class DueExchanges:
    """Tells exchanges when their time has come. Created inside a running event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._due: dict[DueExchange, float] = {}
        self._is_looking = False

    def watch(self, exchange: DueExchange, due: float) -> None:
        """Tell an exchange at ``due``, in the event loop's time."""
        self._due[exchange] = due
        if not self._is_looking:
            self._is_looking = True
            self._loop.call_later(_LOOK, self._look)

    def forget(self, exchange: DueExchange) -> None:
        """Tell an exchange no more."""
        self._due.pop(exchange, None)

    def _look(self) -> None:
        now = self._loop.time()
        for exchange in [exchange for exchange, due in self._due.items() if due <= now]:
            exchange.on_due()
        self._is_looking = bool(self._due)
        if self._is_looking:
            self._loop.call_later(_LOOK, self._look)
