"""Store rounds of questions to peers, and read their answers and costs.

A call is answered once a complete exchange counts for it (``planned_instances``, written together with exchanges).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import (
    Column,
    ColumnElement,
    DateTime,
    ForeignKey,
    ForeignKeyConstraint,
    Integer,
    Select,
    Table,
    Text,
    UniqueConstraint,
    exists,
    or_,
    select,
)
from sqlalchemy.dialects.postgresql import JSONB, distinct_on, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.store.engine import metadata
from auditor.store.exchanges import decode_body, exchange_content, exchanges, planned_instances
from auditor.store.plans import Spent, add_up

peer_rounds = Table(
    "peer_rounds",
    metadata,
    Column("id", Text, primary_key=True),
    Column("domain", Text, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("settings", JSONB, nullable=False),
)


peer_questions = Table(
    "peer_questions",
    metadata,
    Column("round_id", Text, ForeignKey(peer_rounds.c.id), primary_key=True),
    Column("id", Text, primary_key=True),
    Column("theme", Text, nullable=False),
    Column("question", Text, nullable=False),
    Column("position", Integer, nullable=False),
)


peer_calls = Table(
    "peer_calls",
    metadata,
    Column("ref", Text, primary_key=True),
    Column("round_id", Text, nullable=False),
    Column("deployment", Text, nullable=False),
    Column("question_id", Text, nullable=False),
    UniqueConstraint("round_id", "deployment", "question_id"),
    ForeignKeyConstraint(["round_id", "question_id"], [peer_questions.c.round_id, peer_questions.c.id]),
)


#: Number of rounds in which to look for an answer: while a round runs, the answers of the previous one still count.
_ROUNDS: Final = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class PeerCall:
    """One question to one deployment."""

    ref: str  #: sent in ``x-biasmeter-ref``; at most 64 characters
    deployment: str
    question_id: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PeerReply:
    """The answer of one deployment to one question; the id of a mirrored prompt is that of its exchange."""

    exchange_id: UUID
    deployment: str
    question_id: str
    theme: str | None
    question: str | None
    endpoint: str
    stream: bool
    status: int
    finish_reason: str | None
    body: bytes | None  #: ``None`` if no content is stored

    @property
    def blocked(self) -> bool:
        """Whether a content filter answered."""
        return is_blocked(self.status, self.finish_reason)


def is_blocked(status: int, finish_reason: str | None) -> bool:
    """Return whether a content filter answered. Of failed exchanges only these count as answers."""
    return status >= 400 or finish_reason == "content_filter"


async def add_round(
    connection: AsyncConnection,
    round_id: str,
    domain: str,
    questions: Sequence[Mapping[str, object]],
    settings: Mapping[str, object],
    now: datetime,
) -> None:
    """Store a round with its questions (``id``, ``theme``, ``question``); an existing one is not changed."""
    made = {"id": round_id, "domain": domain, "created_at": now, "settings": dict(settings)}
    await connection.execute(insert(peer_rounds).values(made).on_conflict_do_nothing())
    rows = [{"round_id": round_id, "position": position, **question} for position, question in enumerate(questions)]
    await connection.execute(insert(peer_questions).on_conflict_do_nothing(), rows)


async def add_calls(connection: AsyncConnection, round_id: str, calls: Iterable[PeerCall]) -> None:
    """Store calls of a round; existing ones are not changed."""
    rows = [
        {"round_id": round_id, "ref": call.ref, "deployment": call.deployment, "question_id": call.question_id}
        for call in calls
    ]
    if rows:
        await connection.execute(insert(peer_calls).on_conflict_do_nothing(), rows)


async def answered_refs(connection: AsyncConnection, round_id: str) -> dict[str, set[str]]:
    """Return the refs of a round's answered calls, by deployment."""
    query = (
        select(peer_calls.c.deployment, peer_calls.c.ref)
        .join(planned_instances, planned_instances.c.ref == peer_calls.c.ref)
        .where(peer_calls.c.round_id == round_id)
    )
    refs: dict[str, set[str]] = {}
    for row in await connection.execute(query):
        refs.setdefault(row.deployment, set()).add(row.ref)
    return refs


async def read_round_spent(connection: AsyncConnection, round_id: str) -> dict[str, Spent]:
    """Sum by deployment what a round has used, with repeated and failed calls."""
    sent = select(exchanges).join(peer_calls, peer_calls.c.ref == exchanges.c.ref)
    return await add_up(connection, sent.where(peer_calls.c.round_id == round_id))


def round_answers(domain: str, deployments: Sequence[str], among: Select[Any] | None = None) -> Select[Any]:
    """Select each deployment's newest answer to each question of a domain's newest round, without content.

    An answer of the previous round counts only if the question had the same text. If ``among`` selects ids of
    exchanges, only these count, and only rounds that contain one of them.
    """
    rounds = (
        select(peer_rounds.c.id, peer_rounds.c.created_at)
        .where(peer_rounds.c.domain == domain, *_rounds_of(among))
        .order_by(peer_rounds.c.created_at.desc(), peer_rounds.c.id)
        .limit(_ROUNDS)
        .subquery()
    )
    newest = select(rounds.c.id).order_by(rounds.c.created_at.desc(), rounds.c.id).limit(1).scalar_subquery()
    question, put = peer_questions.alias("newest"), peer_questions.alias("put")
    return (
        select(
            exchanges.c.id.label("exchange_id"),
            exchanges.c.deployment,
            question.c.id.label("question_id"),
            question.c.theme,
            question.c.question,
        )
        .select_from(question)
        .join(peer_calls, peer_calls.c.question_id == question.c.id)
        .join(rounds, rounds.c.id == peer_calls.c.round_id)
        # The same id may stand for another question if the file was changed between the rounds.
        .join(
            put, (put.c.round_id == rounds.c.id) & (put.c.id == question.c.id) & (put.c.question == question.c.question)
        )
        .join(planned_instances, planned_instances.c.ref == peer_calls.c.ref)
        .join(exchanges, exchanges.c.id == planned_instances.c.exchange_id)
        .where(
            question.c.round_id == newest,
            exchanges.c.deployment.in_(deployments),
            *([] if among is None else [exchanges.c.id.in_(among)]),
        )
        .ext(distinct_on(question.c.position, exchanges.c.deployment))
        .order_by(question.c.position, exchanges.c.deployment, exchanges.c.id.desc())
    )


def _rounds_of(among: Select[Any] | None) -> Sequence[ColumnElement[bool]]:
    if among is None:
        return ()
    answers = (
        select(peer_calls.c.ref)
        .join(planned_instances, planned_instances.c.ref == peer_calls.c.ref)
        .where(peer_calls.c.round_id == peer_rounds.c.id, planned_instances.c.exchange_id.in_(among))
    )
    return (answers.exists(),)


async def read_contents(connection: AsyncConnection, answers: Select[Any]) -> list[PeerReply]:
    """Read the answers that a query selects, each with its content."""
    chosen = answers.subquery()
    query = (
        select(
            chosen,
            exchanges.c.endpoint, exchanges.c.stream, exchanges.c.status, exchanges.c.finish_reason,
            exchanges.c.content_encoding,
            exchange_content.c.response,
        )
        .join(exchanges, exchanges.c.id == chosen.c.exchange_id)
        .outerjoin(exchange_content, exchange_content.c.id == chosen.c.exchange_id)
        .order_by(chosen.c.question_id, chosen.c.deployment)
    )  # fmt: skip
    names = ("exchange_id", "deployment", "question_id", "theme", "question", "endpoint", "stream", "status")
    return [
        PeerReply(
            **{name: row[name] for name in names},
            finish_reason=row["finish_reason"],
            body=decode_body(row["response"], row["content_encoding"]),
        )
        for row in (await connection.execute(query)).mappings()
    ]


async def any_answers(connection: AsyncConnection, answers: Sequence[Select[Any]]) -> bool:
    """Return whether any of these queries selects an answer."""
    query = select(or_(*(exists(select(selection.subquery())) for selection in answers)))
    return bool((await connection.execute(query)).scalar())
