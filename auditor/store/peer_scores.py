"""What scorers make of peers' answers: vectors of encoders, scores of judges. What is not scored yet is found here.

Answers come as a query of ``peers`` or ``mirroring``: one search serves rounds of questions and mirrored prompts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Select, Table, and_, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.store.peer_tables import peer_scorers, peer_scores, peer_vectors
from auditor.store.peers import PeerReply, is_blocked, read_contents
from auditor.store.tables import exchanges


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredVector:
    """One answer's vector, or why it has none."""

    exchange_id: UUID
    vector: bytes | None  #: float32, little-endian
    missing: str | None = None
    truncated: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredScore:
    """One judge's score of one answer, or why it gave none."""

    exchange_id: UUID
    score: int | None  #: in [1, 10]
    missing: str | None = None
    justification: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoredAnswer:
    """One answer with what all scorers made of it."""

    exchange_id: UUID
    deployment: str
    question_id: str
    theme: str | None
    blocked: bool
    vector: bytes | None
    scores: Mapping[str, int]  #: by scorer


async def register_scorer(
    connection: AsyncConnection, scorer: str, method: str, description: Mapping[str, Any], now: datetime
) -> None:
    """Keep who a scorer is; the first description of an id stays."""
    row = {"id": scorer, "method": method, "description": dict(description), "first_used_at": now}
    await connection.execute(insert(peer_scorers).values(row).on_conflict_do_nothing())


async def find_without_vector(
    connection: AsyncConnection, answers: Select[Any], scorer: str, limit: int
) -> list[PeerReply]:
    """Read answers that this encoder has not seen, with their content."""
    return await _find(connection, answers, peer_vectors, scorer, limit)


async def find_without_score(
    connection: AsyncConnection, answers: Select[Any], scorer: str, limit: int
) -> list[PeerReply]:
    """Read answers that this judge has not seen, with their content."""
    return await _find(connection, answers, peer_scores, scorer, limit)


async def _find(
    connection: AsyncConnection, answers: Select[Any], table: Table, scorer: str, limit: int
) -> list[PeerReply]:
    every = answers.subquery()
    seen = select(table.c.exchange_id).where(table.c.exchange_id == every.c.exchange_id, table.c.scorer == scorer)
    left = select(every).where(~seen.exists()).order_by(every.c.exchange_id).limit(limit)
    return await read_contents(connection, left)


async def add_vectors(connection: AsyncConnection, scorer: str, vectors: Sequence[StoredVector], now: datetime) -> None:
    """Keep what an encoder made of answers."""
    rows = [
        {
            "exchange_id": one.exchange_id, "scorer": scorer, "vector": one.vector, "missing": one.missing,
            "truncated": one.truncated, "at": now,
        }
        for one in vectors
    ]  # fmt: skip
    if rows:
        await connection.execute(insert(peer_vectors).on_conflict_do_nothing(), rows)


async def add_scores(connection: AsyncConnection, scorer: str, scores: Sequence[StoredScore], now: datetime) -> None:
    """Keep what a judge said of answers."""
    rows = [
        {
            "exchange_id": one.exchange_id, "scorer": scorer, "score": one.score, "missing": one.missing,
            # PostgreSQL's text holds neither NUL nor half a surrogate pair, and a judge's sentence may.
            "justification": one.justification.replace("\0", "\ufffd").encode("utf-8", "replace").decode(),
            "at": now,
        }
        for one in scores
    ]  # fmt: skip
    if rows:
        await connection.execute(insert(peer_scores).on_conflict_do_nothing(), rows)


async def read_scored(
    connection: AsyncConnection,
    answers: Select[Any],
    encoder: str | None,
    judges: Sequence[str],
    as_of: datetime | None = None,
) -> list[ScoredAnswer]:
    """Read answers with what one encoder and these judges made of them, in the order of question and deployment.

    With ``as_of``, vectors and scores of later are left out.
    """
    every = answers.subquery()
    until = {table: [] if as_of is None else [table.c.at <= as_of] for table in (peer_vectors, peer_scores)}
    query = (
        select(every, exchanges.c.status, exchanges.c.finish_reason, peer_vectors.c.vector)
        .join(exchanges, exchanges.c.id == every.c.exchange_id)
        .outerjoin(
            peer_vectors,
            and_(
                peer_vectors.c.exchange_id == every.c.exchange_id,
                peer_vectors.c.scorer == encoder,
                *until[peer_vectors],
            ),
        )
        .order_by(every.c.question_id, every.c.deployment)
    )
    given = select(peer_scores.c.exchange_id, peer_scores.c.scorer, peer_scores.c.score).where(
        peer_scores.c.exchange_id.in_(select(every.c.exchange_id)),
        peer_scores.c.scorer.in_(judges),
        peer_scores.c.score.is_not(None),
        *until[peer_scores],
    )
    scores: dict[UUID, dict[str, int]] = {}
    for row in await connection.execute(given):
        scores.setdefault(row.exchange_id, {})[row.scorer] = row.score
    return [
        ScoredAnswer(
            exchange_id=row["exchange_id"],
            deployment=row["deployment"],
            question_id=row["question_id"],
            theme=row["theme"],
            blocked=is_blocked(row["status"], row["finish_reason"]),
            vector=row["vector"],
            scores=scores.get(row["exchange_id"], {}),
        )
        for row in (await connection.execute(query)).mappings()
    ]
