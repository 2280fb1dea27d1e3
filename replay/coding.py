"""The coded answers of exchanges: those that are stored already, the others read now and stored beside them.

The one place where a replay meets the coding chain (``auditor.live``, ``auditor.store.codings``): the same coders, the
same tables, so that nothing is judged twice, by whomever first. ``compare`` takes what comes out.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.domain.condition import Task
from auditor.domain.subject import Reading
from auditor.instrument.pool import record_of
from auditor.instrument.templates import canonical
from auditor.live.coders import Coder
from auditor.live.readings import Reader
from auditor.metrics.joint import Coded
from auditor.store.codings import StoredAnswer, add_readings, read_uncoded, register_coder
from replay.pick import Parent
from replay.stored import read_codings

#: Exchanges that are in the hands of judges at once.
_IN_FLIGHT: Final = 64

Connect = Callable[[], AbstractAsyncContextManager[AsyncConnection]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Label:
    """What is known of one answer: both labels or why there are none, and what they are counted under."""

    coded: Coded | None
    uncoded: str | None
    rubric: str
    claim: str | None
    cluster: str


@dataclass(frozen=True, kw_only=True, slots=True)
class About:
    """What a replay of client traffic was asked: it stands in no plan, so the coder has to be told."""

    parent: Parent
    task: Task
    label: Label  #: of the parent's own answer


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """Exchanges for one coder. ``about`` is given for replays of client traffic only."""

    coder: Coder
    ids: Sequence[UUID]
    about: Mapping[UUID, About] = field(default_factory=dict)


def planned_coder(coders: Sequence[Coder]) -> Coder:
    """Find the coder of probes and of their replays."""
    return next(coder for coder in coders if coder.routes is None)


def coder_of_route(coders: Sequence[Coder], route: str) -> Coder | None:
    """Find who reads a route's traffic."""
    return next((coder for coder in coders if coder.routes is not None and route in coder.routes), None)


def replay_coder(traffic: Coder) -> Coder:
    """Make the coder of replays of a route's traffic: the same judges, or none; the selection by the format's rule."""
    return replace(traffic, id=f"{traffic.id}/replay", audit=None, routes=None)


async def label_all(connect: Connect, work: Work, now: datetime, on_done: Callable[[int], None]) -> dict[UUID, Label]:
    """Give the labels of all exchanges of ``work``, reading and storing those that have none.

    Raises
    ------
    JudgeUnavailable
        A judge could not be asked. What has been read until then is stored, and is not read again.
    """
    coder = work.coder
    async with connect() as connection:
        await register_coder(connection, coder.id, coder.rubric, coder.description, now)
        labels = {row["exchange_id"]: _stored_label(row) for row in await read_codings(connection, coder.id, work.ids)}
    on_done(len(labels))
    missing = [each for each in work.ids if each not in labels]
    reader = Reader(coder)
    for start in range(0, len(missing), _IN_FLIGHT):
        chunk = missing[start : start + _IN_FLIGHT]
        async with connect() as connection:
            answers = await read_uncoded(connection, coder.id, chunk)
        readings = await asyncio.gather(*(_read(reader, answer, work.about) for answer in answers))
        async with connect() as connection:
            await add_readings(connection, readings, now)
        async with connect() as connection:  # what somebody else has stored meanwhile is what counts
            rows = await read_codings(connection, coder.id, chunk)
        labels |= {row["exchange_id"]: _stored_label(row) for row in rows}
        on_done(len(chunk))
    return labels


async def _read(reader: Reader, answer: StoredAnswer, about: Mapping[UUID, About]) -> Reading:
    known = about.get(answer.facts["id"])
    if known is None:
        return await reader.read(answer)
    reading = await reader.read(replace(answer, asked=_asked(known), statement=record_of(known.parent.statement)))
    subject = replace(reading.subject, claim=known.label.claim, cluster=known.label.cluster)
    return replace(reading, subject=subject)


def _asked(about: About) -> Mapping[str, Any]:
    condition, template = about.parent.condition, canonical(about.task)
    return {
        "task": str(about.task),
        "perspective": str(condition.perspective),
        "role": str(condition.role),
        "sentiment": str(condition.sentiment),
        "invites_reason": template.invites_reason,
        "statement_id": about.parent.statement.id,
        "template_id": template.template_id,
        "draw": about.parent.draw,
    }


def _stored_label(row: Mapping[Any, Any]) -> Label:
    coded = None
    if row["uncoded"] is None:
        coded = Coded(sel=row["sel"], sel_reason=row["sel_reason"], elab=row["elab"], elab_reason=row["elab_reason"])
    return Label(coded=coded, uncoded=row["uncoded"], rubric=row["rubric"], claim=row["claim"], cluster=row["cluster"])
