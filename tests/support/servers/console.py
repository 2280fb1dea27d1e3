"""The auditor in a thread of its own, on a real store, so that tests can drive a browser at the same time."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from support.servers.auditor_api import serving
from support.stores.audited_store import CTO, panel_answers, plan, ship
from support.stores.exchanges import NOON
from support.stores.postgres import apart

from auditor.config import Config
from auditor.domain.condition import BASELINE
from auditor.domain.keys import Key, KeyRole, Right, hash_secret
from auditor.instrument.pool import shipped_pool
from auditor.jobs.run_once import run_once
from auditor.store.engine import make_engine, transaction
from auditor.store.keys import add_key, revoke_key

#: What the deployments answered to 100 statements, by the stance of selection and elaboration.
SHARES = {
    "d1": {"E|E": 30, "E|D": 20, "D|D": 40, "D|": 8, "R|": 2},
    "d2": {"E|E": 5, "D|D": 60, "D|E": 35},
}


def later() -> datetime:
    """The time at which the console is looked at."""
    return NOON + timedelta(minutes=30)


def seed(database_url: str, config: Config) -> None:
    """Store a plan, its answers, their codings and the estimates."""

    async def work() -> None:
        await plan(database_url, SHARES, shipped_pool()[:100], [CTO, BASELINE])
        await ship(database_url, panel_answers(SHARES, conditions=[CTO, BASELINE]))
        engine = make_engine(database_url)
        await run_once(config, engine, later)
        await engine.dispose()

    apart(work())


@dataclass(frozen=True, kw_only=True, slots=True)
class Console:
    """A running auditor."""

    url: str
    database_url: str
    config: Config
    clock: Callable[[], datetime]

    def add_key(self, name: str, *, role: KeyRole | None, expires_at: datetime | None = None) -> str:
        """Store a key of this role, or of none, whose secret and id are its name."""
        rights: frozenset[Right] = frozenset() if role is None else frozenset({role.right})
        key = Key(id=name, name=name, hash=hash_secret(name), rights=rights, expires_at=expires_at)

        async def add() -> None:
            engine = make_engine(self.database_url)
            async with transaction(engine) as connection:
                await add_key(connection, key, self.clock())
            await engine.dispose()

        apart(add())
        return name

    def revoke_key(self, name: str) -> None:
        async def revoke() -> None:
            engine = make_engine(self.database_url)
            async with transaction(engine) as connection:
                await revoke_key(connection, name, self.clock())
            await engine.dispose()

        apart(revoke())


@contextmanager
def console(
    database_url: str,
    config: Config,
    clock: Callable[[], datetime],
    *,
    loopback: bool = True,
    public_url: str | None = None,
) -> Iterator[Console]:
    """Serve until the block ends."""
    ready: list[str] = []
    started, loop, ended = threading.Event(), asyncio.new_event_loop(), asyncio.Event()

    async def serve() -> None:
        async with serving(database_url, config, clock, loopback=loopback, public_url=public_url) as address:
            ready.append(address)
            started.set()
            await ended.wait()

    def run() -> None:
        try:
            loop.run_until_complete(serve())
        finally:
            started.set()
            loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    started.wait()
    try:
        yield Console(url=f"http://{ready[0]}", database_url=database_url, config=config, clock=clock)
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
