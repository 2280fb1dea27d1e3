"""Pair stored answers to the same question in different arms, and compare them.

Answers have the same parent if deployment, coder, cluster and proposition are the same. If an arm has several answers,
its oldest is paired with the oldest of the other arms, its second with the second, and so on: each answer counts once.
Intervals are clustered, so that many answers to one question count as little more than one.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncEngine

from auditor.coding.coders import Coder
from auditor.coding.profiles import compile_profile
from auditor.config import Config
from auditor.counting.joint import LabelPair
from auditor.documents.comparison import CallsEntry, CoderEntry, ComparisonDocument, GroupKeyEntry
from auditor.errors import InputError, UsageError
from auditor.store.engine import transaction
from auditor.work import Work, open_work, utc_now
from replay.coding import AnswerLabels, coder_entry, label_all
from replay.comparison.arms import Arm
from replay.comparison.findings import ComparisonGroup, group_entry
from replay.results import store_exposures
from replay.selection import ExchangeSelection
from replay.store import chunks, read_codings
from replay.traffic import Traffic, TrafficAnswer, read_traffic

#: The maximum number of arms of one group that are compared: those with most answers, each with every other.
MOST_ARMS: Final = 12
_NOT_ASKED: Final = "not_asked"
#: Groupings whose arms contain exchanges of several routes.
_ACROSS_ROUTES: Final = ("route", "model")


@dataclass(frozen=True, kw_only=True, slots=True)
class PairingSpec:
    """The traffic to compare, and the field that defines the arms."""

    selection: ExchangeSelection
    by: str

    @property
    def id(self) -> str:
        """The id of the comparison, derived from the specification."""
        text = f"{self.selection.canonical}\n{self.by}"
        return f"cmp-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


async def compare_stored(
    engine: AsyncEngine,
    config: Config,
    pairing: PairingSpec,
    on_traffic: Callable[[Traffic], None],
    on_progress: Callable[[int, int], None],
    *,
    yes: bool,
) -> ComparisonDocument:
    """Compare stored traffic, and store the exposures that were found.

    Parameters
    ----------
    on_traffic
        Called with what was found, before judges read it.
    on_progress
        Called with the number of read and of all answers.
    yes
        Whether judges may read answers.

    Raises
    ------
    UsageError
        Judges would have to read answers, and ``yes`` does not allow it.
    InputError
        No question was answered on two sides.
    """
    async with open_work(engine, config, utc_now) as work:
        traffic = await find_traffic(work, pairing)
        on_traffic(traffic)
        unread = await count_unread(work, traffic)
        if unread and not yes:
            raise UsageError(f"judges would have to read {unread:,} answers; add --yes to allow it")
        document = await compare_traffic(work, pairing, traffic, on_progress)
        if not document.groups:
            raise InputError(f"--by {pairing.by}: no question was answered on two sides ({_reasons(document)})")
        await store_exposures(engine, document, work.clock())
    return document


def _reasons(document: ComparisonDocument) -> str:
    return ", ".join(f"{reason.replace('_', ' ')} {n}" for reason, n in document.left_out.items()) or "no exchange fits"


async def find_traffic(work: Work, pairing: PairingSpec) -> Traffic:
    """Read the matching exchanges of all routes with an audit profile."""
    profiles = {audit.name: audit for audit in work.config.audits}
    propositions = {
        route.model: compile_profile(profiles[route.audit]).proposition if profiles[route.audit].proposition else None
        for route in work.config.routes
        if route.audit in profiles
    }
    async with transaction(work.engine) as connection:
        return await read_traffic(connection, pairing.selection, pairing.by, propositions)


async def count_unread(work: Work, traffic: Traffic) -> int:
    """Count the answers that a networked judge would have to read."""
    unread = 0
    async with transaction(work.engine) as connection:
        for coder, answers in _by_coder(work, traffic):
            if not coder.local:
                ids = [answer.id for answer in answers]
                unread += len(ids) - len(await read_codings(connection, coder.id, ids))
    return unread


async def compare_traffic(
    work: Work, pairing: PairingSpec, traffic: Traffic, on_progress: Callable[[int, int], None]
) -> ComparisonDocument:
    """Code uncoded answers, pair the answers, and compare them.

    Raises
    ------
    JudgeUnavailable
        A judge could not be asked; earlier codings are stored.
    """
    left_out, done = Counter(traffic.left_out), 0
    groups: list[ComparisonGroup] = []
    used: dict[str, CoderEntry] = {}
    for coder, answers in _by_coder(work, traffic):
        labels: dict[UUID, AnswerLabels] = {}
        for ids in chunks(answer.id for answer in answers):
            labels |= await label_all(work, coder, ids, lambda _: None)
            done += len(ids)
            on_progress(done, len(traffic.answers))
        groups += _groups(answers, labels, pairing.by, left_out)
        used[coder.id] = coder_entry(coder)
    return _document(pairing, groups, used, left_out, work.config.seed)


def _by_coder(work: Work, traffic: Traffic) -> Iterator[tuple[Coder, list[TrafficAnswer]]]:
    by_route: dict[str, list[TrafficAnswer]] = defaultdict(list)
    for answer in traffic.answers:
        by_route[answer.route].append(answer)
    for coder in sorted((entry.coder for entry in work.coders.values()), key=lambda coder: coder.id):
        answers = [answer for route in coder.routes or () for answer in by_route[route]]
        if answers:
            yield coder, sorted(answers, key=lambda answer: answer.id)


_Key = tuple[str, str, str, str]
#: Cluster, question, and the number of the answer to it.
_Parent = tuple[str, str, int]


def _groups(
    answers: Sequence[TrafficAnswer], labels: Mapping[UUID, AnswerLabels], by: str, left_out: Counter[str]
) -> Iterator[ComparisonGroup]:
    """Group one coder's answers by deployment and route; by deployment only if the arms have different routes."""
    by_key: dict[_Key, list[TrafficAnswer]] = defaultdict(list)
    routes = ", ".join(sorted({answer.route for answer in answers}))
    for answer in answers:
        label = labels[answer.id]
        if label.coded is None:
            left_out[f"uncoded_{label.uncoded}"] += 1
            continue
        route = routes if by in _ACROSS_ROUTES else answer.route
        by_key[answer.deployment, route, label.rubric, label.claim or ""].append(answer)
    for (deployment, route, rubric, claim), rows in sorted(by_key.items()):
        paired = pair(rows, labels, left_out)
        if not paired:
            continue
        names = _ranked(paired)
        yield ComparisonGroup(
            by=GroupKeyEntry(deployment=deployment, origin="client", route=route, task=None),
            rubric=rubric,
            claim=claim or None,
            clusters=[cluster for cluster, _, _ in paired],
            inclusions=[min(answer.inclusion for answer in each.values()) for each in paired.values()],
            arms=[_arm(name, by, list(paired.values()), labels) for name in names],
        )


def pair(
    answers: Sequence[TrafficAnswer], labels: Mapping[UUID, AnswerLabels], left_out: Counter[str]
) -> dict[_Parent, dict[str, TrafficAnswer]]:
    """Return the answers by parent and arm; a parent with an answer in one arm only is left out."""
    shown = Counter(answer.arm for answer in answers)
    kept = {arm for arm, _ in sorted(shown.items(), key=lambda item: (-item[1], item[0]))[:MOST_ARMS]}
    number: Counter[tuple[str, str, str]] = Counter()
    parents: dict[_Parent, dict[str, TrafficAnswer]] = defaultdict(dict)
    for answer in sorted(answers, key=lambda answer: answer.id):
        if answer.arm not in kept:
            left_out["too_many_sides"] += 1
            continue
        cluster = labels[answer.id].cluster
        place = number[cluster, answer.question, answer.arm]
        number[cluster, answer.question, answer.arm] += 1
        parents[cluster, answer.question, place][answer.arm] = answer
    left_out["on_one_side_only"] += sum(len(each) < 2 for each in parents.values())
    return {parent: each for parent, each in sorted(parents.items()) if len(each) > 1}


def _ranked(paired: Mapping[_Parent, Mapping[str, TrafficAnswer]]) -> list[str]:
    """Return the arms' names. The first arm has most answers, and the others are compared with it."""
    answered = Counter(arm for each in paired.values() for arm in each)
    first, *rest = sorted(answered, key=lambda arm: (-answered[arm], arm))
    return [first, *sorted(rest)]


def _arm(
    name: str, by: str, parents: Sequence[Mapping[str, TrafficAnswer]], labels: Mapping[UUID, AnswerLabels]
) -> Arm:
    answers: list[LabelPair | str] = [
        labels[each[name].id].coded or _NOT_ASKED if name in each else _NOT_ASKED for each in parents
    ]
    tokens = [each[name].completion_tokens if name in each else None for each in parents]
    rubric = labels[next(each[name].id for each in parents if name in each)].rubric
    return Arm(name=name, task=None, answers=answers, rubric=rubric, changes={by: name}, tokens=tokens)


def _document(
    pairing: PairingSpec,
    groups: Sequence[ComparisonGroup],
    coders: Mapping[str, CoderEntry],
    left_out: Counter[str],
    seed: int,
) -> ComparisonDocument:
    """Make a document like that of a replay, but without calls, and with values in the traffic as arms."""
    return ComparisonDocument(
        schema="biasmeter.replay/1",
        replay=pairing.id,
        select=pairing.selection.canonical,
        by=pairing.by,
        formats=sorted({arm.name for group in groups for arm in group.arms}),
        to=None,
        seed=seed,
        coders=coders,
        parents=sum(len(group.clusters) for group in groups),
        left_out={reason: n for reason, n in sorted(left_out.items()) if n},
        calls=CallsEntry(planned=0, answered=0, failed={}),
        groups=[group_entry(group, seed) for group in groups],
    )
