"""Stored traffic whose formats are there already, paired: answers to the same question on different sides.

Answers have a parent in common where deployment, coder, cluster and proposition are the same. Of several answers on one
side the first is paired with the first on the others, the second with the second, and so on, the oldest first: each
counts once, and intervals are by cluster, so that many draws of one question count as little more than one.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from auditor.analysis.document import Json
from auditor.domain.exchange import Origin
from auditor.jobs.work import Work
from auditor.live.coders import Coder
from auditor.live.profiles import compile_profile
from auditor.metrics.joint import Coded
from auditor.store.engine import reading
from replay.coding import Label, label_all
from replay.comparison.document import SCHEMA, Group, group_json
from replay.comparison.sides import Side
from replay.selecting import Selection
from replay.stored import chunks, read_codings
from replay.traffic import Answered, Traffic, read_traffic

#: Sides of one group that are compared: those with most answers. Every two of them are a comparison.
MOST_SIDES: Final = 12
_NOT_ASKED: Final = "not_asked"
#: Sides whose exchanges come by several routes.
_ACROSS_ROUTES: Final = ("route", "model")


@dataclass(frozen=True, kw_only=True, slots=True)
class Pairing:
    """What is to be compared, and by what."""

    selection: Selection
    by: str

    @property
    def id(self) -> str:
        """The comparison's id, a function of what is asked for."""
        told = f"{self.selection.canonical}\n{self.by}"
        return f"cmp-{hashlib.sha256(told.encode()).hexdigest()[:12]}"


async def find_traffic(work: Work, pairing: Pairing) -> Traffic:
    """Read the exchanges that fit, of all routes with an audit profile."""
    profiles = {audit.name: audit for audit in work.config.audits}
    propositions = {
        route.model: compile_profile(profiles[route.audit]).proposition if profiles[route.audit].proposition else None
        for route in work.config.routes
        if route.audit in profiles
    }
    async with reading(work.engine) as connection:
        return await read_traffic(connection, pairing.selection, pairing.by, propositions)


async def count_unread(work: Work, traffic: Traffic) -> int:
    """Count the answers that a judge behind the network would have to be asked about."""
    unread = 0
    async with reading(work.engine) as connection:
        for coder, answers in _by_coder(work, traffic):
            if not coder.local:
                unread += len(answers) - len(await read_codings(connection, coder.id, [one.id for one in answers]))
    return unread


async def compare_traffic(
    work: Work, pairing: Pairing, traffic: Traffic, on_progress: Callable[[int, int], None]
) -> dict[str, Json]:
    """Code what is not coded yet, pair the answers, and compare.

    Raises
    ------
    JudgeUnavailable
        A judge could not be asked; what was coded until then is stored.
    """
    left_out, done = Counter(traffic.left_out), 0
    groups: list[Group] = []
    used: dict[str, Json] = {}
    for coder, answers in _by_coder(work, traffic):
        labels: dict[UUID, Label] = {}
        for ids in chunks(one.id for one in answers):
            labels |= await label_all(work, coder, ids, lambda _: None)
            done += len(ids)
            on_progress(done, len(traffic.answers))
        groups += _groups(answers, labels, pairing.by, left_out)
        used[coder.id] = _described(coder)
    return _document(pairing, groups, used, left_out, work.config.seed)


def _by_coder(work: Work, traffic: Traffic) -> Iterator[tuple[Coder, list[Answered]]]:
    by_route: dict[str, list[Answered]] = defaultdict(list)
    for one in traffic.answers:
        by_route[one.route].append(one)
    for coder in sorted((reader.coder for reader in work.readers.values()), key=lambda coder: coder.id):
        answers = [one for route in coder.routes or () for one in by_route[route]]
        if answers:
            yield coder, sorted(answers, key=lambda one: one.id)


def _described(coder: Coder) -> dict[str, Json]:
    judges: list[Json] = [judge.name for judge in coder.panel.judges] if coder.panel is not None else []
    return {"rubric": coder.rubric, "selection": str(coder.description["selection"]), "judges": judges}


_Key = tuple[str, str, str, str]
#: Cluster, question, and the how-manieth answer to it.
_Parent = tuple[str, str, int]


def _groups(
    answers: Sequence[Answered], labels: Mapping[UUID, Label], by: str, left_out: Counter[str]
) -> Iterator[Group]:
    """Group one coder's answers; those of a deployment and a route, or of all the coder's routes where these differ."""
    by_key: dict[_Key, list[Answered]] = defaultdict(list)
    routes = ", ".join(sorted({one.route for one in answers}))
    for one in answers:
        label = labels[one.id]
        if label.coded is None:
            left_out[f"uncoded_{label.uncoded}"] += 1
            continue
        route = routes if by in _ACROSS_ROUTES else one.route
        by_key[one.deployment, route, label.rubric, label.claim or ""].append(one)
    for (deployment, route, rubric, claim), rows in sorted(by_key.items()):
        paired = pair(rows, labels, left_out)
        if not paired:
            continue
        names = _ranked(paired)
        yield Group(
            by={"deployment": deployment, "origin": str(Origin.CLIENT), "route": route, "task": None},
            rubric=rubric,
            claim=claim or None,
            clusters=[cluster for cluster, _, _ in paired],
            inclusions=[min(one.inclusion for one in each.values()) for each in paired.values()],
            sides=[_side(name, by, list(paired.values()), labels) for name in names],
        )


def pair(
    answers: Sequence[Answered], labels: Mapping[UUID, Label], left_out: Counter[str]
) -> dict[_Parent, dict[str, Answered]]:
    """Give what was answered on each side, by parent; a parent with an answer on one side alone is left out."""
    shown = Counter(one.side for one in answers)
    kept = {side for side, _ in sorted(shown.items(), key=lambda item: (-item[1], item[0]))[:MOST_SIDES]}
    number: Counter[tuple[str, str, str]] = Counter()
    parents: dict[_Parent, dict[str, Answered]] = defaultdict(dict)
    for one in sorted(answers, key=lambda one: one.id):
        if one.side not in kept:
            left_out["too_many_sides"] += 1
            continue
        cluster = labels[one.id].cluster
        place = number[cluster, one.question, one.side]
        number[cluster, one.question, one.side] += 1
        parents[cluster, one.question, place][one.side] = one
    left_out["on_one_side_only"] += sum(len(each) < 2 for each in parents.values())
    return {parent: each for parent, each in sorted(parents.items()) if len(each) > 1}


def _ranked(paired: Mapping[_Parent, Mapping[str, Answered]]) -> list[str]:
    """Name the sides; the one with most answers is the first, which the others are held against."""
    answered = Counter(side for each in paired.values() for side in each)
    first, *rest = sorted(answered, key=lambda side: (-answered[side], side))
    return [first, *sorted(rest)]


def _side(name: str, by: str, parents: Sequence[Mapping[str, Answered]], labels: Mapping[UUID, Label]) -> Side:
    answers: list[Coded | str] = [
        labels[each[name].id].coded or _NOT_ASKED if name in each else _NOT_ASKED for each in parents
    ]
    tokens = [each[name].completion_tokens if name in each else None for each in parents]
    return Side(name=name, task=None, answers=answers, changes={by: name}, tokens=tokens)


def _document(
    pairing: Pairing, groups: Sequence[Group], coders: Mapping[str, Json], left_out: Counter[str], seed: int
) -> dict[str, Json]:
    """Write it as a replay's is: nothing was called, and the sides are not formats but what stood in the traffic."""
    names: list[Json] = [*sorted({side.name for group in groups for side in group.sides})]
    return {
        "schema": SCHEMA,
        "replay": pairing.id,
        "select": pairing.selection.canonical,
        "by": pairing.by,
        "formats": names,
        "to": None,
        "seed": seed,
        "coders": dict(coders),
        "parents": sum(len(group.clusters) for group in groups),
        "left_out": {reason: n for reason, n in sorted(left_out.items()) if n},
        "calls": {"planned": 0, "answered": 0, "failed": {}},
        "groups": [group_json(group, seed) for group in groups],
    }
