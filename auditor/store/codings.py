"""Codings: which exchanges a coder has not read yet, what they hold, and what was read of them.

Coding work is found here, never announced: a first coding, a re-coding by a new coder, a late row and a lost job are
one question to the store.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Select, exists, func, insert, not_, select
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.domain.ids import id_time
from auditor.domain.subject import Reading
from auditor.store.coding_tables import coders, codings, stale_tiles, votes
from auditor.store.exchanges import decode_body
from auditor.store.partitions import make_days
from auditor.store.plan_tables import planned_calls, statements
from auditor.store.tables import exchange_content, exchanges, planned_instances

#: Endpoints whose answers are text.
READABLE: Final = ("chat/completions", "completions", "responses")
_PLANNED: Final = ("probe", "replay")
_ASKED: Final = ("task", "perspective", "role", "sentiment", "invites_reason", "statement_id", "template_id", "draw")


@dataclass(frozen=True, kw_only=True, slots=True)
class Scope:
    """What one coder reads: planned calls, or with ``routes`` the clients' traffic of those routes.

    Only ids from ``since`` on are looked at: content is dropped before them.
    """

    coder: str
    since: UUID
    routes: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredAnswer:
    """One exchange to be read: its facts, what was planned about it, and its content where that is kept."""

    facts: Mapping[str, Any]
    asked: Mapping[str, Any] | None  #: the planned call, where there is one
    statement: Mapping[str, Any] | None
    request: bytes | None
    response: bytes | None


async def find_uncoded(connection: AsyncConnection, scope: Scope, limit: int, held: Iterable[UUID] = ()) -> list[UUID]:
    """Find exchanges that ``scope.coder`` has not read, the oldest first, but for those that are ``held``."""
    query = _uncoded(scope, exchanges.c.id).order_by(exchanges.c.id).limit(limit)
    apart = list(held)
    if apart:
        query = query.where(exchanges.c.id != func.all(apart))
    return list((await connection.execute(query)).scalars())


async def count_uncoded(connection: AsyncConnection, scope: Scope) -> dict[tuple[str, str], int]:
    """Count what ``scope.coder`` has not read, by deployment and origin."""
    keys = (exchanges.c.deployment, exchanges.c.origin)
    query = _uncoded(scope, *keys, func.count()).group_by(*keys).order_by(*keys)
    return {(row[0], row[1]): row[2] for row in await connection.execute(query)}


def _uncoded(scope: Scope, *columns: Any) -> Select[Any]:
    read = exists().where(
        codings.c.exchange_id == exchanges.c.id, codings.c.coder == scope.coder, codings.c.exchange_id >= scope.since
    )
    query = select(*columns).where(exchanges.c.id >= scope.since, exchanges.c.endpoint.in_(READABLE), not_(read))
    if scope.routes is not None:
        complete = exchanges.c.outcome == "complete"
        return query.where(exchanges.c.origin == "client", exchanges.c.route.in_(scope.routes), complete)
    # Of all that was sent for a planned call, the first complete exchange counts.
    counts = exists().where(
        planned_instances.c.ref == exchanges.c.ref, planned_instances.c.exchange_id == exchanges.c.id
    )
    planned = exists().where(planned_calls.c.ref == exchanges.c.ref)
    return query.where(exchanges.c.origin.in_(_PLANNED), exchanges.c.ref.is_not(None), counts, planned)


async def read_uncoded(connection: AsyncConnection, coder: str, ids: Sequence[UUID]) -> list[StoredAnswer]:
    """Read those of the exchanges that the coder still has not read, with all that reading them needs."""
    read = exists().where(codings.c.exchange_id == exchanges.c.id, codings.c.coder == coder)
    return [_row(row) for row in (await connection.execute(_stored(ids).where(not_(read)))).mappings()]


async def read_again(connection: AsyncConnection, ids: Sequence[UUID]) -> list[StoredAnswer]:
    """Read exchanges with all that reading them needs, whoever has read them."""
    return [_row(row) for row in (await connection.execute(_stored(ids))).mappings()]


def _stored(ids: Sequence[UUID]) -> Select[Any]:
    return (
        select(
            exchanges,
            exchange_content.c.request.label("content_request"),
            exchange_content.c.response.label("content_response"),
            *(planned_calls.c[name].label(f"asked_{name}") for name in _ASKED),
            statements.c.record.label("statement_record"),
        )
        .outerjoin(exchange_content, exchange_content.c.id == exchanges.c.id)
        .outerjoin(planned_calls, planned_calls.c.ref == exchanges.c.ref)
        .outerjoin(statements, statements.c.id == planned_calls.c.statement_id)
        .where(exchanges.c.id.in_(ids))
        .order_by(exchanges.c.id)
    )


def _row(row: Mapping[Any, Any]) -> StoredAnswer:
    asked = {name: row[f"asked_{name}"] for name in _ASKED}
    return StoredAnswer(
        facts={column.name: row[column.name] for column in exchanges.columns},
        asked=asked if asked["task"] is not None else None,
        statement=row["statement_record"],
        request=row["content_request"],
        response=decode_body(row["content_response"], row["content_encoding"]),
    )


async def register_coder(
    connection: AsyncConnection, coder: str, rubric: str, description: Mapping[str, Any], now: datetime
) -> None:
    """Keep who a coder is; the first description of an id stays."""
    row = {"id": coder, "rubric": rubric, "description": dict(description), "first_used_at": now}
    await connection.execute(upsert(coders).values(row).on_conflict_do_nothing())


async def read_coders(connection: AsyncConnection) -> dict[str, Mapping[str, Any]]:
    """Give every coder's description by its id."""
    found = await connection.execute(select(coders.c.id, coders.c.description).order_by(coders.c.id))
    return {row.id: row.description for row in found}


async def add_readings(connection: AsyncConnection, readings: Sequence[Reading], now: datetime) -> int:
    """Store readings with their votes, and mark their tiles; what is there already stays as it is.

    Must be one transaction with nothing else: partitions are made where days have none. Gives how many were new.
    """
    if not readings:
        return 0
    days = {id_time(reading.exchange_id).date() for reading in readings}
    await make_days(connection, ("codings", "votes"), days, "tiltmeter coding partitions")
    rows = [_coding(reading, now) for reading in readings]
    added = set(
        (
            await connection.execute(
                upsert(codings).values(rows).on_conflict_do_nothing().returning(codings.c.exchange_id)
            )
        ).scalars()
    )
    new = [reading for reading in readings if reading.exchange_id in added]
    cast = [vote for reading in new for vote in _votes(reading)]
    if cast:
        await connection.execute(insert(votes), cast)
    tiles = sorted({(reading.hour, reading.coder) for reading in new})
    if tiles:
        await connection.execute(insert(stale_tiles), [{"hour": hour, "coder": coder} for hour, coder in tiles])
    return len(new)


def _coding(reading: Reading, now: datetime) -> dict[str, Any]:
    selection, elaboration = reading.selection, reading.elaboration
    remainder = selection.remainder if selection is not None else ""
    return {
        "exchange_id": reading.exchange_id,
        "coder": reading.coder,
        "hour": reading.hour,
        **asdict(reading.subject),
        "sel": selection.label if selection else None,
        "sel_reason": selection.reason.value if selection and selection.reason else None,
        "sel_via": selection.via.value if selection else None,
        "elab": elaboration.label if elaboration else None,
        "elab_reason": elaboration.reason.value if elaboration and elaboration.reason else None,
        "remainder_hash": hashlib.sha256(remainder.encode("utf-8", "replace")).digest() if remainder else None,
        "uncoded": reading.uncoded.value if reading.uncoded else None,
        "coded_at": now,
    }


def _votes(reading: Reading) -> list[dict[str, Any]]:
    verdicts = reading.elaboration.verdicts if reading.elaboration else ()
    return [
        {
            "exchange_id": reading.exchange_id,
            "coder": reading.coder,
            "judge": verdict.judge,
            "label": verdict.label,
            "reason": verdict.reason.value if verdict.reason else None,
            # PostgreSQL's text holds neither NUL nor half a surrogate pair, and a judge's sentence may.
            "rationale": verdict.rationale.replace("\0", "\ufffd").encode("utf-8", "replace").decode(),
        }
        for verdict in verdicts
    ]
