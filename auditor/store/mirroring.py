"""Find client prompts to mirror to peers, what mirroring has cost, and the mirrored answers.

A mirrored call is an exchange of origin ``peer`` whose parent is the client's exchange, so client text is never copied.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import (
    Column,
    DateTime,
    Select,
    Table,
    Text,
    Uuid,
    case,
    cast,
    func,
    literal,
    null,
    select,
    union,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.domain.exchange import Capture, Origin, Outcome
from auditor.store.engine import metadata
from auditor.store.exchanges import ASKED_AS_SENT, exchange_content, exchanges, planned_instances
from auditor.store.plans import Spent, add_up

peer_passed_over = Table(
    "peer_passed_over",
    metadata,
    Column("exchange_id", Uuid, primary_key=True),
    Column("route", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("at", DateTime(timezone=True), nullable=False),
)


#: Status of a busy peer, which counts as not asked.
BUSY: Final = 429


_parents, _mirrored = exchanges.alias("parents"), exchanges.alias("mirrored")


@dataclass(frozen=True, kw_only=True, slots=True)
class Prompt:
    """The fields of a client's exchange that mirroring needs."""

    id: UUID
    deployment: str  #: the one that answered the client
    endpoint: str
    captured: bool  #: whether captured in full
    truncated: bool
    redacted: bool
    prompt_tokens: int | None
    completion_tokens: int | None
    request: bytes | None


async def fresh_prompts(connection: AsyncConnection, route: str, since: UUID) -> dict[UUID, str]:
    """Find a route's complete client exchanges from an id on that were not passed over, with their deployments.

    Those with an instruction of a trial are left out: the peers would be asked something else.
    """
    passed_over = select(peer_passed_over.c.exchange_id).where(peer_passed_over.c.exchange_id == exchanges.c.id)
    query = select(exchanges.c.id, exchanges.c.deployment).where(
        exchanges.c.id >= since,
        exchanges.c.origin == Origin.CLIENT,
        exchanges.c.route == route,
        exchanges.c.outcome == Outcome.COMPLETE,
        ASKED_AS_SENT,
        ~passed_over.exists(),
    )
    return {row.id: row.deployment for row in await connection.execute(query)}


async def already_mirrored(connection: AsyncConnection, peers: Sequence[str], since: UUID) -> set[tuple[UUID, str]]:
    """Return the exchanges, from an id on, that a peer was asked, except where it was busy."""
    query = select(exchanges.c.parent, exchanges.c.deployment).where(
        exchanges.c.id >= since,
        exchanges.c.origin == Origin.PEER,
        exchanges.c.deployment.in_(peers),
        exchanges.c.status != BUSY,
        exchanges.c.parent.is_not(None),
    )
    return {(row.parent, row.deployment) for row in await connection.execute(query)}


async def read_prompts(connection: AsyncConnection, ids: Sequence[UUID]) -> list[Prompt]:
    """Read exchanges with their requests, in the order of their ids."""
    names = ("id", "deployment", "endpoint", "truncated", "redacted", "prompt_tokens", "completion_tokens")
    query = (
        select(*(exchanges.c[name] for name in names), exchanges.c.capture, exchange_content.c.request)
        .outerjoin(exchange_content, exchange_content.c.id == exchanges.c.id)
        .where(exchanges.c.id.in_(ids))
        .order_by(exchanges.c.id)
    )
    return [
        Prompt(**{name: row[name] for name in names}, captured=row["capture"] == Capture.FULL, request=row["request"])
        for row in (await connection.execute(query)).mappings()
    ]


async def pass_over(connection: AsyncConnection, route: str, reasons: Mapping[UUID, str], now: datetime) -> None:
    """Record exchanges that are not mirrored, and why."""
    rows = [{"exchange_id": key, "route": route, "reason": reason, "at": now} for key, reason in reasons.items()]
    if rows:
        await connection.execute(insert(peer_passed_over).on_conflict_do_nothing(), rows)


async def read_mirroring_spent(connection: AsyncConnection, route: str, since: UUID) -> dict[str, Spent]:
    """Sum by peer what mirroring a route's prompts has used from an id on, with failed and repeated calls."""
    sent = (
        select(_mirrored)
        .join(_parents, _parents.c.id == _mirrored.c.parent)
        .where(_mirrored.c.id >= since, _mirrored.c.origin == Origin.PEER, _parents.c.route == route)
    )
    return await add_up(connection, sent)


async def count_mirroring(connection: AsyncConnection, route: str, since: UUID) -> dict[str, int]:
    """Count a route's complete client exchanges from an id on: ``mirrored``, ``open``, or by the reason why not."""
    mirrored = select(_mirrored.c.id).where(
        _mirrored.c.id >= since, _mirrored.c.origin == Origin.PEER, _mirrored.c.parent == exchanges.c.id
    )
    became = case((mirrored.exists(), "mirrored"), else_=func.coalesce(peer_passed_over.c.reason, "open"))
    query = (
        select(became.label("became"), func.count().label("n"))
        .select_from(exchanges)
        .outerjoin(peer_passed_over, peer_passed_over.c.exchange_id == exchanges.c.id)
        .where(
            exchanges.c.id >= since,
            exchanges.c.origin == Origin.CLIENT,
            exchanges.c.route == route,
            exchanges.c.outcome == Outcome.COMPLETE,
        )
        .group_by(became)
    )
    return {row.became: row.n for row in await connection.execute(query)}


def mirrored_answers(
    route: str, target: str, peers: Sequence[str], since: UUID, among: Select[Any] | None = None
) -> Select[Any]:
    """Select the answers of ``target`` to a route's clients from an id on, and those of peers to the same prompts.

    The columns are those of ``peers.round_answers``, without content. The client's exchange identifies the question.
    If ``among`` selects ids of exchanges, only these answers of peers count.
    """
    counts = select(planned_instances.c.ref).where(
        planned_instances.c.ref == _mirrored.c.ref, planned_instances.c.exchange_id == _mirrored.c.id
    )
    of_peers = (
        select(_mirrored.c.id, _mirrored.c.deployment, _parents.c.id.label("parent"))
        .join(_parents, _parents.c.id == _mirrored.c.parent)
        .where(
            _mirrored.c.id >= since,
            _mirrored.c.origin == Origin.PEER,
            _mirrored.c.deployment.in_([name for name in peers if name != target]),
            counts.exists(),
            _parents.c.route == route,
            _parents.c.deployment == target,
            *([] if among is None else [_mirrored.c.id.in_(among)]),
        )
    ).cte()
    of_target = select(of_peers.c.parent, literal(target), of_peers.c.parent)
    every = union(select(of_peers), of_target).subquery()
    return select(
        every.c.id.label("exchange_id"),
        every.c.deployment,
        cast(every.c.parent, Text).label("question_id"),
        cast(null(), Text).label("theme"),
        cast(null(), Text).label("question"),
    )
