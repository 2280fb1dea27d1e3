"""The words of ``comparison.json``: parents with all their answers, by group, as plain JSON values.

A group never mixes what must not be mixed: deployments, origins, routes of clients, the format in which the parents
were first asked, rubrics and what endorsing means. ``replay.page`` shows the document to people.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from auditor.analysis.document import Json
from auditor.domain.coding import ABSTAIN, ElaborationReason, SelectionReason
from auditor.domain.condition import Task
from auditor.domain.exchange import Origin
from auditor.metrics.joint import Coded
from replay.coding import Label
from replay.comparison.group import group_findings
from replay.comparison.sides import STORED, Side, Sides
from replay.formats import Format
from replay.pick import Parent

SCHEMA: Final = "tiltmeter.replay/1"
#: A planned instance without a complete exchange: there is no response.
NO_RESPONSE: Final = Coded(
    sel=ABSTAIN,
    sel_reason=SelectionReason.TRANSPORT_ERROR.value,
    elab=ABSTAIN,
    elab_reason=ElaborationReason.TRANSPORT_ERROR.value,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """One parent with what became of it: its own label, and each format's, or why it was not asked in that."""

    parent: Parent
    label: Label
    replays: Mapping[Format, Label | str | None]  #: ``None``: asked, and never answered
    #: Completion tokens of each answer, the stored one's under ``None``; ``None`` where they were not told.
    tokens: Mapping[Format | None, int | None] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Replay:
    """What a document says of the replay as a whole."""

    id: str
    select: str
    formats: Sequence[Format]
    to: str | None = None  #: the deployment that was asked instead of those which answered first
    seed: int
    coders: Mapping[str, Json]  #: description by id
    left_out: Mapping[str, int]  #: selected exchanges that could not be asked again, by reason
    failures: Mapping[str, int]  #: planned instances without an answer, by what went wrong


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """Parents that may be compared, and the ways in which all of them were asked, however those came about."""

    by: Mapping[str, Json]  #: deployment, origin, route and task, as the document names them
    rubric: str
    claim: str | None
    clusters: Sequence[str]  #: what each parent is about, in the order of the sides' answers
    inclusions: Sequence[float]  #: probability with which each parent is here
    sides: Sequence[Side]


def make_document(replay: Replay, asked: Sequence[Asked]) -> dict[str, Json]:
    """Compare every pair of sides in every group."""
    answered = sum(isinstance(each, Label) for one in asked for each in one.replays.values())
    return {
        "schema": SCHEMA,
        "replay": replay.id,
        "select": replay.select,
        "formats": [each.key for each in replay.formats],
        "to": replay.to,
        "seed": replay.seed,
        "coders": dict(replay.coders),
        "parents": len(asked),
        "left_out": dict(replay.left_out),
        "calls": {
            "planned": answered + sum(replay.failures.values()),
            "answered": answered,
            "failed": dict(replay.failures),
        },
        "groups": [group_json(group, replay.seed) for group in _groups(asked, replay)],
    }


_Key = tuple[str, str, str, str, str, str]


def _groups(asked: Sequence[Asked], replay: Replay) -> Iterator[Group]:
    by_key: dict[_Key, list[Asked]] = defaultdict(list)
    for one in asked:
        parent, label = one.parent, one.label
        # A route has its own audit profile, and its own leave to show anything to judges.
        route = parent.route if parent.origin is Origin.CLIENT else ""
        asked_as = str(parent.task or "")
        key = (parent.deployment, str(parent.origin), route, asked_as, label.rubric, label.claim or "")
        by_key[key].append(one)
    for key in sorted(by_key):
        deployment, origin, route, task, rubric, claim = key
        rows = sorted(by_key[key], key=lambda one: one.parent.id)
        stored = Task(task) if task else None
        elsewhere = replay.to not in {None, deployment}
        sides = [_side(rows, each, stored, elsewhere=elsewhere) for each in replay.formats]
        apart = f"answered by {deployment}, the others by {replay.to}" if elsewhere else ""
        yield Group(
            by={"deployment": deployment, "origin": origin, "route": route or None, "task": task or None},
            rubric=rubric,
            claim=claim or None,
            clusters=[row.label.cluster for row in rows],
            inclusions=[row.parent.inclusion for row in rows],
            sides=[_stored_side(rows, stored, apart), *sides],
        )


def group_json(group: Group, seed: int) -> dict[str, Json]:
    """Write everything that is said of one group."""
    sides = Sides.of(group.sides, group.clusters, [1 / one for one in group.inclusions])
    claimed = group.rubric != "proposition" or group.claim == "stereotype"
    return {
        "by": dict(group.by),
        "rubric": group.rubric,
        "claim": group.claim,
        "parents": len(group.clusters),
        "inclusion": [min(group.inclusions), max(group.inclusions)],
        **group_findings(sides, claimed=claimed, seed=seed),
    }


def _stored_side(rows: Sequence[Asked], task: Task | None, apart: str) -> Side:
    answers = [_answer(row.label) for row in rows]
    return Side(name=STORED, task=task, answers=answers, apart=apart, tokens=[row.tokens.get(None) for row in rows])


def _side(rows: Sequence[Asked], asked: Format, stored: Task | None, *, elsewhere: bool) -> Side:
    changes = _changes(rows, asked)
    return Side(
        name=asked.key,
        # A framing around a client's own question is read by the route's rule, as the question itself is.
        task=asked.task if asked.task and all(_has_statement(row) for row in rows) else stored,
        answers=[_answer(row.replays[asked]) for row in rows],
        changes=changes,
        repeats=not changes and not elsewhere,
        tokens=[row.tokens.get(asked) for row in rows],
    )


def _has_statement(row: Asked) -> bool:
    return row.parent.statement is not None


def _changes(rows: Sequence[Asked], asked: Format) -> dict[str, str]:
    """Say what a format changes: of probes only what some parent did not have anyway; a client's question had none."""
    given = {factor: str(level) for factor, level in asked.levels.items()} | (
        {"swap": asked.swap} if asked.swap else {}
    )
    return {
        factor: level
        for factor, level in given.items()
        if any(
            row.parent.origin is Origin.CLIENT or str(getattr(row.parent.condition, factor, "")) != level
            for row in rows
        )
    }


def _answer(label: Label | str | None) -> Coded | str:
    if label is None:
        return NO_RESPONSE
    if isinstance(label, str):
        return label
    return label.coded if label.coded is not None else f"uncoded_{label.uncoded}"
