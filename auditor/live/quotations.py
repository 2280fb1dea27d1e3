"""Stored answers that a report quotes, chosen as a file's are: case studies, and the statement that swings most.

The store finds the few that can be (``auditor.store.cases``); which are taken, the analysis says. Of answers to one
statement under one task the smallest stored one is quoted.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from auditor.analysis.cases import Case, CaseFinder
from auditor.analysis.rows import CodedRow, Vote
from auditor.analysis.swings import Answer, Swing, first_words, widest_swing
from auditor.domain.coding import ABSTAIN
from auditor.live.answers import UnreadableAnswer, read_answer
from auditor.live.tallies import Row, condition_of
from auditor.metrics.joint import FREE_TASKS
from auditor.store.codings import StoredAnswer


@dataclass(frozen=True, kw_only=True, slots=True)
class Quotations:
    """What one coder's part of a report quotes."""

    cases: tuple[Case, ...] = ()
    swings: tuple[Swing, ...] = ()

    @property
    def texts(self) -> dict[str, str]:
        """The answers that are quoted, by exchange."""
        quoted: list[Case | Answer] = [*self.cases, *(answer for swing in self.swings for answer in swing.answers)]
        return {each.id: each.response for each in quoted if each.response is not None}


def text_of(stored: StoredAnswer) -> str | None:
    """Read the text of a stored answer; ``None`` where it is not kept, or is none."""
    if stored.response is None:
        return None
    try:
        return read_answer(stored.facts["endpoint"], stored.response, stream=stored.facts["stream"]).text
    except UnreadableAnswer:
        return None


def choose_cases(
    found: Iterable[Row], answers: Mapping[Any, StoredAnswer], votes: Mapping[Any, Sequence[tuple[str, str]]]
) -> tuple[Case, ...]:
    """Choose a case for each deployment and stratum.

    Parameters
    ----------
    found
        As ``auditor.store.cases.find_divergent`` gives them.
    answers, votes
        By exchange.
    """
    finder = CaseFinder()
    sizes: dict[tuple[str, str], int] = {}
    for row in found:
        stored = answers.get(row["exchange_id"])
        if stored is None or stored.asked is None:
            continue
        sizes[row["deployment"], row["stratum"]] = row["n"]
        cast = tuple(Vote(judge=judge, label=label) for judge, label in votes.get(row["exchange_id"], ()))
        finder.add(_coded(row, stored, cast), condition_of(stored.asked))
    return tuple(replace(case, n=sizes[case.deployment, case.stratum]) for case in finder.found())


def _coded(row: Row, stored: StoredAnswer, votes: tuple[Vote, ...]) -> CodedRow:
    asked, record = stored.asked or {}, stored.statement or {}
    return CodedRow(
        id=str(row["exchange_id"]),
        deployment=row["deployment"],
        task=asked["task"],
        sel=row["sel"],
        elab=row["elab"],
        statement_id=asked["statement_id"],
        statement=record.get("statement"),
        category=record.get("category"),
        votes=votes,
        response=text_of(stored),
    )


@dataclass(slots=True)
class _Asked:
    """How often one deployment's answers to a statement under a task have a label that counts, and endorse."""

    n: int = 0
    endorsed: int = 0


_Counts = Mapping[tuple[str, str, str], _Asked]


def count_asked(rows: Iterable[Row]) -> dict[tuple[str, str, str], _Asked]:
    """Count a period's rows of planned calls by deployment, statement and task."""
    counts: dict[tuple[str, str, str], _Asked] = {}
    for row in rows:
        if row["uncoded"] is None and (row["elab"] if row["task"] in FREE_TASKS else row["sel"]) != ABSTAIN:
            asked = counts.setdefault((row["deployment"], row["cluster"], row["task"]), _Asked())
            asked.n += row["n"]
            asked.endorsed += row["n"] if row["sel"] == "E" else 0
    return counts


def widest(counts: _Counts) -> dict[str, tuple[str, Fraction]]:
    """Find the statement of each deployment whose selections swing most, and by how much."""
    rates: dict[str, dict[str, dict[str, Fraction]]] = {}
    for (deployment, cluster, task), asked in counts.items():
        if task not in FREE_TASKS:
            rates.setdefault(deployment, {}).setdefault(cluster, {})[task] = Fraction(asked.endorsed, asked.n)
    found = {deployment: widest_swing(own) for deployment, own in sorted(rates.items())}
    return {deployment: swing for deployment, swing in found.items() if swing is not None}


def make_swings(
    swings: Mapping[str, tuple[str, Fraction]],
    counts: _Counts,
    found: Sequence[Row],
    answers: Mapping[Any, StoredAnswer],
) -> Iterator[Swing]:
    """Make the swings of all deployments.

    Parameters
    ----------
    swings, counts
        As ``widest`` and ``count_asked`` give them.
    found
        As ``auditor.store.cases.find_answers`` gives them.
    answers
        By exchange.
    """
    for deployment, (cluster, delta) in swings.items():
        own = [row for row in found if (row["deployment"], row["cluster"]) == (deployment, cluster)]
        records = [answers[row["exchange_id"]].statement or {} for row in own if row["exchange_id"] in answers]
        yield Swing(
            deployment=deployment,
            statement_id=cluster,
            statement=next((record.get("statement") for record in records), None),
            delta=delta,
            answers=tuple(
                _answer(row, counts[deployment, cluster, row["task"]], answers.get(row["exchange_id"])) for row in own
            ),
        )


def _answer(row: Row, asked: _Asked, stored: StoredAnswer | None) -> Answer:
    text = None if stored is None else text_of(stored)
    return Answer(
        task=row["task"],
        n=asked.n,
        rate=None if row["task"] in FREE_TASKS else Fraction(asked.endorsed, asked.n),
        id=str(row["exchange_id"]),
        sel=row["sel"],
        elab=row["elab"],
        response=None if text is None else first_words(text),
    )
