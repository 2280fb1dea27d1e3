"""Find the exchanges that a coder of this configuration has not coded, and code one chunk of them.

A chunk is coded a slice at a time, and each slice is stored whole. What is coded already is skipped, so a chunk may be
worked on twice, or by two processes at once.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.coding.exchanges import ExchangeCoder, searched_text
from auditor.domain.coding import Coding
from auditor.errors import JudgeUnavailable
from auditor.export.process_series import count_coding
from auditor.store.answer_words import add_words
from auditor.store.codings import StoredAnswer, add_codings, read_uncoded
from auditor.store.engine import transaction
from auditor.store.queue import Chunk
from auditor.store.uncoded import begin_search, find_uncoded
from auditor.work import Work

#: Exchanges that may wait in the queue at once. They are left out of the next search by their ids.
MOST_WAITING: Final = 65_536
#: The least and most exchanges in one job: few, so that processes share a small plan, and more for a large backlog.
_SMALLEST_CHUNK: Final = 64
_LARGEST_CHUNK: Final = 256


async def find_chunks(connection: AsyncConnection, work: Work, coding_chunks: Sequence[Chunk] = ()) -> list[Chunk]:
    """Find chunks of work that nobody holds, the oldest exchanges of each coder first."""
    await begin_search(connection)
    taken: dict[str, set[UUID]] = {}
    for chunk in coding_chunks:
        taken.setdefault(chunk.coder, set()).update(chunk.ids)
    room = MOST_WAITING - waiting_in(coding_chunks)
    chunks: list[Chunk] = []
    for scope in work.scopes():
        if room <= 0:
            break
        ids = await find_uncoded(connection, scope, room, taken.get(scope.coder, ()))
        size = min(max(len(ids) // _LARGEST_CHUNK, _SMALLEST_CHUNK), _LARGEST_CHUNK)
        chunks += [Chunk(coder=scope.coder, ids=tuple(ids[start : start + size])) for start in range(0, len(ids), size)]
        room -= len(ids)
    return chunks


def waiting_in(chunks: Sequence[Chunk]) -> int:
    """Count the exchanges in some chunks."""
    return sum(len(chunk.ids) for chunk in chunks)


log = logging.getLogger(__name__)

#: Exchanges read and stored at once. A killed worker loses one slice; judges behind the network are asked in parallel.
_LOCAL_SLICE: Final = 64
_REMOTE_SLICE: Final = 32


async def code_chunk(work: Work, chunk: Chunk, stopping: asyncio.Event | None = None) -> int:
    """Code a chunk and return how many codings are new. A set ``stopping`` ends it after a slice.

    Raises
    ------
    JudgeUnavailable
        A judge could not be asked; complete codings are stored.
    StoreUnavailable
        The store went away.
    """
    coder = work.coders.get(chunk.coder)
    if coder is None:  # an earlier configuration's, or another auditor's
        return 0
    size = _LOCAL_SLICE if coder.coder.local else _REMOTE_SLICE
    added = 0
    for start in range(0, len(chunk.ids), size):
        if stopping is not None and stopping.is_set():
            break
        async with transaction(work.engine) as connection:
            stored = await read_uncoded(connection, chunk.coder, chunk.ids[start : start + size])
        codings, refused = await _code(coder, stored)
        coded = {coding.exchange_id for coding in codings}
        texts = {
            key: text for answer in stored if (key := answer.facts["id"]) in coded and (text := searched_text(answer))
        }
        async with transaction(work.engine) as connection:
            new = await add_codings(connection, codings, work.clock(), to_send=work.config.otel is not None)
            await add_words(connection, texts)
        facts = {answer.facts["id"]: answer.facts for answer in stored}
        for coding in new:
            count_coding(coding, facts[coding.exchange_id])
        added += len(new)
        if refused is not None:
            raise refused
    return added


async def _code(coder: ExchangeCoder, stored: Sequence[StoredAnswer]) -> tuple[list[Coding], JudgeUnavailable | None]:
    if coder.coder.local:
        # Rules and word lists take processor time: a thread keeps the event loop free for the process's API.
        answers = await asyncio.to_thread(asyncio.run, _attempt(coder, stored))
    else:
        answers = await _attempt(coder, stored)
    codings: list[Coding] = []
    refused: JudgeUnavailable | None = None
    for exchange, answer in zip(stored, answers, strict=True):
        if isinstance(answer, Coding):
            codings.append(answer)
        elif isinstance(answer, JudgeUnavailable):
            refused = answer
        elif isinstance(answer, Exception):
            codings.append(_failed(coder, exchange, answer))
        else:
            raise answer
    return codings, refused


async def _attempt(coder: ExchangeCoder, stored: Sequence[StoredAnswer]) -> list[Coding | BaseException]:
    return await asyncio.gather(*(coder.code(answer) for answer in stored), return_exceptions=True)


def _failed(coder: ExchangeCoder, stored: StoredAnswer, error: Exception) -> Coding:
    log.error("exchange %s: coding it failed", stored.facts["id"], exc_info=error)
    return coder.failed(stored)
