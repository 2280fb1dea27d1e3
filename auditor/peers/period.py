"""Peers in the report over a period: the entry of its document, the digests of what it used, and what of that is gone.

An entry names its scorers and settings, so that it is made again without a configuration, and no scorer is loaded.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import orjson

from auditor.analysis.document import Json
from auditor.config.audits import EMBEDDING
from auditor.domain.exchange import Origin
from auditor.domain.ids import id_time
from auditor.peers.subjects import Group, Settings
from auditor.store.peer_period import Scorer
from auditor.store.peer_scores import ScoredAnswer

Document = Mapping[str, Any]


def head_of(settings: Settings, scorers: Sequence[Scorer]) -> dict[str, Json]:
    """Say who is compared, how, and by whose scores: an entry without its document."""
    return {
        "domain": settings.label,
        "origin": settings.origin.value,
        "scorers": [{"id": one.id, "method": one.method, "description": one.description} for one in scorers],
        "settings": {
            "k": settings.k,
            "margins": dict(settings.margins),
            "groups": [{"targets": list(one.targets), "peers": list(one.peers)} for one in settings.groups],
            "hosts": {weights: list(names) for weights, names in settings.hosts.items()},
        },
    }


def settings_in(head: Document) -> Settings:
    """Read the settings back from an entry."""
    said = head["settings"]
    return Settings(
        label=head["domain"],
        origin=Origin(head["origin"]),
        groups=tuple(Group(targets=tuple(one["targets"]), peers=tuple(one["peers"])) for one in said["groups"]),
        k=said["k"],
        margins=dict(said["margins"]),
        hosts={weights: tuple(names) for weights, names in said["hosts"].items()},
    )


def coders_in(head: Document) -> dict[str, str]:
    """Give the scorers' ids by instrument."""
    return {one["method"]: one["id"] for one in head["scorers"]}


def digest_inputs(head: Document, answers: Iterable[ScoredAnswer]) -> dict[str, Json]:
    """Digest each day's answers, and what each scorer made of them."""
    every = sorted(answers, key=lambda one: one.exchange_id)
    told = [(one.exchange_id, orjson.dumps([one.deployment, one.question_id, one.theme, one.blocked])) for one in every]
    return {
        "domain": head["domain"],
        "answers": _days(told),
        "scorers": [
            {"id": scorer, "gives": "vectors", "days": _days(_vectors(every))}
            if method == EMBEDDING
            else {"id": scorer, "gives": "scores", "days": _days(_scores(every, scorer))}
            for method, scorer in coders_in(head).items()
        ],
    }


def _vectors(answers: Iterable[ScoredAnswer]) -> Iterator[tuple[UUID, bytes]]:
    return ((one.exchange_id, one.vector) for one in answers if one.vector is not None)


def _scores(answers: Iterable[ScoredAnswer], scorer: str) -> Iterator[tuple[UUID, bytes]]:
    return ((one.exchange_id, str(one.scores[scorer]).encode()) for one in answers if scorer in one.scores)


def _days(facts: Iterable[tuple[UUID, bytes]]) -> list[Json]:
    """Digest each day's facts; a day is that on which the exchange began."""
    digests: dict[str, Any] = {}
    number: Counter[str] = Counter()
    for exchange, told in facts:
        day = id_time(exchange).date().isoformat()
        number[day] += 1
        digests.setdefault(day, hashlib.sha256()).update(hashlib.sha256(exchange.bytes + told).digest())
    return [{"day": day, "n": number[day], "sha256": each.hexdigest()} for day, each in sorted(digests.items())]


def first_day(report: Document) -> datetime | None:
    """Give the first day that a report's comparisons used something of: a client may have been answered before it."""
    days = [day["day"] for each in report["inputs"] if "domain" in each for day in each["answers"]]
    return datetime.fromisoformat(min(days)).replace(tzinfo=UTC) if days else None


def missing_answers(report: Document, again: Document, kept: Mapping[tuple[str, str], int]) -> Iterator[str]:
    """Name what the comparisons of a report were made from that is not there any more, or is not as it was.

    Parameters
    ----------
    kept
        Vectors and scores that are there, by scorer and day, whether or not their answers are.
    """
    have = {each["domain"]: each for each in again["inputs"] if "domain" in each}
    for used in report["inputs"]:
        if "domain" in used:
            found = have.get(used["domain"], {"answers": (), "scorers": ()})
            # An answer that nobody has scored counts no more: that answers are fewer only follows from that.
            yield from list(_lost_scores(used, kept)) or list(_other_answers(used, found)) or _other_scores(used, found)


def _lost_scores(used: Document, kept: Mapping[tuple[str, str], int]) -> Iterator[str]:
    for scorer in used["scorers"]:
        for day in scorer["days"]:
            left = kept.get((scorer["id"], day["day"]), 0)
            if left < day["n"]:
                yield _fewer(day["n"], left, f"{scorer['gives']} of {day['day']} by {scorer['id']}")


def _other_answers(used: Document, found: Document) -> Iterator[str]:
    have = {day["day"]: day for day in found["answers"]}
    for day in used["answers"]:
        left = have.get(day["day"], {"n": 0})
        what = f"answers of {day['day']} on {used['domain']}"
        if left["n"] < day["n"]:
            yield _fewer(day["n"], left["n"], what)
        elif left != day:
            yield f"the {what} are not those that were compared"


def _other_scores(used: Document, found: Document) -> Iterator[str]:
    have = {(scorer["id"], day["day"]): day for scorer in found["scorers"] for day in scorer["days"]}
    for scorer in used["scorers"]:
        for day in scorer["days"]:
            if have.get((scorer["id"], day["day"])) != day:
                yield f"the {scorer['gives']} of {day['day']} by {scorer['id']} are not those that were used"


def _fewer(n: int, left: int, what: str) -> str:
    return f"of the {n} {what}, {left} are left" if left else f"the {n} {what} are gone"
