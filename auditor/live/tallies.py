"""From stored tallies to the analysis's: the same counts as a file of coded rows gives, so the same estimates follow.

``auditor.analysis`` estimates from them; what was never coded (``uncoded``) is in no table and counted apart.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from auditor.analysis.rows import Vote
from auditor.analysis.tallies import (
    Completions,
    Outcome,
    Profile,
    Reviewed,
    ReviewedRow,
    Tallies,
    VoteCounts,
    profile_key,
)
from auditor.domain.coding import ABSTAIN
from auditor.domain.review import Layer, Opinion
from auditor.metrics.joint import FREE_TASKS, UNSTATED, Coded, joint_cell
from auditor.metrics.shares import BASELINE, FACTORS, Levels

Row = Mapping[str, Any]
_ProfileKey = tuple[Any, ...]
_Key = tuple[_ProfileKey, str, tuple[object, ...]]
#: Traffic was asked under no condition; this is what stands in a condition's first place.
TRAFFIC: Final = "traffic"


def condition_of(row: Row) -> Levels:
    """Give the condition a row was asked under."""
    if row["task"] is None:
        return (TRAFFIC, *BASELINE[1:])
    given = [row[factor] or base for factor, base in zip(FACTORS, BASELINE, strict=True)]
    return (given[0], given[1], given[2], given[3])


def tallies_of(
    rows: Iterable[Row],
    votes: VoteCounts | None = None,
    labelled: Sequence[Row] | None = None,
    extra: Sequence[str] = (),
) -> Tallies:
    """Make tallies of stored rows; rows that were never coded are left out.

    Parameters
    ----------
    rows
        As ``auditor.store.windows.read_windows`` or ``auditor.store.period.count_period`` gives them.
    votes
        Ballots, for the judges' agreement.
    labelled
        Those of the rows that people have labelled, one by one, as ``auditor.store.review_draws`` gives them.
    extra
        Further fields of the rows to group by.
    """
    profiles: dict[tuple[object, ...], Profile] = {}
    outcomes: dict[tuple[object, ...], Outcome] = {}
    counted: dict[_Key, int] = {}
    told: dict[_ProfileKey, tuple[int, int]] = {}
    for row in rows:
        if row["uncoded"] is not None:
            continue
        profile, key = _profile(row, extra), _key(row, extra)
        profiles.setdefault(key[0], profile)
        if key[2] not in outcomes:
            outcomes[key[2]] = _outcome(row)
        counted[key] = counted.get(key, 0) + row["n"]
        if row.get("n_tokens"):
            said, tokens = told.get(key[0], (0, 0))
            told[key[0]] = (said + row["n_tokens"], tokens + row["tokens"])
    assembled = _assembled(profiles, outcomes, counted, votes or {}, labelled, tuple(extra))
    return replace(assembled, completions=_completions(told, sorted(profiles))) if told else assembled


def _completions(told: Mapping[_ProfileKey, tuple[int, int]], order: Sequence[_ProfileKey]) -> Completions:
    """Give the completion tokens of the profiles that say any, in the profiles' order."""
    columns = np.array([told.get(key, (0, 0)) for key in order], dtype=np.int64).T
    return Completions(rows=columns[0], tokens=columns[1])


def _key(row: Row, extra: Sequence[str]) -> _Key:
    # The same names, in the same order, as a file's clusters have: intervals then are the same to the last digit.
    return (profile_key(_profile(row, extra)), f"i{row['cluster']}", _outcome_key(row))


def _assembled(
    profiles: Mapping[tuple[object, ...], Profile],
    outcomes: Mapping[tuple[object, ...], Outcome],
    counted: Mapping[_Key, int],
    votes: VoteCounts,
    labelled: Sequence[Row] | None,
    extra: tuple[str, ...],
) -> Tallies:
    order: list[Any] = sorted(profiles)
    place = {key: index for index, key in enumerate(order)}
    clusters = {name: index for index, name in enumerate(sorted({cluster for _, cluster, _ in counted}))}
    outcome_place = {key: index for index, key in enumerate(outcomes)}
    entries = sorted((place[p], clusters[c], outcome_place[o], n) for (p, c, o), n in counted.items())
    columns = np.array(entries, dtype=np.int64).reshape(-1, 4).T
    reviewed = None
    if labelled is not None:
        keyed = ((row, _key(row, extra)) for row in labelled)
        reviewed = tuple(_reviewed(row, (place[p], clusters[c], outcome_place[o])) for row, (p, c, o) in keyed)
    return Tallies(
        profiles=tuple(profiles[key] for key in order),
        extra=extra,
        outcomes=tuple(outcomes.values()),
        profile=columns[0],
        cluster=columns[1],
        outcome=columns[2],
        count=columns[3],
        spans=np.searchsorted(columns[0], np.arange(len(order) + 1)),
        n_clusters=len(clusters),
        votes=votes,
        skipped=0,
        complaints=(),
        reviewed=reviewed,
    )


def _reviewed(row: Row, where: tuple[int, int, int]) -> ReviewedRow:
    opinions = [
        Opinion(reviewer=reviewer, layer=Layer(layer), label=label) for layer, reviewer, label in row["opinions"]
    ]
    return ReviewedRow(
        profile=where[0],
        cluster=where[1],
        outcome=where[2],
        sel=row["sel"],
        elab=row["elab"],
        votes=tuple(Vote(judge=judge, label=label) for judge, label in row["votes"] or ()),
        reviewed=Reviewed(opinions=tuple(opinions), weight=1 / row["inclusion"]),
    )


def _profile(row: Row, extra: Sequence[str]) -> Profile:
    return Profile(
        deployment=row["deployment"],
        rubric=row["rubric"],
        claim=row["claim"],
        category=row["category"],
        condition=condition_of(row),
        extra=tuple(row[name] for name in extra),
    )


def _is_free(row: Row) -> bool:
    """Whether the question asked for no discrete answer."""
    return row["rubric"] == "open" if row["task"] is None else row["task"] in FREE_TASKS


def _outcome_key(row: Row) -> tuple[object, ...]:
    return (_is_free(row), row["sel"], row["sel_reason"], row["elab"], row["elab_reason"])


def _outcome(row: Row) -> Outcome:
    coded = Coded(sel=row["sel"], sel_reason=row["sel_reason"], elab=row["elab"], elab_reason=row["elab_reason"])
    return Outcome(
        cell=joint_cell(coded, free=_is_free(row)),
        sel_reason=(row["sel_reason"] or UNSTATED) if row["sel"] == ABSTAIN else None,
        elab_reason=(row["elab_reason"] or UNSTATED) if row["elab"] == ABSTAIN else None,
    )


def votes_of(ballots: Sequence[Row]) -> dict[tuple[str, tuple[Vote, ...]], int]:
    """Make the analysis's ballots of stored ones."""
    out: dict[tuple[str, tuple[Vote, ...]], int] = {}
    for row in ballots:
        cast = tuple(Vote(judge=judge, label=label) for judge, label in row["votes"])
        out[row["deployment"], cast] = out.get((row["deployment"], cast), 0) + row["n"]
    return out
