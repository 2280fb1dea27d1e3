"""Store codings and the coders that made them; read the exchanges that are to be coded."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Double,
    Identity,
    LargeBinary,
    Select,
    Table,
    Text,
    Uuid,
    and_,
    exists,
    not_,
    select,
)
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.domain.coding import Coding
from auditor.domain.ids import id_time
from auditor.store.engine import metadata
from auditor.store.exchanges import decode_body, erased_among, exchange_content, exchanges
from auditor.store.partitions import make_days
from auditor.store.plans import planned_calls, statements

coders = Table(
    "coders",
    metadata,
    Column("id", Text, primary_key=True),
    Column("rubric", Text, nullable=False),
    Column("description", JSONB, nullable=False),
    Column("first_used_at", DateTime(timezone=True), nullable=False),
)


def subject_columns() -> list[Column[Any]]:
    """Return the columns of the joint table's key: what was asked, and what was coded."""
    required = ("deployment", "origin", "rubric")
    optional = ("audit", "claim", "task", "perspective", "role", "sentiment")
    return [
        *(Column(name, Text, nullable=False) for name in required),
        *(Column(name, Text) for name in optional),
        Column("invites_reason", Boolean),
        Column("category", Text),
        Column("cluster", Text, nullable=False),
        Column("inclusion", Double, nullable=False),
    ]


codings = Table(
    "codings",
    metadata,
    Column("exchange_id", Uuid, primary_key=True),
    Column("coder", Text, primary_key=True),
    Column("hour", DateTime(timezone=True), nullable=False),
    *subject_columns(),
    Column("sel", Text),
    Column("sel_reason", Text),
    Column("sel_via", Text),
    Column("elab", Text),
    Column("elab_reason", Text),
    Column("remainder_hash", LargeBinary),
    Column("uncoded", Text),
    Column("coded_at", DateTime(timezone=True), nullable=False),
)


votes = Table(
    "votes",
    metadata,
    Column("exchange_id", Uuid, primary_key=True),
    Column("coder", Text, primary_key=True),
    Column("judge", Text, primary_key=True),
    Column("label", Text, nullable=False),
    Column("reason", Text),
    Column("rationale", Text, nullable=False),
)


stale_tiles = Table(
    "stale_tiles",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("hour", DateTime(timezone=True), nullable=False),
    Column("coder", Text, nullable=False),
)


_CALL_FIELDS: Final = (
    "task",
    "perspective",
    "role",
    "sentiment",
    "invites_reason",
    "statement_id",
    "template_id",
    "draw",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredAnswer:
    """One exchange to be coded: its facts, its planned call, and its content if that is stored."""

    facts: Mapping[str, Any]
    planned_call: Mapping[str, Any] | None  #: fields of the planned call, if there is one
    statement: Mapping[str, Any] | None
    request: bytes | None
    response: bytes | None


async def read_uncoded(connection: AsyncConnection, coder: str, ids: Sequence[UUID]) -> list[StoredAnswer]:
    """Read those of the exchanges that the coder has not coded, with everything that coding needs."""
    read = exists().where(codings.c.exchange_id == exchanges.c.id, codings.c.coder == coder)
    return [_row(row) for row in (await connection.execute(_stored(ids).where(not_(read)))).mappings()]


async def read_again(connection: AsyncConnection, ids: Sequence[UUID]) -> list[StoredAnswer]:
    """Read exchanges with everything that coding needs, also if they are coded already."""
    return [_row(row) for row in (await connection.execute(_stored(ids))).mappings()]


async def read_clusters(connection: AsyncConnection, coder: str, ids: Sequence[UUID]) -> dict[UUID, str]:
    """Return the cluster of each coded exchange, which is its statement for planned calls."""
    query = select(codings.c.exchange_id, codings.c.cluster).where(
        codings.c.coder == coder, codings.c.exchange_id.in_(ids)
    )
    return {row.exchange_id: row.cluster for row in await connection.execute(query)}


def _stored(ids: Sequence[UUID]) -> Select[Any]:
    # The ids stand in the join too: of those of the other table alone, PostgreSQL may read the content of every day.
    content = and_(exchange_content.c.id == exchanges.c.id, exchange_content.c.id.in_(ids))
    return (
        select(
            exchanges,
            exchange_content.c.request.label("content_request"),
            exchange_content.c.response.label("content_response"),
            *(planned_calls.c[name].label(f"planned_{name}") for name in _CALL_FIELDS),
            statements.c.record.label("statement_record"),
        )
        .outerjoin(exchange_content, content)
        .outerjoin(planned_calls, planned_calls.c.ref == exchanges.c.ref)
        .outerjoin(statements, statements.c.id == planned_calls.c.statement_id)
        .where(exchanges.c.id.in_(ids))
        .order_by(exchanges.c.id)
    )


def _row(row: Mapping[Any, Any]) -> StoredAnswer:
    call = {name: row[f"planned_{name}"] for name in _CALL_FIELDS}
    return StoredAnswer(
        facts={column.name: row[column.name] for column in exchanges.columns},
        planned_call=call if call["task"] is not None else None,
        statement=row["statement_record"],
        request=row["content_request"],
        response=decode_body(row["content_response"], row["content_encoding"]),
    )


async def register_coder(
    connection: AsyncConnection, coder: str, rubric: str, description: Mapping[str, Any], now: datetime
) -> None:
    """Store the description of a coder; the first description of an id is kept."""
    row = {"id": coder, "rubric": rubric, "description": dict(description), "first_used_at": now}
    await connection.execute(insert(coders).values(row).on_conflict_do_nothing())


async def read_descriptions(connection: AsyncConnection, ids: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """Read the descriptions of coders, by id."""
    query = select(coders.c.id, coders.c.description).where(coders.c.id.in_(ids))
    return {row.id: row.description for row in await connection.execute(query)}


unsent_codings = Table(
    "unsent_codings",
    metadata,
    Column("exchange_id", Uuid, primary_key=True),
    Column("coder", Text, primary_key=True),
)


async def add_codings(
    connection: AsyncConnection, new_codings: Sequence[Coding], now: datetime, *, to_send: bool = False
) -> list[Coding]:
    """Store codings with their votes, and mark their tiles; existing ones, and those of erased exchanges, are not.

    With ``to_send`` the new ones are also put down for the OTLP collector.

    It needs a transaction of its own, because it creates missing partitions. Return the new codings.
    """
    erased = await erased_among(connection, [coding.exchange_id for coding in new_codings]) if new_codings else set()
    new_codings = [coding for coding in new_codings if coding.exchange_id not in erased]
    if not new_codings:
        return []
    days = {id_time(coding.exchange_id).date() for coding in new_codings}
    await make_days(connection, ("codings", "votes", "answer_words"), days, "biasmeter coding partitions")
    rows = [_coding(coding, now) for coding in new_codings]
    added = set(
        (
            await connection.execute(
                insert(codings).values(rows).on_conflict_do_nothing().returning(codings.c.exchange_id)
            )
        ).scalars()
    )
    new = [coding for coding in new_codings if coding.exchange_id in added]
    cast = [vote for coding in new for vote in _votes(coding)]
    if cast:
        await connection.execute(insert(votes), cast)
    if to_send and new:
        rows = [{"exchange_id": coding.exchange_id, "coder": coding.coder} for coding in new]
        await connection.execute(insert(unsent_codings).values(rows).on_conflict_do_nothing())
    tiles = sorted({(coding.hour, coding.coder) for coding in new})
    if tiles:
        await connection.execute(insert(stale_tiles), [{"hour": hour, "coder": coder} for hour, coder in tiles])
    return new


def _coding(coding: Coding, now: datetime) -> dict[str, Any]:
    selection, elaboration = coding.selection, coding.elaboration
    remainder = selection.remainder if selection is not None else ""
    return {
        "exchange_id": coding.exchange_id,
        "coder": coding.coder,
        "hour": coding.hour,
        **asdict(coding.key),
        "sel": selection.label if selection else None,
        "sel_reason": selection.reason.value if selection and selection.reason else None,
        "sel_via": selection.via.value if selection else None,
        "elab": elaboration.label if elaboration else None,
        "elab_reason": elaboration.reason.value if elaboration and elaboration.reason else None,
        "remainder_hash": hashlib.sha256(remainder.encode("utf-8", "replace")).digest() if remainder else None,
        "uncoded": coding.uncoded.value if coding.uncoded else None,
        "coded_at": now,
    }


def _votes(coding: Coding) -> list[dict[str, Any]]:
    verdicts = coding.elaboration.verdicts if coding.elaboration else ()
    return [
        {
            "exchange_id": coding.exchange_id,
            "coder": coding.coder,
            "judge": verdict.judge,
            "label": verdict.label,
            "reason": verdict.reason.value if verdict.reason else None,
            # PostgreSQL's text accepts neither NUL nor half a surrogate pair, and a judge's text may hold them.
            "rationale": verdict.rationale.replace("\0", "\ufffd").encode("utf-8", "replace").decode(),
        }
        for verdict in verdicts
    ]
