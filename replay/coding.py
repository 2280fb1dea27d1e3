"""Read the stored codings of exchanges, and code the exchanges that have none.

This is the only module of a replay that uses the jobs (``auditor.jobs.code``): the same coders and tables. What a
running auditor has coded, or is coding, is not coded again.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any, Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncEngine
from typing_extensions import override

from auditor.bulk.engines import BulkEngine, Opener, Step, do_all
from auditor.bulk.pending import CHUNK
from auditor.bulk.run import open_coding
from auditor.coding.coders import Coder
from auditor.coding.exchanges import ExchangeCoder, Passage
from auditor.config import Audit, Config
from auditor.counting.joint import LabelPair
from auditor.documents.comparison import CoderEntry
from auditor.domain.coding import Coding
from auditor.instrument.pool import record_of
from auditor.jobs.code import code_chunk
from auditor.store.codings import StoredAnswer, register_coder
from auditor.store.engine import transaction
from auditor.store.queue import Chunk, held_chunks
from auditor.work import Work, open_work, utc_now
from replay.calls import asks_statement, condition_of, template_of
from replay.formats import ReplayFormat
from replay.parents import Parent
from replay.store import read_codings

#: Number of exchanges between two progress reports.
_SLICE: Final = 64
#: A worker without a heartbeat for this long holds no chunk.
_ALIVE: Final = timedelta(seconds=60)
_LOOK_AGAIN: Final = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerLabels:
    """Both labels of one answer, or the reason for their absence, and the keys under which they are counted."""

    coded: LabelPair | None
    uncoded: str | None
    rubric: str
    claim: str | None
    cluster: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplayContext:
    """What was asked in a replay of client traffic. It is in no plan, so the coder gets it from here."""

    parent: Parent
    format: ReplayFormat
    label: AnswerLabels  #: the coding key of the parent's own answer: route, and claim of the proposition
    request: bytes | None = None  #: the parent's, if its own request was rewritten


class TrafficReplayCoder(ExchangeCoder):
    """A coder of replays of client traffic, which counts them under the claim and cluster of their parents.

    Answers about statements are read by the rules of their format, those to clients' own requests by the rules of their
    route.
    """

    def __init__(self, coder: Coder, audit: Audit | None, about: Mapping[UUID, ReplayContext]) -> None:
        super().__init__(coder)
        self._by_route = ExchangeCoder(replace(coder, audit=audit))
        self._by_format = ExchangeCoder(coder)
        self._about = about

    @override
    async def code(self, stored: StoredAnswer) -> Coding:
        coder, answer = self._select_coder(stored)
        return self._owned(await coder.code(answer))

    @override
    def passage(self, stored: StoredAnswer) -> Passage | None:
        coder, answer = self._select_coder(stored)
        return coder.passage(answer)

    @override
    def failed(self, stored: StoredAnswer) -> Coding:
        coder, answer = self._select_coder(stored)
        return self._owned(coder.failed(answer))

    def _select_coder(self, stored: StoredAnswer) -> tuple[ExchangeCoder, StoredAnswer]:
        about = self._about[stored.facts["id"]]
        if asks_statement(about.parent, about.format):
            return self._by_format, _with_plan(stored, about)
        # A framing moves the text around the proposition, and a swap may change the proposition itself.
        answer = stored if about.format.swap else replace(stored, request=about.request)
        return self._by_route, answer

    def _owned(self, made: Coding) -> Coding:
        label = self._about[made.exchange_id].label
        return replace(made, key=replace(made.key, claim=label.claim, cluster=label.cluster))


def _with_plan(stored: StoredAnswer, about: ReplayContext) -> StoredAnswer:
    """Add the fields that a plan would have for the answer."""
    parent = about.parent
    assert parent.statement is not None
    condition, template = condition_of(parent, about.format), template_of(parent, about.format)
    planned: dict[str, Any] = {
        "task": str(condition.task),
        "perspective": str(condition.perspective),
        "role": str(condition.role),
        "sentiment": str(condition.sentiment),
        "invites_reason": template.invites_reason,
        "statement_id": parent.statement.id,
        "template_id": template.template_id,
        "draw": parent.draw,
    }
    return replace(stored, planned_call=planned, statement=record_of(parent.statement))


def planned_coder(work: Work) -> Coder:
    """Find the coder of probes and of their replays."""
    return next(entry.coder for entry in work.coders.values() if entry.coder.routes is None)


def coder_of_route(work: Work, route: str) -> Coder | None:
    """Find the coder of a route's traffic."""
    coders = (entry.coder for entry in work.coders.values())
    return next((coder for coder in coders if coder.routes is not None and route in coder.routes), None)


def coder_entry(coder: Coder) -> CoderEntry:
    """Return a summary of a coder's description for the document."""
    judges = [judge.name for judge in coder.panel.judges] if coder.panel is not None else []
    return CoderEntry(rubric=coder.rubric, selection=str(coder.description["selection"]), judges=judges)


async def add_replay_coder(work: Work, traffic: Coder, about: Mapping[UUID, ReplayContext]) -> tuple[Work, Coder]:
    """Add the coder of replays of a route's traffic: the route's judges, or none."""
    coder = replace(traffic, id=f"{traffic.id}/replay", audit=None, routes=None)
    async with transaction(work.engine) as connection:
        await register_coder(connection, coder.id, coder.rubric, coder.description, work.clock())
    return replace(work, coders={**work.coders, coder.id: TrafficReplayCoder(coder, traffic.audit, about)}), coder


@asynccontextmanager
async def open_replay_coding(
    route: str, about: Mapping[UUID, ReplayContext], store: AsyncEngine, config: Config
) -> AsyncIterator[Step]:
    """Prepare the function that codes a chunk of replays of a route's traffic, in a process of its own."""
    async with open_work(store, config, utc_now) as work:
        traffic = coder_of_route(work, route)
        assert traffic is not None  # of the same configuration
        wider, _ = await add_replay_coder(work, traffic, about)
        yield partial(code_chunk, wider)


@dataclass(frozen=True, kw_only=True, slots=True)
class BulkCoding:
    """Coding outside of this process."""

    engine: BulkEngine
    opener: Opener = open_coding


async def label_all(
    work: Work, coder: Coder, ids: Sequence[UUID], on_done: Callable[[int], None], bulk: BulkCoding | None = None
) -> dict[UUID, AnswerLabels]:
    """Return the labels of exchanges, after coding those without labels, in bulk if that is given.

    Raises
    ------
    JudgeUnavailable
        A judge could not be asked. Earlier codings are stored and are not repeated.
    """
    labels = await _stored(work, coder, ids)
    on_done(len(labels))
    missing = [each for each in ids if each not in labels]
    if bulk is not None and missing:
        held = await _held(work, coder)
        apart = [each for each in missing if each not in held]
        chunks = [
            Chunk(coder=coder.id, ids=tuple(apart[start : start + CHUNK])) for start in range(0, len(apart), CHUNK)
        ]
        if chunks:
            await do_all(work.engine, work.config, bulk.engine, bulk.opener, chunks, on_done)
        labels |= await _stored(work, coder, apart)
        missing = [each for each in missing if each in held]
    while missing:
        held = await _held(work, coder)
        free = tuple(each for each in missing if each not in held)[:_SLICE]
        if free:
            await code_chunk(work, Chunk(coder=coder.id, ids=free))
        else:
            await asyncio.sleep(_LOOK_AGAIN)
        coded = await _stored(work, coder, missing)
        labels |= coded
        left = [each for each in missing if each not in coded and each not in free]
        on_done(len(missing) - len(left))
        missing = left
    return labels


async def _held(work: Work, coder: Coder) -> set[UUID]:
    """Return the exchanges that an auditor process is coding now, so that judges are not asked twice."""
    async with transaction(work.engine) as connection:
        chunks = await held_chunks(connection, _ALIVE)
    return {each for chunk in chunks if chunk.coder == coder.id for each in chunk.ids}


async def _stored(work: Work, coder: Coder, ids: Sequence[UUID]) -> dict[UUID, AnswerLabels]:
    async with transaction(work.engine) as connection:
        rows = await read_codings(connection, coder.id, ids)
    return {row["exchange_id"]: _label(row) for row in rows}


def _label(row: Mapping[Any, Any]) -> AnswerLabels:
    coded = None
    if row["uncoded"] is None:
        labels = {name: row[name] for name in ("sel", "sel_reason", "elab", "elab_reason")}
        coded = LabelPair(**labels)
    return AnswerLabels(
        coded=coded, uncoded=row["uncoded"], rubric=row["rubric"], claim=row["claim"], cluster=row["cluster"]
    )
