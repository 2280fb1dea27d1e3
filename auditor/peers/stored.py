"""Stored answers to what scorers make of them, and from there to the document of a comparison.

Whatever a scorer has not seen is found in the store: a first score, one by a new scorer and one that was lost are the
same. ``scoring`` scores, ``compared`` compares.
"""

import asyncio
import json
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

import orjson
from sqlalchemy import Select
from sqlalchemy.ext.asyncio import AsyncEngine

from auditor.config.audits import EMBEDDING
from auditor.live.answers import UnreadableAnswer, read_answer
from auditor.peers.compared import make_document, read_answers
from auditor.peers.embedding import Embedder
from auditor.peers.judging import DeviationJudge
from auditor.peers.scoring import PeerAnswer, Scored, Scorers, score
from auditor.peers.subjects import Subject
from auditor.store.comparisons import StoredComparison, mark_of, read_comparison, write_comparison
from auditor.store.engine import reading
from auditor.store.peer_scores import (
    StoredScore,
    StoredVector,
    add_scores,
    add_vectors,
    find_without_score,
    find_without_vector,
    register_scorer,
)
from auditor.store.peers import PeerReply

#: Answers that are read, scored and stored at once: what is lost when a scorer goes away in the middle of them.
_EMBEDDED: Final = 256
_JUDGED: Final = 32
_UNREADABLE: Final = "unreadable"
_NO_DIRECTION: Final = "no_direction"

Clock = Callable[[], datetime]


async def score_waiting(engine: AsyncEngine, subject: Subject, scorers: Scorers, clock: Clock) -> int:
    """Have every scorer see the answers that it has not seen; give how many scores and vectors are new.

    Raises
    ------
    JudgeUnavailable
        A scorer could not be asked; what was scored until then is stored.
    AuditError
        An encoder gave no usable vectors.
    StoreUnavailable
        The store went away.
    """
    added = 0
    for answers in subject.answers:
        if scorers.embedder is not None:
            added += await _embed(engine, answers, scorers.embedder, clock)
        for judge in scorers.judges:
            added += await _judge(engine, answers, judge, clock)
    return added


async def _embed(engine: AsyncEngine, every: Select[Any], embedder: Embedder, clock: Clock) -> int:
    coder, added = embedder.encoding.coder, 0
    async with reading(engine) as connection:
        await register_scorer(connection, coder, EMBEDDING, embedder.encoding.describe(), clock())
    while True:
        async with reading(engine) as connection:
            found = await find_without_vector(connection, every, coder, _EMBEDDED)
        if not found:
            return added
        answers = [answer_of(one) for one in found]
        scored = [one async for one in score(answers, Scorers(embedder=embedder))]
        vectors = [_vector(reply, one) for reply, one in zip(found, scored, strict=True)]
        async with reading(engine) as connection:
            await add_vectors(connection, coder, vectors, clock())
        added += len(found)


async def _judge(engine: AsyncEngine, every: Select[Any], judge: DeviationJudge, clock: Clock) -> int:
    added = 0
    async with reading(engine) as connection:
        await register_scorer(connection, judge.coder, f"judge:{judge.name}", judge.describe(), clock())
    while True:
        async with reading(engine) as connection:
            found = await find_without_score(connection, every, judge.coder, _JUDGED)
        if not found:
            return added
        answers = [answer_of(one) for one in found]
        scored = [one async for one in score(answers, Scorers(judges=(judge,)))]
        scores = [_score(reply, one) for reply, one in zip(found, scored, strict=True)]
        async with reading(engine) as connection:
            await add_scores(connection, judge.coder, scores, clock())
        added += len(found)


def answer_of(reply: PeerReply) -> PeerAnswer:
    """Read a stored reply as scorers are given it: its text, a block with the provider's words, or that it is none."""
    text, error = None, None
    try:
        if reply.status >= 400:
            text = _words_of(reply.body)
        else:
            text = read_answer(reply.endpoint, reply.body or b"", stream=reply.stream).text
    except UnreadableAnswer:
        error = _UNREADABLE
    return PeerAnswer(
        question_id=reply.question_id,
        deployment=reply.deployment,
        question=reply.question or "",
        theme=reply.theme,
        response=text,
        blocked=reply.blocked,
        error=error,
    )


def _words_of(body: bytes | None) -> str | None:
    """Find what a provider said of a block."""
    try:
        error = orjson.loads(body or b"{}").get("error")
    except (orjson.JSONDecodeError, AttributeError):
        return None
    said = error.get("message") if isinstance(error, dict) else None
    return said if isinstance(said, str) else None


def _vector(reply: PeerReply, scored: Scored) -> StoredVector:
    if scored.vector is None:
        missing = _NO_DIRECTION if scored.answer.came else _UNREADABLE
        return StoredVector(exchange_id=reply.exchange_id, vector=None, missing=missing)
    return StoredVector(
        exchange_id=reply.exchange_id,
        vector=scored.vector.astype("<f4").tobytes(),
        truncated=bool(scored.truncated),
    )


def _score(reply: PeerReply, scored: Scored) -> StoredScore:
    if not scored.scores:
        return StoredScore(exchange_id=reply.exchange_id, score=None, missing=_UNREADABLE)
    (one,) = scored.scores
    return StoredScore(
        exchange_id=reply.exchange_id, score=one.value, missing=one.reason, justification=one.justification
    )


async def compare(engine: AsyncEngine, subject: Subject, scorers: Scorers, now: datetime) -> bool:
    """Compare a subject's deployments anew, unless nothing has changed; say whether it was.

    Raises
    ------
    AuditError
        Vectors of one encoder do not fit together.
    StoreUnavailable
        The store went away.
    """
    coders = _coders(scorers)
    settings = json.dumps(
        [
            subject.k,
            sorted(subject.margins.items()),
            [one.targets for one in subject.groups],
            sorted(subject.hosts.items()),
        ]
    )
    async with reading(engine) as connection:
        inputs = await mark_of(connection, subject.answers, sorted(coders.values()), settings)
        last = await read_comparison(connection, subject.label)
        if last is not None and last.inputs == inputs:
            return False
        answered = [await read_answers(connection, answers, coders) for answers in subject.answers]
    document = await asyncio.to_thread(make_document, subject, coders, answered)
    made = StoredComparison(domain=subject.label, as_of=now, inputs=inputs, document=document)
    async with reading(engine) as connection:
        await write_comparison(connection, made)
    return True


def _coders(scorers: Scorers) -> dict[str, str]:
    """Give who stands behind each instrument."""
    own = {EMBEDDING: scorers.embedder.encoding.coder} if scorers.embedder is not None else {}
    return own | {f"judge:{judge.name}": judge.coder for judge in scorers.judges}
