"""Recording of exchanges that have ended: a record in the spool, and counters.

It is synchronous and takes microseconds, because the last byte of an answer waits for it. Only a large copy is redacted
in a thread; then its own answer waits for the thread, and no other.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from auditor.domain.exchange import Exchange, Origin
from gateway.rare_log import RareLog
from gateway.recording import codec
from gateway.recording.counters import Counters
from gateway.recording.redaction import Redactor
from gateway.recording.spool import SpoolWriter
from gateway.recording.telemetry import ExchangeSeries

log = logging.getLogger(__name__)
T = TypeVar("T")

#: Bytes above which a copy is redacted in the thread: a hostile text takes some 0.4 microseconds for each of its bytes.
LARGE_COPY = 64 << 10
_STORED = ("biasmeter_capture", "stored")
#: Counts the clients' requests that are being answered.
IN_FLIGHT = ("biasmeter_in_flight", Origin.CLIENT)


@dataclass(slots=True)
class Recorder:
    """Redacts, stores and counts exchanges.

    The worker's maintenance sets ``spool_full``; a reload replaces ``redactor``. ``ended`` are the exchanges of clients
    that `write_held` will count as no longer in flight.
    """

    spool: SpoolWriter
    counters: Counters
    redactor: Redactor
    spool_full: bool = False
    ended: int = 0
    _series: dict[tuple[str, ...], ExchangeSeries] = field(default_factory=dict)
    _held: list[tuple[bytes, int]] = field(default_factory=list)
    _unwritten: "set[asyncio.Task[None]]" = field(default_factory=set)
    # One thread does what would hold the event loop for too long, in order. It starts with the first such work.
    _executor: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "large copies"))
    _rare: RareLog = field(default_factory=lambda: RareLog(log))

    def keep(self, exchange: Exchange) -> "asyncio.Task[None] | None":
        """Redact an exchange. A copy that cannot be written is counted as dropped.

        Returns
        -------
        None if `write_held` writes the record. For a copy above `LARGE_COPY` the task that does it, also if nobody
        waits for it.
        """
        if len(exchange.request or b"") + len(exchange.response or b"") <= LARGE_COPY:
            self.hold(exchange)
            return None
        if self._is_full():
            return None
        writing = asyncio.get_running_loop().create_task(self._keep_large(exchange))
        self._unwritten.add(writing)
        writing.add_done_callback(self._unwritten.discard)
        return writing

    def hold(self, exchange: Exchange) -> None:
        """Redact an exchange with a copy of at most `LARGE_COPY` bytes, whose record `write_held` writes."""
        if self.spool_full and self._is_full():
            return
        record = _encode(exchange, self.redactor)
        if record is None:
            self.count_skipped("dropped_unwritable")
        else:
            self._held.append((record, exchange.at_us // 1000))

    def write_held(self) -> None:
        """Write all records that are held to the spool, by one write."""
        if self.ended:
            self.counters.add(IN_FLIGHT, -self.ended)
            self.ended = 0
        held = self._held
        if not held:
            return
        self._held = []
        try:
            self.spool.append_all(held)
        except OSError:
            for record, unix_ms in held:  # there may be room for some of them
                self._append(record, unix_ms)
        else:
            self.counters.add(_STORED, len(held))

    def submit(self, function: Callable[..., T], *arguments: object) -> "asyncio.Future[T]":
        """Do a piece of work in the thread. The future has what the function returns or raises."""
        return asyncio.get_running_loop().run_in_executor(self._executor, function, *arguments)

    async def finish(self) -> None:
        """Wait until every copy has been written; none may follow."""
        if self._unwritten:
            await asyncio.wait(self._unwritten)
        self._executor.shutdown(wait=False, cancel_futures=True)

    def count_skipped(self, reason: str) -> None:
        """Count an exchange of which no copy is kept."""
        self.counters.add(("biasmeter_capture", reason))

    async def _keep_large(self, exchange: Exchange) -> None:
        record = await self.submit(_encode, exchange, self.redactor)
        if record is None:
            self.count_skipped("dropped_unwritable")
        else:
            self._append(record, exchange.at_us // 1000)

    def _append(self, record: bytes, unix_ms: int) -> None:
        try:
            self.spool.append(record, unix_ms)
        except OSError as error:
            self._rare.warning("the spool cannot be written: %s; copies are dropped", error)
            self.count_skipped("dropped_spool_error")
        else:
            self.counters.add(_STORED)

    def _is_full(self) -> bool:
        if self.spool_full:
            self._rare.warning("the spool has reached gateway.spool.max_bytes; copies are dropped until it is shipped")
            self.count_skipped("dropped_spool_full")
        return self.spool_full

    def count_failure(self, deployment: str, origin: Origin, error_type: str) -> None:
        """Count an attempt that a deployment failed, whatever became of the exchange."""
        self.counters.add(("biasmeter_upstream_errors", deployment, origin, error_type))

    def series(self, *labels: str) -> ExchangeSeries:
        """Return the series in which the exchanges of an endpoint, route, deployment and origin are counted."""
        exchange_series = self._series.get(labels)
        if exchange_series is None:
            exchange_series = self._series[labels] = ExchangeSeries(self.counters, *labels)
        return exchange_series


def _encode(exchange: Exchange, redactor: Redactor) -> bytes | None:
    """Redact an exchange and write it as a record; None if that is impossible."""
    try:
        return codec.encode(redactor.redact(exchange))
    except (ValueError, OverflowError, RecursionError) as error:  # half a surrogate pair, a number beyond 64 bits
        log.error("an exchange cannot be written to the spool: %s", error)  # noqa: TRY400 -- one line says it
        return None
