"""Make the tallies of rows of the store, which are already counts.

``tallies`` builds the tallies; ``files`` does the same for the rows of a coded file. A response that was never coded
(``uncoded``) is in no table and is counted apart.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final

from auditor.counting.conditions import BASELINE, FACTORS, TRAFFIC, Levels
from auditor.counting.joint import LabelPair, is_selection_free
from auditor.counting.rows import Vote
from auditor.counting.tallies import GROUP_FIELDS, GroupKey, Reviewed, ReviewedRow, Tallies, TallyBuilder, VoteCounts
from auditor.reviews.opinions import Layer, Opinion

Row = Mapping[str, Any]
#: All that decides the outcome of a row.
_OUTCOME_FIELDS: Final = itemgetter("task", "rubric", "sel", "sel_reason", "elab", "elab_reason")


def condition_of(row: Row) -> Levels:
    """Return the condition a row was asked under."""
    if row["task"] is None:
        return (TRAFFIC, *BASELINE[1:])
    levels = [row[factor] or base for factor, base in zip(FACTORS, BASELINE, strict=True)]
    return (levels[0], levels[1], levels[2], levels[3])


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
        Counts as ``auditor.store.tallies.read_windows`` or ``auditor.store.period.count_period`` gives them.
    votes
        Votes of the judges, for their agreement.
    labelled
        Those of the rows that people have labelled, one by one, as ``auditor.store.review_draws`` gives them.
    extra
        Further fields of the rows to group by.
    """
    builder = TallyBuilder(extra, reviewed=labelled is not None, nesting=("category",))
    numbers = _Numbers(builder)
    for row in rows:
        if row["uncoded"] is not None:
            continue
        group, cluster, outcome = numbers.of(row)
        builder.add_nesting(cluster, {"category": row["category"] or ""})
        builder.add(group, cluster, outcome, row["n"], inclusion=row["inclusion"])
        if row.get("n_tokens"):
            builder.add_tokens(group, row["n_tokens"], row["tokens"])
    for (deployment, ballot), n in (votes or {}).items():
        builder.add_votes(deployment, ballot, n)
    for row in labelled or ():
        builder.add_reviewed(_reviewed(row, *numbers.of(row)))
    return builder.finish()


class _Numbers:
    """The numbers of rows' groups, clusters and outcomes; groups and outcomes of many rows are looked up once."""

    def __init__(self, builder: TallyBuilder) -> None:
        self._builder = builder
        self._groups: dict[tuple[object, ...], int] = {}
        self._outcomes: dict[tuple[object, ...], int] = {}
        self._group_fields = itemgetter(*GROUP_FIELDS, *builder.extra)

    def of(self, row: Row) -> tuple[int, int, int]:
        """Return the numbers of a row's group, cluster and outcome."""
        fields = self._group_fields(row)
        group = self._groups.get(fields)
        if group is None:
            group = self._groups[fields] = self._builder.group(_group(row, self._builder.extra))
        labels = _OUTCOME_FIELDS(row)
        outcome = self._outcomes.get(labels)
        if outcome is None:
            free = is_selection_free(row["task"], row["rubric"], row["sel"])
            outcome = self._outcomes[labels] = self._builder.outcome(LabelPair.of(row), free=free)
        return group, self._builder.cluster(f"i{row['cluster']}"), outcome


def _group(row: Row, extra: Sequence[str]) -> GroupKey:
    return GroupKey(
        deployment=row["deployment"],
        rubric=row["rubric"],
        claim=row["claim"],
        category=row["category"],
        condition=condition_of(row),
        extra=tuple(row[name] for name in extra),
    )


def _votes(row: Row) -> tuple[Vote, ...]:
    return tuple(Vote(judge=judge, label=label) for judge, label in row["votes"] or ())


def _reviewed(row: Row, group: int, cluster: int, outcome: int) -> ReviewedRow:
    opinions = [
        Opinion(reviewer=reviewer, layer=Layer(layer), label=label, adjudicates=adjudicates)
        for layer, reviewer, label, adjudicates in row["opinions"]
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
