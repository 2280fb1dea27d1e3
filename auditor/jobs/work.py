"""What every job works with: the store, the configuration's readers, and the clock."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncEngine

from auditor.config import Config
from auditor.domain.ids import day_bounds
from auditor.live.coders import open_coders
from auditor.live.readings import Reader
from auditor.store.codings import Scope, register_coder
from auditor.store.engine import reading

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """Give the time, in UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """One process's part in the audit's work."""

    engine: AsyncEngine
    config: Config
    clock: Clock
    readers: Mapping[str, Reader]  #: by the coder's id

    def scopes(self, within: timedelta | None = None) -> tuple[Scope, ...]:
        """Say what each coder reads, of the time ``within``. Content older than the configuration keeps is gone."""
        kept = timedelta(seconds=self.config.retention.content)
        back = kept if within is None else min(kept, within)
        since = day_bounds((self.clock() - back).date())[0]
        return tuple(
            Scope(coder=reader.coder.id, since=since, routes=reader.coder.routes) for reader in self.readers.values()
        )


@asynccontextmanager
async def open_work(engine: AsyncEngine, config: Config, clock: Clock) -> AsyncIterator[Work]:
    """Prepare the readers, and write down who they are.

    Raises
    ------
    UsageError
        A judge is reached through the gateway, and no gateway is known.
    ConfigError
        An audit profile cannot be used.
    """
    async with open_coders(config) as coders:
        readers = {coder.id: Reader(coder) for coder in coders}
        async with reading(engine) as connection:
            for coder in coders:
                await register_coder(connection, coder.id, coder.rubric, coder.description, clock())
        yield Work(engine=engine, config=config, clock=clock, readers=readers)
