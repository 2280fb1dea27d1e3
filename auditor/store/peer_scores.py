"""Store how peers' answers were scored: vectors of encoders and scores of judges. Find answers without a score.

Answers are given as a query of ``peers`` or ``mirroring``, so one search serves both.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    Boolean,
    Column,
    DateTime,
    ForeignKey,
    LargeBinary,
    Select,
    SmallInteger,
    Table,
    Text,
    Uuid,
    and_,
    select,
)
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.store.engine import metadata
from auditor.store.exchanges import erased_among, exchanges
from auditor.store.peers import PeerReply, is_blocked, read_contents

peer_scorers = Table(
    "peer_scorers",
    metadata,
    Column("id", Text, primary_key=True),
    Column("method", Text, nullable=False),
    Column("description", JSONB, nullable=False),
    Column("first_used_at", DateTime(timezone=True), nullable=False),
)


peer_vectors = Table(
    "peer_vectors",
    metadata,
    Column("exchange_id", Uuid, primary_key=True),
    Column("scorer", Text, ForeignKey(peer_scorers.c.id), primary_key=True),
    Column("vector", LargeBinary),
    Column("missing", Text),
    Column("truncated", Boolean, nullable=False),
    Column("at", DateTime(timezone=True), nullable=False),
)


peer_scores = Table(
    "peer_scores",
    metadata,
    Column("exchange_id", Uuid, primary_key=True),
    Column("scorer", Text, ForeignKey(peer_scorers.c.id), primary_key=True),
    Column("score", SmallInteger),
    Column("missing", Text),
    Column("justification", Text, nullable=False),
    Column("at", DateTime(timezone=True), nullable=False),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredVector:
    """One answer's vector, or the reason why it has none."""

    exchange_id: UUID
    vector: bytes | None  #: float32, little-endian
    missing: str | None = None
    truncated: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredScore:
    """One judge's score of one answer, or the reason why there is none."""

    exchange_id: UUID
    score: int | None  #: score in [1, 10]
    missing: str | None = None
    justification: str = ""

    def __post_init__(self) -> None:
        # PostgreSQL's text accepts neither NUL nor half a surrogate pair, and a judge's text may hold them.
        storable = self.justification.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
        object.__setattr__(self, "justification", storable)


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoredAnswer:
    """One answer with all its scores."""

    exchange_id: UUID
    deployment: str
    question_id: str
    theme: str | None
    blocked: bool
    vector: bytes | None
    scores: Mapping[str, int]  #: scores by scorer


async def register_scorer(
    connection: AsyncConnection, scorer: str, method: str, description: Mapping[str, Any], now: datetime
) -> None:
    """Store the description of a scorer; the first description of an id is kept."""
    row = {"id": scorer, "method": method, "description": dict(description), "first_used_at": now}
    await connection.execute(insert(peer_scorers).values(row).on_conflict_do_nothing())


async def find_unscored(
    connection: AsyncConnection, answers: Select[Any], table: Table, scorer: str, limit: int
) -> list[PeerReply]:
    """Read answers without a row of this scorer in ``peer_vectors`` or ``peer_scores``, with their content."""
    return await read_contents(connection, _unscored(answers, table, scorer).limit(limit))


async def list_unscored(connection: AsyncConnection, answers: Select[Any], table: Table, scorer: str) -> list[UUID]:
    """Return the ids of all answers that `find_unscored` would read, in its order."""
    left = _unscored(answers, table, scorer).subquery()
    return list((await connection.execute(select(left.c.exchange_id).order_by(left.c.exchange_id))).scalars())


def _unscored(answers: Select[Any], table: Table, scorer: str) -> Select[Any]:
    every = answers.subquery()
    seen = select(table.c.exchange_id).where(table.c.exchange_id == every.c.exchange_id, table.c.scorer == scorer)
    return select(every).where(~seen.exists()).order_by(every.c.exchange_id)


async def add_results(
    connection: AsyncConnection, scorer: str, results: Sequence[StoredVector] | Sequence[StoredScore], now: datetime
) -> None:
    """Store the vectors of an encoder, or the scores of a judge, without those of erased exchanges."""
    erased = await erased_among(connection, [result.exchange_id for result in results])
    rows = [{**asdict(result), "scorer": scorer, "at": now} for result in results if result.exchange_id not in erased]
    if rows:
        table = peer_vectors if isinstance(results[0], StoredVector) else peer_scores
        await connection.execute(insert(table).on_conflict_do_nothing(), rows)


async def read_scored(
    connection: AsyncConnection,
    answers: Select[Any],
    encoder: str | None,
    judges: Sequence[str],
    as_of: datetime | None = None,
) -> list[ScoredAnswer]:
    """Read answers with their vectors and scores by these scorers, in the order of question and deployment.

    With ``as_of``, later vectors and scores are left out.
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
    scored = select(peer_scores.c.exchange_id, peer_scores.c.scorer, peer_scores.c.score).where(
        peer_scores.c.exchange_id.in_(select(every.c.exchange_id)),
        peer_scores.c.scorer.in_(judges),
        peer_scores.c.score.is_not(None),
        *until[peer_scores],
    )
    scores: dict[UUID, dict[str, int]] = {}
    for row in await connection.execute(scored):
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
