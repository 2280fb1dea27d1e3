"""What usual exchanges write in one turn of the event loop: together, at its end.

A turn handles everything that has arrived since the last one. First all records of the turn go into the spool, by one
write; then the answers are sent to the clients, and then the requests to the deployments. Messages that follow each
other at once wake a receiver once, and the code between two system calls finds what it needs in the processor's caches.
As without batches, an answer is sent only when its record is in the spool.
"""

import asyncio
from typing import Final, Protocol

from gateway.http.answer import own_lines
from gateway.recording.recorder import Recorder

_ANSWERED: Final = ("biasmeter_short_way", "unary")


class BatchedExchange(Protocol):
    """An exchange that waits for the end of a turn, to ask its deployment or to end."""

    def ask(self) -> None:
        """Send the request to the deployment."""

    def record(self) -> bool:
        """Record the exchange, which has ended. Return whether `answer` is to follow."""

    def answer(self, own: bytes) -> None:
        """Send the answer to the client, with the lines of server and date, ``own``."""


class TurnBatch:
    """The exchanges that wait for the end of this turn. Created inside a running event loop.

    Parameters
    ----------
    recorder
        Writes the records of all that end.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._loop = asyncio.get_running_loop()
        self._asking: list[BatchedExchange] = []
        self._ended: list[BatchedExchange] = []
        self._is_due = False  # `flush` is called at the end of the turn

    def ask(self, exchange: BatchedExchange) -> None:
        """Have an exchange ask its deployment at the end of the turn."""
        self._asking.append(exchange)
        if not self._is_due:
            self._flush_later()

    def end(self, exchange: BatchedExchange) -> None:
        """Have an exchange recorded and answered at the end of the turn."""
        self._ended.append(exchange)
        if not self._is_due:
            self._flush_later()

    def flush(self) -> None:
        """Do now what waits for the end of the turn."""
        self._is_due = False
        ended, self._ended = self._ended, []
        asking, self._asking = self._asking, []
        if ended:
            recorded = [exchange for exchange in ended if exchange.record()]
            self._recorder.write_held()
            self._recorder.counters.add(_ANSWERED, len(recorded))
            own = own_lines()
            for exchange in recorded:
                exchange.answer(own)
        for exchange in asking:
            exchange.ask()

    def _flush_later(self) -> None:
        self._is_due = True
        self._loop.call_soon(self.flush)
