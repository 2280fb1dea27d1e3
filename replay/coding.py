"""The coded answers of exchanges: those that are stored already, the others coded now and stored beside them.

The one place where a replay meets the jobs (``auditor.jobs.code``): the same coders, the same tables; what a running
auditor has coded or has in hand is left to it. ``comparison`` takes what comes out.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from typing_extensions import override

from auditor.config import Audit
from auditor.domain.subject import Reading
from auditor.instrument.pool import record_of
from auditor.jobs.code import code_chunk
from auditor.jobs.work import Work
from auditor.live.coders import Coder
from auditor.live.readings import Passage, Reader
from auditor.metrics.joint import Coded
from auditor.store.codings import StoredAnswer, register_coder
from auditor.store.engine import reading
from auditor.store.queue import Chunk, held_chunks
from replay.formats import Format
from replay.pick import Parent
from replay.rewriting.calls import condition_of, puts_statement, template_of
from replay.stored import read_codings

#: Exchanges between two looks at the progress.
_SLICE: Final = 64
#: A worker that has not been heard of for so long holds nothing any more.
_ALIVE: Final = timedelta(seconds=60)
_LOOK_AGAIN: Final = 0.5


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
    """What a replay of client traffic was asked: it stands in no plan, so its reader has to be told."""

    parent: Parent
    format: Format
    label: Label  #: of the parent's own answer: whose request it was, and what its proposition claims
    request: bytes | None = None  #: the parent's, where its own request was put otherwise


class TrafficReplayReader(Reader):
    """Reads replays of client traffic, counted under what their parents are.

    Statements are read by the format they were put in, clients' own requests by the rules of their route.
    """

    def __init__(self, coder: Coder, audit: Audit | None, about: Mapping[UUID, About]) -> None:
        super().__init__(coder)
        self._by_route = Reader(replace(coder, audit=audit))
        self._by_format = Reader(coder)
        self._about = about

    @override
    def read_now(self, stored: StoredAnswer) -> Reading:
        reader, asked = self._way(stored)
        return self._owned(reader.read_now(asked))

    @override
    async def read(self, stored: StoredAnswer) -> Reading:
        reader, asked = self._way(stored)
        return self._owned(await reader.read(asked))

    @override
    def passage(self, stored: StoredAnswer) -> Passage | None:
        reader, asked = self._way(stored)
        return reader.passage(asked)

    @override
    def failed(self, stored: StoredAnswer) -> Reading:
        reader, asked = self._way(stored)
        return self._owned(reader.failed(asked))

    def _way(self, stored: StoredAnswer) -> tuple[Reader, StoredAnswer]:
        about = self._about[stored.facts["id"]]
        if puts_statement(about.parent, about.format):
            return self._by_format, _asked(stored, about)
        # A framing moves what stands around the proposition, and a swap may change the proposition itself.
        own = stored if about.format.swap else replace(stored, request=about.request)
        return self._by_route, own

    def _owned(self, made: Reading) -> Reading:
        label = self._about[made.exchange_id].label
        return replace(made, subject=replace(made.subject, claim=label.claim, cluster=label.cluster))


def _asked(stored: StoredAnswer, about: About) -> StoredAnswer:
    """Say what a plan would say of it."""
    parent = about.parent
    assert parent.statement is not None
    condition, template = condition_of(parent, about.format), template_of(parent, about.format)
    asked: dict[str, Any] = {
        "task": str(condition.task),
        "perspective": str(condition.perspective),
        "role": str(condition.role),
        "sentiment": str(condition.sentiment),
        "invites_reason": template.invites_reason,
        "statement_id": parent.statement.id,
        "template_id": template.template_id,
        "draw": parent.draw,
    }
    return replace(stored, asked=asked, statement=record_of(parent.statement))


def planned_coder(work: Work) -> Coder:
    """Find the coder of probes and of their replays."""
    return next(reader.coder for reader in work.readers.values() if reader.coder.routes is None)


def coder_of_route(work: Work, route: str) -> Coder | None:
    """Find who reads a route's traffic."""
    coders = (reader.coder for reader in work.readers.values())
    return next((coder for coder in coders if coder.routes is not None and route in coder.routes), None)


async def with_replays(work: Work, traffic: Coder, about: Mapping[UUID, About]) -> tuple[Work, Coder]:
    """Add the coder of replays of a route's traffic: the route's judges, or none."""
    coder = replace(traffic, id=f"{traffic.id}/replay", audit=None, routes=None)
    async with reading(work.engine) as connection:
        await register_coder(connection, coder.id, coder.rubric, coder.description, work.clock())
    return replace(work, readers={**work.readers, coder.id: TrafficReplayReader(coder, traffic.audit, about)}), coder


async def label_all(work: Work, coder: Coder, ids: Sequence[UUID], on_done: Callable[[int], None]) -> dict[UUID, Label]:
    """Give the labels of exchanges, coding those that have none.

    Raises
    ------
    JudgeUnavailable
        A judge could not be asked. What has been coded until then is stored, and is not coded again.
    """
    labels = await _stored(work, coder, ids)
    on_done(len(labels))
    missing = [each for each in ids if each not in labels]
    while missing:
        held = await _held(work, coder)
        free = tuple(each for each in missing if each not in held)[:_SLICE]
        if free:
            await code_chunk(work, Chunk(coder=coder.id, ids=free))
        else:
            await asyncio.sleep(_LOOK_AGAIN)
        found = await _stored(work, coder, missing)
        labels |= found
        left = [each for each in missing if each not in found and each not in free]
        on_done(len(missing) - len(left))
        missing = left
    return labels


async def _held(work: Work, coder: Coder) -> set[UUID]:
    """Tell what an auditor process is coding now: judges are not asked twice."""
    async with reading(work.engine) as connection:
        chunks = await held_chunks(connection, _ALIVE)
    return {each for chunk in chunks if chunk.coder == coder.id for each in chunk.ids}


async def _stored(work: Work, coder: Coder, ids: Sequence[UUID]) -> dict[UUID, Label]:
    async with reading(work.engine) as connection:
        rows = await read_codings(connection, coder.id, ids)
    return {row["exchange_id"]: _label(row) for row in rows}


def _label(row: Mapping[Any, Any]) -> Label:
    coded = None
    if row["uncoded"] is None:
        labels = {name: row[name] for name in ("sel", "sel_reason", "elab", "elab_reason")}
        coded = Coded(**labels)
    return Label(coded=coded, uncoded=row["uncoded"], rubric=row["rubric"], claim=row["claim"], cluster=row["cluster"])
