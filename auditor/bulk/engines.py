"""Do pieces of bulk work one after the other in this process, or on a Ray cluster.

A piece names exchanges by their ids and is idempotent: what is in the store already is not done again. So work that was
interrupted is simply given again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncEngine

from auditor.config import Config
from auditor.errors import UsageError


class BulkPiece(Protocol):
    """A part of the work, small enough to be repeated."""

    @property
    def ids(self) -> Sequence[UUID]:
        """The exchanges that it is about."""


#: Does one piece and returns how many results are new.
Step = Callable[[Any], Awaitable[int]]
#: Prepares a step on a store. Actors get it pickled, so it is a function of a module, or a partial of one.
Opener = Callable[[AsyncEngine, Config], AbstractAsyncContextManager[Step]]


@dataclass(frozen=True, kw_only=True, slots=True)
class BulkEngine:
    """Where the work is done.

    Raises
    ------
    UsageError
        There is an address without Ray.
    """

    name: Literal["queue", "ray"] = "queue"
    address: str | None = None  #: address of a Ray cluster; None: start Ray on this machine
    actors: int = 2

    def __post_init__(self) -> None:
        if self.name == "queue" and self.address is not None:
            raise UsageError("--ray-address needs --engine ray")

    def check(self, config: Config) -> None:
        """Refuse a cluster that cannot reach the store of a configuration.

        Raises
        ------
        UsageError
            The store is the embedded one of this machine.
        """
        if self.address is not None and config.store.url is None:
            raise UsageError("--ray-address: other machines cannot reach the embedded store; set store.url")


async def do_all(
    store: AsyncEngine,
    config: Config,
    engine: BulkEngine,
    opener: Opener,
    pieces: Sequence[BulkPiece],
    on_done: Callable[[int], None],
) -> int:
    """Do all pieces, and return the number of new results.

    Parameters
    ----------
    on_done
        Is called with the number of exchanges of each piece that is done.

    Raises
    ------
    JudgeUnavailable
        A judge could not be asked; complete results are stored.
    StoreUnavailable
        PostgreSQL does not answer.
    """
    if engine.name == "ray":
        from auditor.bulk.on_ray import do_on_ray  # noqa: PLC0415 -- Ray is an optional part

        url = store.url.set(drivername="postgresql").render_as_string(hide_password=False)
        return await asyncio.to_thread(do_on_ray, config, url, engine, opener, pieces, on_done)
    added = 0
    async with opener(store, config) as step:
        for piece in pieces:
            added += await step(piece)
            on_done(len(piece.ids))
    return added
