"""Do pieces of bulk work one after the other in this process, or on a Ray cluster.

A piece names exchanges by their ids and is idempotent: what is in the store already is not done again. So work that was
interrupted is simply given again.

On Ray a pool of actors takes the pieces. An actor opens the store and the judges once, and does its pieces with the
step that this process would use. A piece of an actor that died is done again elsewhere.
"""

import asyncio
import pickle
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol
from uuid import UUID

import numpy as np
from sqlalchemy.ext.asyncio import AsyncEngine

from auditor.config import Config
from auditor.errors import AuditError, JudgeUnavailable, UsageError
from auditor.store.engine import make_engine

#: Cores of an actor: it waits for judges and for the store most of the time.
_CPUS: Final = 0.5
#: Most blocks of pieces. A block of an actor that died is done again as a whole.
_BLOCKS: Final = 1000


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
        A judge could not be asked, or PostgreSQL does not answer an actor; complete results are stored.
    StoreUnavailable
        PostgreSQL does not answer this process.
    """
    if engine.name == "ray":
        url = store.url.set(drivername="postgresql").render_as_string(hide_password=False)
        return await asyncio.to_thread(_do_on_ray, config, url, engine, opener, pieces, on_done)
    added = 0
    async with opener(store, config) as step:
        for piece in pieces:
            added += await step(piece)
            on_done(len(piece.ids))
    return added


def _do_on_ray(
    config: Config,
    database_url: str,
    engine: BulkEngine,
    opener: Opener,
    pieces: Sequence[BulkPiece],
    on_done: Callable[[int], None],
) -> int:
    """Do all pieces on Ray; actors get the configuration and the URL, with their secrets, through its object store."""
    import ray  # noqa: PLC0415 -- an optional part

    options = {"address": engine.address} if engine.address else {"address": "local", "include_dashboard": False}
    ray.init(**options, log_to_driver=False, logging_level="error")
    try:
        return _run(pickle.dumps((opener, config)), database_url, engine.actors, pieces, on_done)
    finally:
        ray.shutdown()


def _run(
    opened: bytes, database_url: str, actors: int, pieces: Sequence[BulkPiece], on_done: Callable[[int], None]
) -> int:
    import ray.data  # noqa: PLC0415 -- an optional part

    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    rows = [{"piece": pickle.dumps(piece)} for piece in pieces]
    done = (
        ray.data.from_items(rows, override_num_blocks=min(len(rows), _BLOCKS))
        .map_batches(
            _Doer,
            fn_constructor_args=(opened, database_url),
            batch_size=1,
            num_cpus=_CPUS,
            compute=ray.data.ActorPoolStrategy(min_size=1, max_size=actors),
        )
        .iter_rows()
    )
    added, refused = 0, ""
    for row in done:
        added += int(row["added"])
        refused = refused or str(row["refused"])
        on_done(int(row["exchanges"]))
    if refused:
        raise JudgeUnavailable(refused)
    return added


class _Doer:
    """An actor, with a store and judges of its own."""

    def __init__(self, opened: bytes, database_url: str) -> None:
        self._runner = asyncio.Runner()
        self._engine = make_engine(database_url)
        self._opener: Opener
        self._opener, self._config = pickle.loads(opened)  # noqa: S301 -- written by the driver
        self._open: Any = None
        self._step: Step | None = None

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        pieces: list[BulkPiece] = [pickle.loads(bytes(packed)) for packed in batch["piece"]]  # noqa: S301 -- written by the driver
        results = [self._runner.run(self._do(piece)) for piece in pieces]
        return {
            "added": np.array([added for added, _ in results]),
            "exchanges": np.array([len(piece.ids) for piece in pieces]),
            "refused": np.array([refused for _, refused in results], dtype=object),
        }

    async def _do(self, piece: BulkPiece) -> tuple[int, str]:
        """Return the number of new results, and why some are missing."""
        try:
            if self._step is None:
                self._open = self._opener(self._engine, self._config)
                self._step = await self._open.__aenter__()
            return await self._step(piece), ""
        except AuditError as error:
            return 0, str(error)
