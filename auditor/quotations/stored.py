"""Read and choose the answers to probes that a report quotes: case studies, and the statement with the largest swing.

The store finds the candidates (``auditor.store.quotations``); the analysis decides which are quoted. Of several answers
to one statement under one task, the smallest stored one is quoted.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from msgspec import UNSET, structs
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.coding.answers import UnreadableAnswer, read_answer
from auditor.counting.joint import FREE_TASKS
from auditor.counting.rows import STATEMENT, TASKS, CodedRow, Vote
from auditor.counting.stored import Row, condition_of
from auditor.documents.analysis import CaseEntry, SwingAnswer, SwingEntry
from auditor.domain.coding import ABSTAIN
from auditor.domain.exchange import Origin
from auditor.quotations.choice import SWING_METRIC, CaseFinder, first_words, widest_swing
from auditor.store.codings import StoredAnswer, read_again
from auditor.store.period import Period
from auditor.store.quotations import find_answers, find_divergent, read_votes


@dataclass(frozen=True, kw_only=True, slots=True)
class Quotations:
    """The quotations of one coder's part of a report."""

    cases: tuple[CaseEntry, ...] = ()
    swings: tuple[SwingEntry, ...] = ()

    @property
    def texts(self) -> dict[str, str]:
        """The answers that are quoted, by exchange."""
        quoted: list[CaseEntry | SwingAnswer] = [
            *self.cases,
            *(answer for swing in self.swings for answer in swing.tasks),
        ]
        return {each.id: each.response for each in quoted if each.response is not UNSET}


def text_of(stored: StoredAnswer) -> str | None:
    """Return the text of a stored answer; ``None`` if it is not stored or not readable."""
    if stored.response is None:
        return None
    try:
        return read_answer(stored.facts["endpoint"], stored.response, stream=stored.facts["stream"]).text
    except UnreadableAnswer:
        return None


def choose_cases(
    divergent: Iterable[Row], answers: Mapping[Any, StoredAnswer], votes: Mapping[Any, Sequence[tuple[str, str]]]
) -> tuple[CaseEntry, ...]:
    """Choose a case for each deployment and stratum.

    Parameters
    ----------
    divergent
        The result of ``auditor.store.quotations.find_divergent``.
    answers, votes
        Stored answers, and votes as (judge, label), by exchange.
    """
    finder = CaseFinder()
    sizes: dict[tuple[str, str], int] = {}
    for row in divergent:
        stored = answers.get(row["exchange_id"])
        if stored is None or stored.planned_call is None:
            continue
        sizes[row["deployment"], row["stratum"]] = row["n"]
        cast = tuple(Vote(judge=judge, label=label) for judge, label in votes.get(row["exchange_id"], ()))
        finder.add(_coded(row, stored, cast), condition_of(stored.planned_call))
    return tuple(structs.replace(case, n=sizes[case.deployment, case.stratum]) for case in finder.cases())


def _coded(row: Row, stored: StoredAnswer, votes: tuple[Vote, ...]) -> CodedRow:
    call, record = stored.planned_call or {}, stored.statement or {}
    return CodedRow(
        id=str(row["exchange_id"]),
        deployment=row["deployment"],
        task=call["task"],
        sel=row["sel"],
        elab=row["elab"],
        statement_id=call["statement_id"],
        statement=record.get("statement"),
        category=record.get("category"),
        votes=votes,
        response=text_of(stored),
    )


@dataclass(slots=True)
class _TaskCount:
    """Counts of one deployment's answers to a statement under a task: labelled, and endorsing."""

    n: int = 0
    endorsed: int = 0


_Counts = Mapping[tuple[str, str, str], _TaskCount]


def count_by_task(rows: Iterable[Row]) -> dict[tuple[str, str, str], _TaskCount]:
    """Count a period's rows of planned calls by deployment, statement and task."""
    counts: dict[tuple[str, str, str], _TaskCount] = {}
    for row in rows:
        if row["uncoded"] is None and (row["elab"] if row["task"] in FREE_TASKS else row["sel"]) != ABSTAIN:
            count = counts.setdefault((row["deployment"], row["cluster"], row["task"]), _TaskCount())
            count.n += row["n"]
            count.endorsed += row["n"] if row["sel"] == "E" else 0
    return counts


def widest(counts: _Counts) -> dict[str, tuple[str, Fraction]]:
    """Find the statement of each deployment whose selections have the largest swing, and the swing."""
    rates: dict[str, dict[str, dict[str, Fraction]]] = {}
    for (deployment, cluster, task), count in counts.items():
        if task not in FREE_TASKS:
            rates.setdefault(deployment, {}).setdefault(cluster, {})[task] = Fraction(count.endorsed, count.n)
    swings = {deployment: widest_swing(by_statement) for deployment, by_statement in sorted(rates.items())}
    return {deployment: swing for deployment, swing in swings.items() if swing is not None}


def make_swings(
    swings: Mapping[str, tuple[str, Fraction]],
    counts: _Counts,
    rows: Sequence[Row],
    answers: Mapping[Any, StoredAnswer],
) -> Iterator[SwingEntry]:
    """Make the swings of all deployments.

    Parameters
    ----------
    swings, counts
        The results of ``widest`` and ``count_by_task``.
    rows
        The result of ``auditor.store.quotations.find_answers``.
    answers
        Stored answers by exchange.
    """
    for deployment, (cluster, delta) in swings.items():
        statement_rows = [row for row in rows if (row["deployment"], row["cluster"]) == (deployment, cluster)]
        records = [
            answers[row["exchange_id"]].statement or {} for row in statement_rows if row["exchange_id"] in answers
        ]
        yield SwingEntry(
            rubric=STATEMENT,
            deployment=deployment,
            statement_id=cluster,
            statement=next((record.get("statement") for record in records), None),
            metric=SWING_METRIC,
            delta=float(delta),
            tasks=[
                _answer(row, counts[deployment, cluster, row["task"]], answers.get(row["exchange_id"]))
                for row in statement_rows
            ],
        )


def _answer(row: Row, count: _TaskCount, stored: StoredAnswer | None) -> SwingAnswer:
    text = None if stored is None else text_of(stored)
    return SwingAnswer(
        task=row["task"],
        n=count.n,
        rate=UNSET if row["task"] in FREE_TASKS else count.endorsed / count.n,
        id=str(row["exchange_id"]),
        sel=row["sel"],
        elab=row["elab"],
        response=UNSET if text is None else first_words(text),
    )


async def read_quotations(connection: AsyncConnection, coder: str, period: Period, rows: Sequence[Row]) -> Quotations:
    """Read the quotations of a report from the answers to probes that a coder has coded.

    Parameters
    ----------
    rows
        The coder's counts of the period, from ``auditor.store.period.count_period``.
    """
    divergent = await find_divergent(connection, coder, period)
    counts = count_by_task(row for row in rows if row["origin"] == Origin.PROBE)
    swings = widest(counts)
    statements = [(deployment, cluster) for deployment, (cluster, _) in swings.items()]
    rows_of_swings = sorted(
        await find_answers(connection, coder, period, statements, FREE_TASKS), key=lambda row: TASKS.index(row["task"])
    )
    ids = [row["exchange_id"] for row in (*divergent, *rows_of_swings)]
    answers = {stored.facts["id"]: stored for stored in await read_again(connection, ids)}
    votes = await read_votes(connection, coder, [row["exchange_id"] for row in divergent])
    return Quotations(
        cases=choose_cases(divergent, answers, votes),
        swings=tuple(make_swings(swings, counts, rows_of_swings, answers)),
    )
