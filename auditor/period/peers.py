"""Compare peers over a period: the entry of the document, the digests of its inputs, and which inputs are gone.

An entry names its scorers and settings, so it can be made again without a configuration and without loading a scorer.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import orjson
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.config import Config
from auditor.config.audits import EMBEDDING
from auditor.documents.codec import canonical_bytes, decode
from auditor.domain.exchange import Origin
from auditor.domain.ids import floor_id, id_time
from auditor.peers.stored import make_document, read_answers
from auditor.peers.subjects import PeerGroup, PeerSettings, answers_of, compared, instruments_of, settings_of
from auditor.period.contents import Compared
from auditor.period.document import (
    DayDigest,
    PeerGroupEntry,
    PeerInputs,
    PeersEntry,
    PeerSettingsEntry,
    PeersHead,
    ReportDocument,
    ScorerEntry,
    ScorerInputs,
)
from auditor.store.peer_scores import ScoredAnswer
from auditor.store.period import Period, Scorer, count_kept, newest_scorers, scored_between, scored_by


async def find_heads(
    connection: AsyncConnection, config: Config, since: datetime, until: datetime
) -> tuple[list[PeersHead], datetime | None]:
    """Find the comparisons with scored answers in [since, until), and the time of their newest score.

    Returns
    -------
    tuple
        Heads of entries, in the configuration's order, as they are read back from JSON; and the moment, ``None`` where
        there is nothing.
    """
    heads, moments = [], []
    among = scored_between(since, until)
    for entry in compared(config):
        settings = settings_of(config, entry)
        answers = answers_of(settings, floor_id(since), among)
        scorers = await newest_scorers(connection, answers, instruments_of(entry))
        if scorers:
            heads.append(decode(canonical_bytes(_head_of(settings, scorers)), PeersHead, settings.label))
            moments += [scorer.newest for scorer in scorers]
    return heads, max(moments, default=None)


async def compare_again(connection: AsyncConnection, head: PeersHead, period: Period) -> Compared:
    """Repeat the comparison of an entry, or of its head, with the scores of ``as_of``."""
    settings, coders = _settings_in(head), _coders_in(head)
    queries = answers_of(settings, floor_id(period.since), scored_by(coders.values(), period))
    answered = [await read_answers(connection, query, coders, period.as_of) for query in queries]
    return Compared(
        entry=PeersEntry(
            domain=head.domain,
            origin=head.origin,
            scorers=head.scorers,
            settings=head.settings,
            document=make_document(settings, coders, answered),
        ),
        used=_digest_inputs(head, [answer for answers in answered for answer in answers]),
    )


async def find_gone(
    connection: AsyncConnection, report: ReportDocument, again: ReportDocument, period: Period
) -> list[str]:
    """List the inputs of the comparisons of a report that are gone."""
    since = min(period.since, _first_day(report) or period.since)
    scorers = {scorer.id for head in report.peers for scorer in head.scorers}
    kept = await count_kept(connection, scorers, replace(period, since=since))
    return list(_missing_answers(report, again, kept))


def _head_of(settings: PeerSettings, scorers: Sequence[Scorer]) -> PeersHead:
    """Return who is compared, how, and by whose scores."""
    return PeersHead(
        domain=settings.label,
        origin=settings.origin.value,
        scorers=[ScorerEntry(id=scorer.id, method=scorer.method, description=scorer.description) for scorer in scorers],
        settings=PeerSettingsEntry(
            k=settings.k,
            margins=settings.margins,
            groups=[PeerGroupEntry(targets=group.targets, peers=group.peers) for group in settings.groups],
            hosts=settings.hosts,
        ),
    )


def _settings_in(head: PeersHead) -> PeerSettings:
    """Return the settings of a comparison from its entry."""
    return PeerSettings(
        label=head.domain,
        origin=Origin(head.origin),
        groups=tuple(
            PeerGroup(targets=tuple(group.targets), peers=tuple(group.peers)) for group in head.settings.groups
        ),
        k=head.settings.k,
        margins=dict(head.settings.margins),
        hosts={weights: tuple(names) for weights, names in head.settings.hosts.items()},
    )


def _coders_in(head: PeersHead) -> dict[str, str]:
    """Return the scorers' ids by instrument."""
    return {scorer.method: scorer.id for scorer in head.scorers}


def _digest_inputs(head: PeersHead, answers: Iterable[ScoredAnswer]) -> PeerInputs:
    """Digest each day's answers, and each scorer's results."""
    every = sorted(answers, key=lambda answer: answer.exchange_id)
    facts = [
        (answer.exchange_id, orjson.dumps([answer.deployment, answer.question_id, answer.theme, answer.blocked]))
        for answer in every
    ]
    return PeerInputs(
        domain=head.domain,
        answers=_days(facts),
        scorers=[
            ScorerInputs(id=scorer, gives="vectors", days=_days(_vectors(every)))
            if method == EMBEDDING
            else ScorerInputs(id=scorer, gives="scores", days=_days(_scores(every, scorer)))
            for method, scorer in _coders_in(head).items()
        ],
    )


def _vectors(answers: Iterable[ScoredAnswer]) -> Iterator[tuple[UUID, bytes]]:
    return ((answer.exchange_id, answer.vector) for answer in answers if answer.vector is not None)


def _scores(answers: Iterable[ScoredAnswer], scorer: str) -> Iterator[tuple[UUID, bytes]]:
    return ((answer.exchange_id, str(answer.scores[scorer]).encode()) for answer in answers if scorer in answer.scores)


def _days(facts: Iterable[tuple[UUID, bytes]]) -> list[DayDigest]:
    """Digest each day's facts. The day is the one on which the exchange began."""
    digests: dict[str, Any] = {}
    number: Counter[str] = Counter()
    for exchange, fact in facts:
        day = id_time(exchange).date().isoformat()
        number[day] += 1
        digests.setdefault(day, hashlib.sha256()).update(hashlib.sha256(exchange.bytes + fact).digest())
    return [DayDigest(day=day, n=number[day], sha256=each.hexdigest()) for day, each in sorted(digests.items())]


def _first_day(report: ReportDocument) -> datetime | None:
    """Return the first day of which a report's comparisons used an answer: it may lie before the period."""
    days = [day.day for each in _peer_inputs(report) for day in each.answers]
    return datetime.fromisoformat(min(days)).replace(tzinfo=UTC) if days else None


def _peer_inputs(report: ReportDocument) -> list[PeerInputs]:
    return [each for each in report.inputs if isinstance(each, PeerInputs)]


def _missing_answers(
    report: ReportDocument, again: ReportDocument, kept: Mapping[tuple[str, str], int]
) -> Iterator[str]:
    """Name the inputs of a report's comparisons that are gone or have changed.

    Parameters
    ----------
    kept
        Vectors and scores that are there, by scorer and day, whether or not their answers are.
    """
    have = {each.domain: each for each in _peer_inputs(again)}
    for used in _peer_inputs(report):
        current = have.get(used.domain, PeerInputs(domain=used.domain, answers=[], scorers=[]))
        # An answer without a score counts no more: fewer answers may only mean fewer scores.
        yield from list(_lost_scores(used, kept)) or list(_other_answers(used, current)) or _other_scores(used, current)


def _lost_scores(used: PeerInputs, stored: Mapping[tuple[str, str], int]) -> Iterator[str]:
    for scorer in used.scorers:
        for day in scorer.days:
            left = stored.get((scorer.id, day.day), 0)
            if left < day.n:
                yield _fewer(day.n, left, f"{scorer.gives} of {day.day} by {scorer.id}")


def _other_answers(used: PeerInputs, current: PeerInputs) -> Iterator[str]:
    have = {day.day: day for day in current.answers}
    for day in used.answers:
        left = have.get(day.day)
        what = f"answers of {day.day} on {used.domain}"
        if left is None or left.n < day.n:
            yield _fewer(day.n, left.n if left else 0, what)
        elif left != day:
            yield f"the {what} are not those that were compared"


def _other_scores(used: PeerInputs, current: PeerInputs) -> Iterator[str]:
    have = {(scorer.id, day.day): day for scorer in current.scorers for day in scorer.days}
    for scorer in used.scorers:
        for day in scorer.days:
            if have.get((scorer.id, day.day)) != day:
                yield f"the {scorer.gives} of {day.day} by {scorer.id} are not those that were used"


def _fewer(n: int, left: int, what: str) -> str:
    return f"of the {n} {what}, {left} are left" if left else f"the {n} {what} are gone"
