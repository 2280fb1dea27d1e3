"""Code chunks on a Ray cluster with Ray Data.

The chunks are handed to a pool of actors. An actor opens the store and the judges once and codes its chunks with the
function that the queue uses. Coding is idempotent, so a chunk of an actor that died is coded again elsewhere.
"""

import asyncio
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from auditor.config import Config
from auditor.errors import AuditError, JudgeUnavailable
from auditor.jobs.code import code_chunk
from auditor.jobs.work import Work, open_work, utc_now
from auditor.store.engine import make_engine
from auditor.store.queue import Chunk

#: Cores of an actor: it waits for judges and for the store most of the time.
_CPUS: Final = 0.5
#: Most blocks of chunks. A block of an actor that died is coded again as a whole.
_BLOCKS: Final = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class RayOptions:
    """Where the work runs."""

    address: str | None = None  #: of a cluster; None: a Ray of this command's own on this machine
    actors: int = 2


def code_on_ray(
    config: Config, database_url: str, chunks: Sequence[Chunk], options: RayOptions, on_done: Callable[[int], None]
) -> int:
    """Code chunks on Ray, and return the number of new codings.

    Parameters
    ----------
    config, database_url
        As of this process; actors get them, with the secrets, through Ray's object store.
    on_done
        Is called with the number of exchanges of each chunk that is done.

    Raises
    ------
    JudgeUnavailable
        A judge could not be asked; complete codings are stored.
    AuditError
        The store did not answer an actor.
    """
    import ray  # noqa: PLC0415 -- an optional part

    given = {"address": options.address} if options.address else {"address": "local", "include_dashboard": False}
    ray.init(**given, log_to_driver=False, logging_level="error")
    try:
        return _run(config, database_url, chunks, options.actors, on_done)
    finally:
        ray.shutdown()


def _run(
    config: Config, database_url: str, chunks: Sequence[Chunk], actors: int, on_done: Callable[[int], None]
) -> int:
    import ray.data  # noqa: PLC0415 -- an optional part

    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    rows = [{"chunk": chunk.pack()} for chunk in chunks]
    done = (
        ray.data.from_items(rows, override_num_blocks=min(len(rows), _BLOCKS))
        .map_batches(
            _ChunkCoder,
            fn_constructor_args=(pickle.dumps(config), database_url),
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


class _ChunkCoder:
    """An actor that codes chunks, with a store and judges of its own."""

    def __init__(self, config: bytes, database_url: str) -> None:
        self._runner = asyncio.Runner()
        self._engine = make_engine(database_url)
        self._config: Config = pickle.loads(config)  # noqa: S301 -- written by the driver
        self._work: Work | None = None
        self._open: Any = None

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        results = [self._runner.run(self._code(Chunk.unpack(bytes(one)))) for one in batch["chunk"]]
        return {
            "added": np.array([added for added, _, _ in results]),
            "exchanges": np.array([count for _, count, _ in results]),
            "refused": np.array([refused for _, _, refused in results], dtype=object),
        }

    async def _code(self, chunk: Chunk) -> tuple[int, int, str]:
        """Return the new codings, the exchanges of the chunk, and why some were not coded."""
        if self._work is None:
            self._open = open_work(self._engine, self._config, utc_now)
            self._work = await self._open.__aenter__()
        try:
            return await code_chunk(self._work, chunk), len(chunk.ids), ""
        except AuditError as error:
            return 0, len(chunk.ids), str(error)
