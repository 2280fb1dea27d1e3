"""Code: read the exchanges of one chunk with one coder, a slice at a time, each slice stored whole.

Whatever is coded already is passed over, so that a chunk may be worked on twice, or by two at once.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from auditor.domain.subject import Reading
from auditor.errors import JudgeUnavailable
from auditor.jobs.work import Work
from auditor.live.readings import Reader
from auditor.store.codings import StoredAnswer, add_readings, read_uncoded
from auditor.store.engine import reading
from auditor.store.queue import Chunk

log = logging.getLogger(__name__)

#: Exchanges read and stored at once. A killed worker loses one slice; judges behind the network are asked in parallel.
_LOCAL_SLICE: Final = 64
_REMOTE_SLICE: Final = 32


async def code_chunk(work: Work, chunk: Chunk, stopping: asyncio.Event | None = None) -> int:
    """Read a chunk; give how many codings are new. A set ``stopping`` ends it after a slice.

    Raises
    ------
    JudgeUnavailable
        A judge could not be asked; what could be read is stored.
    StoreUnavailable
        The store went away.
    """
    reader = work.readers.get(chunk.coder)
    if reader is None:  # an earlier configuration's, or another auditor's
        return 0
    size = _LOCAL_SLICE if reader.coder.local else _REMOTE_SLICE
    added = 0
    for start in range(0, len(chunk.ids), size):
        if stopping is not None and stopping.is_set():
            break
        async with reading(work.engine) as connection:
            stored = await read_uncoded(connection, chunk.coder, chunk.ids[start : start + size])
        readings, refused = await _read(reader, stored)
        async with reading(work.engine) as connection:
            added += await add_readings(connection, readings, work.clock())
        if refused is not None:
            raise refused
    return added


async def _read(reader: Reader, stored: Sequence[StoredAnswer]) -> tuple[list[Reading], JudgeUnavailable | None]:
    if reader.coder.local:
        # Rules and word lists take processor time: the process's API must go on answering.
        return await asyncio.to_thread(lambda: [_read_local(reader, one) for one in stored]), None
    answers = await asyncio.gather(*(reader.read(one) for one in stored), return_exceptions=True)
    readings: list[Reading] = []
    refused: JudgeUnavailable | None = None
    for one, answer in zip(stored, answers, strict=True):
        if isinstance(answer, Reading):
            readings.append(answer)
        elif isinstance(answer, JudgeUnavailable):
            refused = answer
        elif isinstance(answer, Exception):
            readings.append(_failed(reader, one, answer))
        else:
            raise answer
    return readings, refused


def _read_local(reader: Reader, stored: StoredAnswer) -> Reading:
    try:
        return reader.read_now(stored)
    except Exception as error:  # noqa: BLE001 -- one exchange that cannot be read must stop no other
        return _failed(reader, stored, error)


def _failed(reader: Reader, stored: StoredAnswer, error: Exception) -> Reading:
    log.error("exchange %s: reading it failed", stored.facts["id"], exc_info=error)
    return reader.failed(stored)
