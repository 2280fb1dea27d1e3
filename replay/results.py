"""Code the answers of a replay, compare them in pairs, and make ``comparison.json``."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Final
from uuid import UUID

from msgspec.structs import asdict
from sqlalchemy.ext.asyncio import AsyncEngine

from auditor.bulk.engines import BulkEngine
from auditor.counting.joint import LabelPair
from auditor.documents.codec import json_object
from auditor.documents.comparison import CallsEntry, CoderEntry, ComparisonDocument, GroupKeyEntry
from auditor.domain.coding import ABSTAIN, ElaborationReason, SelectionReason
from auditor.domain.condition import Task
from auditor.domain.exchange import Origin
from auditor.store.engine import transaction
from auditor.store.exposures import ExposureRow, replace_exposures
from auditor.work import Work
from replay import store
from replay.coding import (
    AnswerLabels,
    BulkCoding,
    ReplayContext,
    add_replay_coder,
    coder_entry,
    coder_of_route,
    label_all,
    open_replay_coding,
    planned_coder,
)
from replay.comparison.arms import STORED, Arm
from replay.comparison.findings import ComparisonGroup, group_entry
from replay.formats import ReplayFormat
from replay.parents import Parent
from replay.plan import PreparedReplay
from replay.progress import OnProgress, ProgressCounter

_NOT_SENT: Final = "not_sent"
#: A planned instance without a complete exchange: there is no response.
NO_RESPONSE: Final = LabelPair(
    sel=ABSTAIN,
    sel_reason=SelectionReason.TRANSPORT_ERROR.value,
    elab=ABSTAIN,
    elab_reason=ElaborationReason.TRANSPORT_ERROR.value,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ParentOutcome:
    """One parent's labels, of the stored answer and of each format's answer, or the reasons for their absence."""

    parent: Parent
    label: AnswerLabels
    replays: Mapping[ReplayFormat, AnswerLabels | str | None]  #: ``None``: asked without an answer
    #: Completion tokens of each answer, with the stored answer's under ``None``; the value ``None`` means unknown.
    tokens: Mapping[ReplayFormat | None, int | None] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplayHeader:
    """The facts of the replay as a whole."""

    id: str
    select: str
    formats: Sequence[ReplayFormat]
    to: str | None = None  #: the deployment that was asked instead of the original ones
    seed: int
    coders: Mapping[str, CoderEntry]  #: by id
    left_out: Mapping[str, int]  #: selected exchanges that could not be asked again, by reason
    failures: Mapping[str, int]  #: planned instances without an answer, by failure


async def conclude(
    work: Work,
    prepared: PreparedReplay,
    answered: Mapping[str, UUID],
    on_progress: OnProgress,
    engine: BulkEngine | None = None,
) -> ComparisonDocument:
    """Code all uncoded answers, and compare them.

    Parameters
    ----------
    engine
        Engine that codes the answers; None: this process does.

    Raises
    ------
    JudgeUnavailable
        A judge could not be asked; earlier codings are stored.
    """
    done = ProgressCounter("coding", len(prepared.parents) + len(answered), on_progress)
    labels, coders = await _label(work, prepared, answered, done, engine)
    async with transaction(work.engine) as connection:
        waiting = [call.ref for call in prepared.calls if call.ref not in answered]
        failures = await store.read_failures(connection, waiting)
        tokens = await store.read_tokens(connection, answered.values())
    replay = ReplayHeader(
        id=prepared.id,
        select=prepared.spec.selection.canonical,
        formats=prepared.spec.formats,
        to=prepared.spec.to,
        seed=work.config.seed,
        coders={each: coder_entry(work.coders[each].coder) for each in sorted(coders)},
        left_out=prepared.left_out,
        failures=Counter(failures.get(ref, _NOT_SENT) for ref in waiting),
    )
    outcomes = {ref: labels.get(exchange, "gone") for ref, exchange in answered.items()} | dict.fromkeys(failures)
    taken = {ref: tokens.get(exchange) for ref, exchange in answered.items()}
    parent_outcomes = [
        _parent_outcome(prepared, parent, labels[parent.id], outcomes, taken)
        for parent in prepared.parents.values()
        if parent.id in labels
    ]
    return make_document(replay, parent_outcomes)


async def _label(
    work: Work,
    prepared: PreparedReplay,
    answered: Mapping[str, UUID],
    done: ProgressCounter,
    engine: BulkEngine | None,
) -> tuple[dict[UUID, AnswerLabels], set[str]]:
    """Return the labels of parents and replays by exchange, and the coders that made them."""
    coder = planned_coder(work)
    bulk = None if engine is None else BulkCoding(engine=engine)
    probes = [parent.id for parent in prepared.parents.values() if parent.origin is Origin.PROBE]
    replays = [
        answered[call.ref] for call in prepared.calls if call.ref in answered and call.parent.origin is Origin.PROBE
    ]
    labels = await label_all(work, coder, [*probes, *replays], done.add, bulk)
    used = {coder.id} if probes else set()
    clients = [parent for parent in prepared.parents.values() if parent.origin is Origin.CLIENT]
    for route in sorted({parent.route for parent in clients}):
        traffic = coder_of_route(work, route)
        if traffic is None:
            continue
        ids = [parent.id for parent in clients if parent.route == route]
        labels |= await label_all(work, traffic, ids, done.add, bulk)
        about = {
            answered[call.ref]: ReplayContext(
                parent=parent, format=call.format, label=labels[parent.id], request=prepared.requests.get(parent.id)
            )
            for parent in clients
            if parent.route == route and parent.id in labels
            for call in prepared.calls_of[parent.id]
            if call.ref in answered
        }
        wider, replaying = await add_replay_coder(work, traffic, about)
        replay_bulk = None if bulk is None else replace(bulk, opener=partial(open_replay_coding, route, about))
        labels |= await label_all(wider, replaying, list(about), done.add, replay_bulk)
        used.add(traffic.id)
    return labels, used


def _parent_outcome(
    prepared: PreparedReplay,
    parent: Parent,
    label: AnswerLabels,
    outcomes: Mapping[str, AnswerLabels | str | None],
    tokens: Mapping[str, int | None],
) -> ParentOutcome:
    """Collect the labels of one parent, with the reason for each format without one."""
    refs = {call.format: call.ref for call in prepared.calls_of[parent.id]}
    blocked = prepared.blocked[parent.id]
    return ParentOutcome(
        parent=parent,
        label=label,
        replays={
            each: outcomes.get(refs[each], _NOT_SENT) if each in refs else blocked.get(each, "not_planned")
            for each in prepared.spec.formats
        },
        tokens={None: parent.completion_tokens} | {each: tokens.get(ref) for each, ref in refs.items()},
    )


def make_document(replay: ReplayHeader, outcomes: Sequence[ParentOutcome]) -> ComparisonDocument:
    """Compare every two arms in every group."""
    answered = sum(isinstance(each, AnswerLabels) for outcome in outcomes for each in outcome.replays.values())
    return ComparisonDocument(
        schema="biasmeter.replay/1",
        replay=replay.id,
        select=replay.select,
        formats=[each.key for each in replay.formats],
        to=replay.to,
        seed=replay.seed,
        coders=replay.coders,
        parents=len(outcomes),
        left_out=replay.left_out,
        calls=CallsEntry(planned=answered + sum(replay.failures.values()), answered=answered, failed=replay.failures),
        groups=[group_entry(group, replay.seed) for group in _groups(outcomes, replay)],
    )


_Key = tuple[str, str, str, str, str, str]


def _groups(outcomes: Sequence[ParentOutcome], replay: ReplayHeader) -> Iterator[ComparisonGroup]:
    by_key: dict[_Key, list[ParentOutcome]] = defaultdict(list)
    for outcome in outcomes:
        parent, label = outcome.parent, outcome.label
        # A route has its own audit profile, and its own permission to show answers to judges.
        route = parent.route if parent.origin is Origin.CLIENT else ""
        task_name = str(parent.task or "")
        key = (parent.deployment, str(parent.origin), route, task_name, label.rubric, label.claim or "")
        by_key[key].append(outcome)
    for key in sorted(by_key):
        deployment, origin, route, task, rubric, claim = key
        rows = sorted(by_key[key], key=lambda outcome: outcome.parent.id)
        stored = Task(task) if task else None
        elsewhere = replay.to not in {None, deployment}
        arms = [_arm(rows, each, stored, elsewhere=elsewhere) for each in replay.formats]
        excluded_reason = f"answered by {deployment}, the others by {replay.to}" if elsewhere else ""
        yield ComparisonGroup(
            by=GroupKeyEntry(
                deployment=deployment,
                origin="probe" if origin == Origin.PROBE else "client",
                route=route or None,
                task=task or None,
            ),
            rubric=rubric,
            claim=claim or None,
            clusters=[row.label.cluster for row in rows],
            inclusions=[row.parent.inclusion for row in rows],
            arms=[_stored_arm(rows, stored, excluded_reason), *arms],
        )


def _stored_arm(rows: Sequence[ParentOutcome], task: Task | None, excluded_reason: str) -> Arm:
    answers = [_answer(row.label) for row in rows]
    return Arm(
        name=STORED,
        task=task,
        answers=answers,
        rubric=rows[0].label.rubric,
        excluded_reason=excluded_reason,
        tokens=[row.tokens.get(None) for row in rows],
    )


def _arm(rows: Sequence[ParentOutcome], target: ReplayFormat, stored: Task | None, *, elsewhere: bool) -> Arm:
    changes = _changes(rows, target)
    return Arm(
        name=target.key,
        # Answers to a framed question of a client are read by the route's rule, like those to the question itself.
        task=target.task if target.task and all(row.parent.statement is not None for row in rows) else stored,
        answers=[_answer(row.replays[target]) for row in rows],
        rubric=rows[0].label.rubric,
        changes=changes,
        repeats=not changes and not elsewhere,
        tokens=[row.tokens.get(target) for row in rows],
    )


def _changes(rows: Sequence[ParentOutcome], target: ReplayFormat) -> dict[str, str]:
    """Return the changes of a format; for probes only those that differ from at least one parent."""
    levels = {factor: str(level) for factor, level in target.levels.items()} | (
        {"swap": target.swap} if target.swap else {}
    )
    return {
        factor: level
        for factor, level in levels.items()
        if any(
            row.parent.origin is Origin.CLIENT or str(getattr(row.parent.condition, factor, "")) != level
            for row in rows
        )
    }


def _answer(label: AnswerLabels | str | None) -> LabelPair | str:
    if label is None:
        return NO_RESPONSE
    if isinstance(label, str):
        return label
    return label.coded if label.coded is not None else f"uncoded_{label.uncoded}"


async def store_exposures(engine: AsyncEngine, document: ComparisonDocument, now: datetime) -> None:
    """Store a document's exposures, and replace earlier ones."""
    async with transaction(engine) as connection:
        await replace_exposures(connection, document.replay, list(exposure_rows(document, now)))


def exposure_rows(document: ComparisonDocument, now: datetime) -> Iterator[ExposureRow]:
    """Yield the rows to store; none if another deployment was asked, because the answers are of two deployments."""
    if document.to is not None:
        return
    for group in document.groups:
        for metric, entry in group.exposure.items():
            yield ExposureRow(
                replay_id=document.replay,
                concluded_at=now,
                selection=document.select,
                **asdict(group.by),
                rubric=group.rubric,
                claim=group.claim,
                metric=metric,
                exposure=json_object(entry),
            )
