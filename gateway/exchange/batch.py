"""What exchanges write in one iteration of the event loop: together, at its end.

An iteration handles everything that has arrived since the last one. First all records go into the spool, by one write;
then the last bytes of answers are sent to the clients, and then the requests to the deployments. Messages that follow
each other at once wake a receiver once, and the code between two system calls finds what it needs in the processor's
caches.
"""

import asyncio
import logging
from typing import Protocol

from gateway.exchange.deadlines import Breakable, end_broken
from gateway.http.answer import server_lines_now
from gateway.recording.recorder import Recorder

log = logging.getLogger(__name__)


class Asking(Breakable, Protocol):
    """Sends a request to a deployment."""

    def ask(self) -> None:
        """Send it."""


class Ending(Breakable, Protocol):
    """Ends an exchange: its record is written before the last bytes of its answer are sent."""

    def record(self) -> None:
        """Record the exchange."""

    def answer(self, lines: bytes) -> None:
        """Send the last bytes, for some of them with the lines of server and date."""


class IterationBatch:
    """What waits for the end of this iteration. Created inside a running event loop.

    Parameters
    ----------
    recorder
        Writes the records of all exchanges that end.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._loop = asyncio.get_running_loop()
        self._asking: list[Asking] = []
        self._ending: list[Ending] = []
        self._is_due = False  # `_flush` is called at the end of the iteration

    def ask(self, asking: Asking) -> None:
        """Have a request sent at the end of the iteration."""
        self._asking.append(asking)
        if not self._is_due:
            self._flush_later()

    def end(self, ending: Ending) -> None:
        """Have an exchange recorded and its answer ended at the end of the iteration."""
        self._ending.append(ending)
        if not self._is_due:
            self._flush_later()

    def _flush_later(self) -> None:
        self._is_due = True
        self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._is_due = False
        ending, self._ending = self._ending, []
        asking, self._asking = self._asking, []
        if ending:
            recorded: list[Ending] = []
            for exchange in ending:
                try:
                    exchange.record()
                except Exception as error:  # noqa: BLE001 -- it ends its exchange
                    end_broken(exchange, error)
                else:
                    recorded.append(exchange)
            try:
                self._recorder.write_held()
            except Exception:
                log.exception("copies could not be written to the spool")
            for exchange in recorded:
                try:
                    exchange.answer(server_lines_now())
                except Exception as error:  # noqa: BLE001 -- it ends its exchange
                    end_broken(exchange, error)
        for request in asking:
            try:
                request.ask()
            except Exception as error:  # noqa: BLE001 -- it ends its exchange
                end_broken(request, error)
