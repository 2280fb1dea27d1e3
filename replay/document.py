"""The words of ``comparison.json``: parents with all their answers, by group, as plain JSON values.

A group never mixes what must not be mixed: deployments, origins, routes of clients, the format in which the parents
were first asked, rubrics and what endorsing means. ``page`` shows the document to people.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final

from auditor.analysis.document import Json
from auditor.domain.coding import ABSTAIN, ElaborationReason, SelectionReason
from auditor.domain.condition import Task
from auditor.domain.estimate import Insufficient
from auditor.domain.exchange import Origin
from auditor.metrics.joint import Coded
from auditor.metrics.rates import BY_NAME
from replay.coding import Label
from replay.compare import Comparison, Side, SideSummary, compare
from replay.difference import Difference
from replay.formats import Format
from replay.pick import Parent

SCHEMA: Final = "tiltmeter.replay/1"
#: The side of the answers that were there before.
STORED: Final = "stored"
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
            "planned": sum(not isinstance(each, str) for one in asked for each in one.replays.values()),
            "answered": sum(isinstance(each, Label) for one in asked for each in one.replays.values()),
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
        yield Group(
            by={"deployment": deployment, "origin": origin, "route": route or None, "task": task or None},
            rubric=rubric,
            claim=claim or None,
            clusters=[row.label.cluster for row in rows],
            inclusions=[row.parent.inclusion for row in rows],
            sides=[_stored_side(rows, stored), *(_side(rows, each, stored) for each in replay.formats)],
        )


def group_json(group: Group, seed: int) -> dict[str, Json]:
    """Compare every pair of a group's sides."""
    claimed = group.rubric != "proposition" or group.claim == "stereotype"
    weights = [1 / one for one in group.inclusions]
    return {
        "by": dict(group.by),
        "rubric": group.rubric,
        "claim": group.claim,
        "parents": len(group.clusters),
        "inclusion": [min(group.inclusions), max(group.inclusions)],
        "pairs": [
            _pair(compare(group.clusters, first, second, claimed=claimed, seed=seed, weights=weights))
            for first, second in combinations(group.sides, 2)
        ],
    }


def _stored_side(rows: Sequence[Asked], task: Task | None) -> Side:
    return Side(name=STORED, task=task, answers=[_answer(row.label) for row in rows])


def _side(rows: Sequence[Asked], each: Format, stored: Task | None) -> Side:
    return Side(name=each.key, task=each.task or stored, answers=[_answer(row.replays[each]) for row in rows])


def _answer(label: Label | str | None) -> Coded | str:
    if label is None:
        return NO_RESPONSE
    if isinstance(label, str):
        return label
    return label.coded if label.coded is not None else f"uncoded_{label.uncoded}"


def _pair(comparison: Comparison) -> dict[str, Json]:
    return {
        "first": _side_json(comparison.first),
        "second": _side_json(comparison.second),
        "n_pairs": comparison.n_pairs,
        "n_statements": comparison.n_statements,
        "metrics": {name: _metric(name, found) for name, found in comparison.metrics.items()},
        "flips": {"selection": dict(comparison.selection_flips), "elaboration": dict(comparison.elaboration_flips)},
    }


def _side_json(side: SideSummary) -> dict[str, Json]:
    shares = side.coverage
    coverage: Json = {"missing": "no parent was asked this way"}
    if shares is not None:
        coverage = {"eligible": shares.eligible, "structural": shares.structural, "failed": shares.failed}
    return {
        "side": side.name,
        "task": str(side.task) if side.task else None,
        "n": side.n,
        "coverage": coverage,
        "missing": dict(side.missing),
    }


def _metric(name: str, found: Difference | Insufficient) -> dict[str, Json]:
    if isinstance(found, Insufficient):
        return {"missing": found.reason}
    return {
        "first": found.first,
        "second": found.second,
        "difference": found.value,
        "low": found.low,
        "high": found.high,
        "base": BY_NAME[name].base,
        "method": found.method,
        "n_pairs": found.n_pairs,
        "n_statements": found.n_statements,
        "flags": list(found.flags),
    }
