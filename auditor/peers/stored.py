"""Score stored answers, and make the document of a comparison from them.

Answers without a score by a scorer are found in the store. So first scores, scores by a new scorer and lost scores are
one case.
"""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import numpy as np
import orjson
from sqlalchemy import Select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from auditor.coding.answers import UnreadableAnswer, read_answer
from auditor.config.audits import EMBEDDING
from auditor.documents.jsonl import BadRow
from auditor.documents.peers import PeersDocument, StoredPeersDocument
from auditor.errors import AuditError
from auditor.peers.comparison import PeerOptions
from auditor.peers.embedding import Embedder
from auditor.peers.instruments import Instruments
from auditor.peers.judging import DeviationJudge
from auditor.peers.run import analyse
from auditor.peers.score_table import ScoreCollector, ScoreRow, ScoreTable
from auditor.peers.scoring import PeerAnswer, Scored, Scorers, score
from auditor.peers.subjects import JUDGE, ComparisonSpec, PeerGroup, PeerSettings
from auditor.store.comparisons import StoredComparison, inputs_digest, read_inputs, write_comparison
from auditor.store.engine import transaction
from auditor.store.peer_scores import (
    ScoredAnswer,
    StoredScore,
    StoredVector,
    add_results,
    find_unscored,
    peer_scores,
    peer_vectors,
    read_scored,
    register_scorer,
)
from auditor.store.peers import PeerReply

#: Answers scored per transaction; at most these are scored again after a failure.
_EMBEDDED: Final = 256
_JUDGED: Final = 32
_UNREADABLE: Final = "unreadable"
_NO_DIRECTION: Final = "no_direction"

Clock = Callable[[], datetime]


async def score_waiting(engine: AsyncEngine, answers: Sequence[Select[Any]], scorers: Scorers, clock: Clock) -> int:
    """Score the answers that a scorer has not scored; return the number of new scores and vectors.

    Parameters
    ----------
    answers
        Queries for the answers, as of `ComparisonSpec.answers`.

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
    for group in answers:
        if scorers.embedder is not None:
            added += await _embed(engine, group, scorers.embedder, clock)
        for judge in scorers.judges:
            added += await _judge(engine, group, judge, clock)
    return added


async def _embed(engine: AsyncEngine, every: Select[Any], embedder: Embedder, clock: Clock) -> int:
    coder, added = embedder.encoding.coder, 0
    async with transaction(engine) as connection:
        await register_scorer(connection, coder, EMBEDDING, embedder.encoding.describe(), clock())
    while True:
        async with transaction(engine) as connection:
            replies = await find_unscored(connection, every, peer_vectors, coder, _EMBEDDED)
        if not replies:
            return added
        answers = [answer_of(reply) for reply in replies]
        scored = [result async for result in score(answers, Scorers(embedder=embedder))]
        vectors = [_vector(reply, result) for reply, result in zip(replies, scored, strict=True)]
        async with transaction(engine) as connection:
            await add_results(connection, coder, vectors, clock())
        added += len(replies)


async def _judge(engine: AsyncEngine, every: Select[Any], judge: DeviationJudge, clock: Clock) -> int:
    added = 0
    async with transaction(engine) as connection:
        await register_scorer(connection, judge.coder, f"judge:{judge.name}", judge.describe(), clock())
    while True:
        async with transaction(engine) as connection:
            replies = await find_unscored(connection, every, peer_scores, judge.coder, _JUDGED)
        if not replies:
            return added
        answers = [answer_of(reply) for reply in replies]
        scored = [result async for result in score(answers, Scorers(judges=(judge,)))]
        scores = [_score(reply, result) for reply, result in zip(replies, scored, strict=True)]
        async with transaction(engine) as connection:
            await add_results(connection, judge.coder, scores, clock())
        added += len(replies)


def answer_of(reply: PeerReply) -> PeerAnswer:
    """Return a stored reply as an answer: its text, a block with the provider's words, or None if it is neither."""
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
    """Return the provider's words about a block."""
    try:
        error = orjson.loads(body or b"{}").get("error")
    except (orjson.JSONDecodeError, AttributeError):
        return None
    message = error.get("message") if isinstance(error, dict) else None
    return message if isinstance(message, str) else None


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
    (score,) = scored.scores
    return StoredScore(
        exchange_id=reply.exchange_id, score=score.value, missing=score.reason, justification=score.justification
    )


async def compare(engine: AsyncEngine, subject: ComparisonSpec, scorers: Scorers, now: datetime) -> bool:
    """Compare deployments again if anything has changed; return whether it has.

    Raises
    ------
    AuditError
        Vectors of one encoder do not fit together.
    StoreUnavailable
        The store went away.
    """
    coders = scorer_ids(scorers)
    settings = json.dumps(
        [
            subject.k,
            sorted(subject.margins.items()),
            [group.targets for group in subject.groups],
            sorted(subject.hosts.items()),
        ]
    )
    async with transaction(engine) as connection:
        inputs = await inputs_digest(connection, subject.answers, sorted(coders.values()), settings)
        if inputs == await read_inputs(connection, subject.label):
            return False
        answered = [await read_answers(connection, answers, coders) for answers in subject.answers]
    document = await asyncio.to_thread(make_document, subject, coders, answered)
    made = StoredComparison(domain=subject.label, as_of=now, inputs=inputs, document=document)
    async with transaction(engine) as connection:
        await write_comparison(connection, made)
    return True


def scorer_ids(scorers: Scorers) -> dict[str, str]:
    """Return the id under which each instrument's results are stored."""
    ids = {EMBEDDING: scorers.embedder.encoding.coder} if scorers.embedder is not None else {}
    return ids | {f"judge:{judge.name}": judge.coder for judge in scorers.judges}


async def read_answers(
    connection: AsyncConnection, answers: Select[Any], coders: Mapping[str, str], as_of: datetime | None = None
) -> list[ScoredAnswer]:
    """Read answers with their scores by ``coders`` (ids by instrument), up to ``as_of``."""
    return await read_scored(connection, answers, coders.get(EMBEDDING), list(_judges(coders)), as_of)


def make_document(
    settings: PeerSettings, coders: Mapping[str, str], answered: Sequence[Sequence[ScoredAnswer]]
) -> StoredPeersDocument:
    """Compare each group's targets.

    Parameters
    ----------
    coders
        The scorers' ids by instrument.
    answered
        The answers of each of the settings' groups, in their order.

    Raises
    ------
    AuditError
        Vectors of one encoder do not fit together.
    """
    names = _judges(coders)
    made = [
        _compared(settings, group, _table(settings, answers, names))
        for group, answers in zip(settings.groups, answered, strict=True)
    ]
    return StoredPeersDocument(
        domain=settings.label,
        origin=settings.origin.value,
        coders=dict(coders),
        comparisons=[comparison for comparison in made if comparison is not None],
    )


def _judges(coders: Mapping[str, str]) -> dict[str, str]:
    """Return the judges' names by their ids."""
    return {coder: name.removeprefix(JUDGE) for name, coder in coders.items() if name.startswith(JUDGE)}


def _table(settings: PeerSettings, answers: Sequence[ScoredAnswer], names: Mapping[str, str]) -> ScoreTable:
    collector = ScoreCollector()
    for number, answer in enumerate(answers, start=1):
        try:
            collector.add(_row(answer, names), number)
        except BadRow as bad:
            raise AuditError(f"peers of {settings.label}: {answer.deployment} on {answer.question_id}: {bad}") from bad
    return collector.finish()


def _row(answer: ScoredAnswer, names: Mapping[str, str]) -> ScoreRow:
    return ScoreRow(
        question_id=answer.question_id,
        deployment=answer.deployment,
        theme=answer.theme,
        score={names[coder]: float(score) for coder, score in answer.scores.items()},
        embedding=np.frombuffer(answer.vector, dtype="<f4").tolist() if answer.vector is not None else None,
        blocked=answer.blocked,
    )


def _compared(settings: PeerSettings, group: PeerGroup, table: ScoreTable) -> PeersDocument | None:
    targets: Sequence[str] = [name for name in group.targets if name in table.deployments]
    if not targets:
        return None
    known = Instruments(table).names
    hosts = {
        weights: tuple(name for name in names if name in table.deployments) for weights, names in settings.hosts.items()
    }
    options = PeerOptions(
        targets=tuple(targets),
        k=settings.k,
        margins={name: margin for name, margin in settings.margins.items() if name in known},
        hosts={weights: names for weights, names in hosts.items() if len(names) > 1},
    )
    return analyse(table, options)
