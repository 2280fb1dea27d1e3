"""Define the context of background work: the store, the coders of the configuration, and the clock."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy.ext.asyncio import AsyncEngine

from auditor.coding.coders import open_coders
from auditor.coding.exchanges import ExchangeCoder
from auditor.config import Config
from auditor.domain.ids import day_bounds
from auditor.store.codings import register_coder
from auditor.store.engine import transaction
from auditor.store.retention import first_kept_day
from auditor.store.uncoded import CodingScope

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """The context of the jobs of one process."""

    engine: AsyncEngine
    config: Config
    clock: Clock
    coders: Mapping[str, ExchangeCoder]  #: coders by id

    def scopes(self) -> tuple[CodingScope, ...]:
        """Return the scope of each coder. Content of earlier days has been deleted."""
        since = day_bounds(first_kept_day(self.clock(), self.config.retention.content))[0]
        return tuple(
            CodingScope(coder=reader.coder.id, since=since, routes=reader.coder.routes)
            for reader in self.coders.values()
        )


@asynccontextmanager
async def open_work(engine: AsyncEngine, config: Config, clock: Clock) -> AsyncIterator[Work]:
    """Prepare the coders, and store their descriptions.

    Raises
    ------
    UsageError
        A judge is reached through the gateway, and no gateway is known.
    ConfigError
        An audit profile cannot be used.
    """
    async with open_coders(config) as coders:
        made = {coder.id: ExchangeCoder(coder) for coder in coders}
        async with transaction(engine) as connection:
            for coder in coders:
                await register_coder(connection, coder.id, coder.rubric, coder.description, clock())
        yield Work(engine=engine, config=config, clock=clock, coders=made)
