"""The shipper: moves the spool into the store, and client keys from the store into the snapshot. One per host.

``python -m gateway.processes.ship`` is started by the gateway's parent. It is the only process of the gateway that
connects to the database, and no request waits for it. After a crash the next one repeats the interrupted work, because
rows are idempotent by exchange id. Exchanges and keys have a connection and a loop each; neither waits for the other.
"""

import asyncio
import contextlib
import fcntl
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import uvloop

from auditor import parent_pipe
from auditor.domain.log_lines import start_logging
from gateway import bootstrap
from gateway.limits.ledger import Ledger
from gateway.rare_log import RareLog
from gateway.recording.counters import Counters
from gateway.recording.quarantine import Quarantine
from gateway.storing import batches, key_publisher
from gateway.storing.database import UNREACHABLE, Database, WrongSchema
from gateway.storing.exchange_store import ExchangeStore
from gateway.storing.key_publisher import KeyPublisher

log = logging.getLogger(__name__)

_POLL = 0.2  # seconds between two checks of an empty spool
_GATHER = 0.05  # seconds to wait while the spool is in use, so that a commit contains many rows
_RETRY_FIRST, _RETRY_LONGEST = 0.2, 2.0
_LAST_PASS = 10.0  # seconds for emptying the spool at the end
#: Seconds for a batch, and for a lock that it needs: a DROP TABLE that waits would otherwise block all readers as well.
_COMMAND_TIMEOUT, _LOCK_TIMEOUT = 60.0, 10.0


def main() -> None:
    """Ship until SIGTERM, or until the parent has ended."""
    settings: bootstrap.ShipperBootstrap = parent_pipe.receive()
    start_logging("biasmeter gateway shipper")
    try:
        uvloop.run(_ship(settings))
    except WrongSchema as error:
        parent_pipe.report(error=str(error))
        sys.exit(parent_pipe.HOPELESS)


async def _ship(settings: bootstrap.ShipperBootstrap) -> None:
    folders = bootstrap.folders(settings.config)
    stop, gone = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    loop.add_signal_handler(signal.SIGINT, lambda: None)

    def parent_gone() -> None:
        gone.set()
        stop.set()

    watching = asyncio.create_task(parent_pipe.watch_parent(parent_gone))
    counters = Counters(folders.counters / "shipper.counters")
    ledger = Ledger(folders.limits)
    quarantine = Quarantine(folders.spool / "quarantine", counters, settings.config.gateway.spool.quarantine_max_bytes)
    with _locked(folders.root):
        shipper = Shipper(settings.database_url, folders, quarantine, ledger)
        await shipper.run(stop)
        if not gone.is_set():  # a dead parent may be replaced at once: its shipper takes the rest
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LAST_PASS):
                    await shipper.empty()
        shipper.close()
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    ledger.close()
    counters.close()


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock the folder, because two shippers would ship everything twice. Waits for one that is ending."""
    lock = os.open(folder / "ship.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


class Shipper:
    """Repeats two tasks: exchanges into the store, keys out of it. Each has its own connection and its own retries."""

    def __init__(self, database_url: str, folders: bootstrap.Folders, quarantine: Quarantine, ledger: Ledger) -> None:
        self._spool = folders.spool
        self._quarantine = quarantine
        self._database = Database(database_url, lock_timeout=_LOCK_TIMEOUT, command_timeout=_COMMAND_TIMEOUT)
        self._store: ExchangeStore | None = None
        self._keys = KeyPublisher(database_url, folders, ledger)
        self._rare = RareLog(log)
        self._reported = False

    async def run(self, stop: asyncio.Event) -> None:
        """Ship exchanges and publish keys until ``stop`` is set.

        Raises
        ------
        WrongSchema
            The store has another schema at the start. If the schema changes later, the shipper waits while clients
            are served.
        """
        tasks = [
            asyncio.create_task(self._repeat(self._ship, self._close_store, stop)),
            asyncio.create_task(self._repeat(self._publish, self._keys.close, stop)),
        ]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def empty(self) -> None:
        """Ship until the spool is empty. If the store is down, the rest is left for the next start."""
        with contextlib.suppress(*UNREACHABLE, OSError, WrongSchema):
            await self._keys.publish()  # writes the latest spending too
        with contextlib.suppress(*UNREACHABLE, OSError, WrongSchema):
            while await self._ship_once():
                pass

    def close(self) -> None:
        """Close both connections."""
        self._close_store()
        self._keys.close()

    async def _repeat(
        self, step: Callable[[], Awaitable[float]], close: Callable[[], None], stop: asyncio.Event
    ) -> None:
        """Repeat a step, which returns the seconds until the next. After a failure begin with a new connection."""
        pause = _RETRY_FIRST
        while not stop.is_set():
            try:
                wait, pause = await step(), _RETRY_FIRST
            except (*UNREACHABLE, WrongSchema) as error:
                if isinstance(error, WrongSchema) and not self._reported:
                    raise
                self._report(unreachable=_first_line(error))
                self._rare.warning(
                    "the store cannot be used (%s); trying again, copies wait in the spool", _first_line(error)
                )
                close()
                wait, pause = pause, min(pause * 2, _RETRY_LONGEST)
            except OSError as error:
                self._rare.warning("the spool cannot be read (%s); trying again", error)
                wait, pause = pause, min(pause * 2, _RETRY_LONGEST)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), wait)

    async def _ship(self) -> float:
        return _GATHER if await self._ship_once() else _POLL

    async def _ship_once(self) -> bool:
        connection = await self._database.connect()
        if self._store is None or self._store.connection is not connection:
            store = ExchangeStore(connection)
            await store.prepare()
            self._store = store
        return await batches.ship_some(self._store, self._spool, self._quarantine)

    async def _publish(self) -> float:
        keys = await self._keys.publish()
        self._report(ready=True, keys=keys)
        return key_publisher.EVERY

    def _close_store(self) -> None:
        self._store = None
        self._database.close()

    def _report(self, **facts: object) -> None:
        if not self._reported:
            parent_pipe.report(**facts)
            self._reported = True


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


if __name__ == "__main__":
    main()
