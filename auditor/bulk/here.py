"""Code chunks in this process, as an auditor's worker does with those of the queue."""

from collections.abc import Callable, Sequence

from auditor.jobs.code import code_chunk
from auditor.jobs.work import Work
from auditor.store.queue import Chunk


async def code_here(work: Work, chunks: Sequence[Chunk], on_done: Callable[[int], None]) -> int:
    """Code chunks one after the other, and return the number of new codings.

    Parameters
    ----------
    on_done
        Is called with the number of exchanges of each chunk that is done.

    Raises
    ------
    JudgeUnavailable
        A judge could not be asked; complete codings are stored.
    StoreUnavailable
        PostgreSQL does not answer.
    """
    added = 0
    for chunk in chunks:
        added += await code_chunk(work, chunk)
        on_done(len(chunk.ids))
    return added
