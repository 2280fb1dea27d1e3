"""Make the tallies of rows of the store, which are already counts.

``tallies`` builds the tallies; ``files`` does the same for the rows of a coded file. A response that was never coded
(``uncoded``) is in no table and is counted apart.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from auditor.counting.conditions import BASELINE, FACTORS, TRAFFIC, Levels
from auditor.counting.joint import LabelPair, is_selection_free
from auditor.counting.rows import Vote
from auditor.counting.tallies import GroupKey, Reviewed, ReviewedRow, Tallies, TallyBuilder, VoteCounts
from auditor.domain.review import Layer, Opinion

Row = Mapping[str, Any]


def condition_of(row: Row) -> Levels:
    """Return the condition a row was asked under."""
    if row["task"] is None:
        return (TRAFFIC, *BASELINE[1:])
    given = [row[factor] or base for factor, base in zip(FACTORS, BASELINE, strict=True)]
    return (given[0], given[1], given[2], given[3])


def tallies_of(
    rows: Iterable[Row],
    votes: VoteCounts | None = None,
    labelled: Iterable[Row] | None = None,
    extra: Sequence[str] = (),
) -> Tallies:
    """Count stored rows; rows that were never coded are left out.

    Parameters
    ----------
    rows
        As ``auditor.store.tallies.read_windows`` or ``auditor.store.period.count_period`` gives them.
    votes
        Of the judges, for their agreement.
    labelled
        Those of the rows that people have labelled, one by one, as ``auditor.store.review_draws`` gives them.
    extra
        Further fields of the rows to group by.
    """
    builder = TallyBuilder(extra, reviewed=labelled is not None, nesting=("category",))
    for row in rows:
        if row["uncoded"] is not None:
            continue
        group, cluster, outcome = _numbers(builder, row)
        builder.add_nesting(cluster, {"category": row["category"] or ""})
        builder.add(group, cluster, outcome, row["n"], inclusion=row["inclusion"])
        if row.get("n_tokens"):
            builder.add_tokens(group, row["n_tokens"], row["tokens"])
    for (deployment, ballot), n in (votes or {}).items():
        builder.add_votes(deployment, ballot, n)
    for row in labelled or ():
        builder.add_reviewed(_reviewed(row, *_numbers(builder, row)))
    return builder.finish()


def _numbers(builder: TallyBuilder, row: Row) -> tuple[int, int, int]:
    group = GroupKey(
        deployment=row["deployment"],
        rubric=row["rubric"],
        claim=row["claim"],
        category=row["category"],
        condition=condition_of(row),
        extra=tuple(row[name] for name in builder.extra),
    )
    free = is_selection_free(row["task"], row["rubric"], row["sel"])
    return builder.group(group), builder.cluster(f"i{row['cluster']}"), builder.outcome(LabelPair.of(row), free=free)


def _votes(row: Row) -> tuple[Vote, ...]:
    return tuple(Vote(judge=judge, label=label) for judge, label in row["votes"] or ())


def _reviewed(row: Row, group: int, cluster: int, outcome: int) -> ReviewedRow:
    opinions = [
        Opinion(reviewer=reviewer, layer=Layer(layer), label=label) for layer, reviewer, label in row["opinions"]
    ]
    return ReviewedRow(
        group=group,
        cluster=cluster,
        outcome=outcome,
        sel=row["sel"],
        elab=row["elab"],
        votes=_votes(row),
        reviewed=Reviewed(opinions=tuple(opinions), weight=1 / (row["inclusion"] * row["draw_inclusion"])),
    )


def votes_of(ballots: Iterable[Row]) -> VoteCounts:
    """Count stored ballots: ``deployment``, ``votes`` and ``n``."""
    counted: Counter[tuple[str, tuple[Vote, ...]]] = Counter()
    for row in ballots:
        counted[row["deployment"], _votes(row)] += row["n"]
    return counted
