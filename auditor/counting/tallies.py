"""Define tallies, the counts of responses by group, cluster and outcome, and the builder that counts them.

Two readers use the builder: ``files`` for coded files and ``stored`` for rows of the store. The builder names and
sorts groups, clusters and outcomes, so the same responses give the same estimates to the last digit.
"""

from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from auditor.counting.conditions import FACTORS, Levels
from auditor.counting.joint import UNSTATED, Floats, Ints, JointTable, LabelPair, joint_cell
from auditor.counting.rows import Vote
from auditor.documents.analysis import CaseEntry, SwingEntry
from auditor.domain.coding import ABSTAIN
from auditor.reviews.opinions import Opinion

#: A value rows can be grouped by.
Scalar = str | int | float | bool | None
#: Fields of a group that every row has; all others are named by ``extra``.
GROUP_FIELDS: Final = ("deployment", "rubric", "claim", "category", *FACTORS)
#: The votes of one panel, and the number of a deployment's responses with exactly these votes.
VoteCounts = Mapping[tuple[str, tuple[Vote, ...]], int]


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupKey:
    """The values by which a row can be grouped."""

    deployment: str
    rubric: str
    claim: str | None
    category: str | None
    condition: Levels
    extra: tuple[Scalar, ...]
    keyed: str | None = None  #: E or D: the stance of the answer named first, on Rate of the 5; None where not known

    @property
    def has_claim(self) -> bool:
        """Return whether endorsement of the row's proposition is endorsement of a stereotype."""
        return self.rubric != "proposition" or self.claim == "stereotype"

    @property
    def order(self) -> tuple[object, ...]:
        """Return the key that identifies and sorts groups."""
        named = (self.deployment, self.rubric, self.claim or "", self.category or "", self.condition)
        return (*named, tuple(scalar_key(value) for value in self.extra), self.keyed or "")


def scalar_key(value: Scalar) -> tuple[str, str, float]:
    """Return a key that sorts any two values: absent first, then numbers by size, then text."""
    if isinstance(value, str):
        return ("text", value, 0.0)
    # A whole number may be larger than any float, so it is compared as it is.
    return ("", "", 0.0) if value is None else ("number", type(value).__name__, value)


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelOutcome:
    """A pair of labels in the form of the joint table."""

    cell: int
    sel_reason: str | None  #: reason of an Abstain
    elab_reason: str | None

    @classmethod
    def of(cls, labels: LabelPair, *, free: bool) -> "LabelOutcome":
        """Return the outcome of one response; ``free`` as in ``joint_cell``.

        Raises
        ------
        ValueError
            For labels and reasons that are unknown or contradict each other.
        """
        return cls(
            cell=joint_cell(labels, free=free),
            sel_reason=(labels.sel_reason or UNSTATED) if labels.sel == ABSTAIN else None,
            elab_reason=(labels.elab_reason or UNSTATED) if labels.elab == ABSTAIN else None,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Completions:
    """Completion tokens by group, of the rows that state them."""

    rows: Ints
    tokens: Ints  #: summed


@dataclass(frozen=True, kw_only=True, slots=True)
class Reviewed:
    """People's labels of one row, each reviewer's newest label of a layer."""

    opinions: tuple[Opinion, ...]
    weight: float  #: one over the probability with which the row was drawn, up to a factor


@dataclass(frozen=True, kw_only=True, slots=True)
class ReviewedRow:
    """A row that people have labelled: where it is counted, its own labels, its votes and people's labels."""

    group: int
    cluster: int
    outcome: int
    sel: str
    elab: str
    votes: tuple[Vote, ...]
    reviewed: Reviewed


@dataclass(frozen=True, kw_only=True, slots=True)
class TemplateTallies:
    """Counts of the rows that state their template, by group, cluster, statement, template and outcome."""

    names: tuple[str, ...]
    group: Ints
    cluster: Ints
    statement: Ints
    template: Ints  #: place in ``names``
    outcome: Ints
    count: Ints


@dataclass(frozen=True, kw_only=True, slots=True)
class Tallies:
    """Counts by group, cluster, outcome and inclusion probability; sorted by group.

    ``spans[g]`` is where the entries of group g start.
    """

    groups: tuple[GroupKey, ...]
    extra: tuple[str, ...]  #: names of ``GroupKey.extra``
    outcomes: tuple[LabelOutcome, ...]
    group: Ints
    cluster: Ints
    outcome: Ints
    inclusion: Floats  #: probability with which the responses of each entry were captured, (0, 1]
    count: Ints
    spans: Ints
    n_clusters: int
    votes: VoteCounts
    statement: Ints  #: the statement of each entry: its cluster, unless other clusters are named
    #: The named clusters that count, each with the cluster of each entry; the first is ``cluster``, which has fewest.
    clusterings: Mapping[str, Ints] = field(default_factory=dict)
    #: Fields of which every cluster has one value: the number of the value, by cluster.
    coarser: Mapping[str, Ints] = field(default_factory=dict)
    skipped: int = 0  #: bad rows left out
    complaints: tuple[str, ...] = ()  #: errors of the first few bad rows
    reviewed: tuple[ReviewedRow, ...] | None = None  #: None where nobody asked for people's labels
    completions: Completions | None = None  #: None where no row states its tokens
    cases: tuple[CaseEntry, ...] = ()
    swings: tuple[SwingEntry, ...] = ()
    templates: TemplateTallies | None = None  #: None where no row states its template

    def entries(self, group_indices: Sequence[int]) -> Ints:
        """Return the places of all entries of some groups."""
        if not group_indices:
            return np.zeros(0, dtype=np.int64)
        return np.concatenate([np.arange(self.spans[p], self.spans[p + 1]) for p in group_indices])

    def cells(self, entries: Ints) -> Ints:
        """Return the joint cells of some entries."""
        return np.array([outcome.cell for outcome in self.outcomes], dtype=np.int64)[self.outcome[entries]]

    def clusterings_of(self, entries: Ints) -> tuple[Ints, ...]:
        """Return the named clusters of some entries; nothing where statements are the clusters."""
        return tuple(cluster[entries] for cluster in self.clusterings.values())

    def table(self, entries: Ints) -> JointTable:
        """Return the joint table of some entries."""
        touched, cluster = np.unique(self.cluster[entries], return_inverse=True)
        return JointTable(
            cluster=cluster,
            cell=self.cells(entries),
            count=self.count[entries],
            n_clusters=len(touched),
            clusterings=self.clusterings_of(entries),
            weight=self.weight(entries),
        )

    def weight(self, entries: Ints) -> Floats | None:
        """Return one over the inclusion probability of some entries; None if all are the same."""
        inclusion = self.inclusion[entries]
        return 1 / inclusion if len(inclusion) and inclusion.min() < inclusion.max() else None


class TallyBuilder:
    """A builder that counts responses one by one or many at a time.

    ``group``, ``cluster`` and ``outcome`` return numbers, which ``add`` and ``add_reviewed`` take. A reader caches
    these numbers, so that most rows need only a look-up.
    """

    def __init__(
        self,
        extra: Sequence[str] = (),
        *,
        reviewed: bool = False,
        clusterings: Sequence[str] = (),
        nesting: Sequence[str] = (),
    ) -> None:
        self.extra = tuple(extra)
        self._clusterings = tuple(clusterings)
        #: By field that statements may be nested in: the value of each cluster, until one has two values.
        self._nesting: dict[str, dict[int, str]] = {name: {} for name in nesting}
        self.groups: list[GroupKey] = []
        self._group_numbers: dict[tuple[object, ...], int] = {}
        self._clusters: dict[tuple[str, ...], int] = {}
        self._outcomes: dict[LabelOutcome, int] = {}
        self._templates: dict[str, int] = {}
        self._columns = array("q"), array("q"), array("q"), array("q"), array("q")
        self._inclusion = array("d")
        self._tokens = array("q"), array("q")
        self._votes: Counter[tuple[str, tuple[Vote, ...]]] = Counter()
        self._reviewed: list[ReviewedRow] | None = [] if reviewed else None

    def group(self, key: GroupKey) -> int:
        """Return the number of a group."""
        number = self._group_numbers.setdefault(key.order, len(self.groups))
        if number == len(self.groups):
            self.groups.append(key)
            for column in self._tokens:
                column.append(0)
        return number

    def cluster(self, statement: str, *named: str) -> int:
        """Return the number of a cluster: of a statement, or of its part that lies in these named clusters."""
        return self._clusters.setdefault((statement, *named), len(self._clusters))

    def add_nesting(self, cluster: int, values: Mapping[str, str]) -> None:
        """Note in which group of each nesting field a response of a cluster is."""
        for name in [name for name, value in values.items() if name in self._nesting]:
            if self._nesting[name].setdefault(cluster, values[name]) != values[name]:
                del self._nesting[name]

    def outcome(self, labels: LabelPair, *, free: bool) -> int:
        """Return the number of an outcome.

        Raises
        ------
        ValueError
            See ``LabelOutcome.of``.
        """
        return self._outcomes.setdefault(LabelOutcome.of(labels, free=free), len(self._outcomes))

    def template(self, name: str | None) -> int:
        """Return the number of a template; -1 for none."""
        return -1 if name is None else self._templates.setdefault(name, len(self._templates))

    def add(
        self, group: int, cluster: int, outcome: int, n: int = 1, *, inclusion: float = 1.0, template: int = -1
    ) -> None:
        """Count ``n`` responses, each captured with the probability ``inclusion``."""
        self._inclusion.append(inclusion)
        groups, clusters, outcomes, counts, templates = self._columns
        templates.append(template)
        groups.append(group)
        clusters.append(cluster)
        outcomes.append(outcome)
        counts.append(n)

    def add_tokens(self, group: int, rows: int, tokens: int) -> None:
        """Add the completion tokens of some responses of a group."""
        self._tokens[0][group] += rows
        self._tokens[1][group] += tokens

    def add_votes(self, deployment: str, votes: tuple[Vote, ...], n: int = 1) -> None:
        """Count ``n`` responses of a deployment that got these votes."""
        self._votes[deployment, votes] += n

    def add_reviewed(self, row: ReviewedRow) -> None:
        """Keep a counted row that people have labelled."""
        assert self._reviewed is not None
        self._reviewed.append(row)

    def finish(self) -> Tallies:
        """Return the tallies: groups, clusters and outcomes in an order that does not depend on the rows' order."""
        group, cluster, outcome, n, template = (np.frombuffer(column, dtype=np.int64) for column in self._columns)
        inclusions, inclusion = np.unique(np.frombuffer(self._inclusion, dtype=np.float64), return_inverse=True)
        order, group_rank = _ranked([key.order for key in self.groups])
        parts = list(self._clusters)
        part_order, part_rank = _ranked(parts)
        outcomes = list(self._outcomes)
        outcome_order, outcome_rank = _ranked(
            [(each.cell, each.sel_reason or "", each.elab_reason or "") for each in outcomes]
        )
        ranked = group_rank[group], part_rank[cluster], outcome_rank[outcome]
        (group, part, outcome, inclusion), count = _counted((*ranked, inclusion), n)
        clusterings = _crossed([parts[index] for index in part_order], self._clusterings)
        statement = _numbers([parts[index][0] for index in part_order])
        cluster_of = next(iter(clusterings.values()), statement)
        template_order, template_rank = _ranked(list(self._templates))
        cluster_rank = cluster_of[part_rank]
        rows, tokens = (np.frombuffer(column, dtype=np.int64)[order] for column in self._tokens)
        return Tallies(
            groups=tuple(self.groups[index] for index in order),
            extra=self.extra,
            outcomes=tuple(outcomes[index] for index in outcome_order),
            group=group,
            cluster=cluster_of[part],
            outcome=outcome,
            inclusion=inclusions[inclusion],
            count=count,
            spans=np.searchsorted(group, np.arange(len(order) + 1)),
            n_clusters=len(np.unique(cluster_of)),
            statement=statement[part],
            clusterings={name: cluster[part] for name, cluster in clusterings.items()},
            coarser={
                name: groups
                for name, values in self._nesting.items()
                if (groups := _nested([values.get(index, "") for index in part_order], cluster_of)) is not None
            },
            votes=dict(self._votes),
            reviewed=self._ranked_reviews(group_rank, cluster_rank, outcome_rank),
            completions=Completions(rows=rows, tokens=tokens) if rows.any() else None,
            templates=_templated(
                [list(self._templates)[index] for index in template_order],
                (*(each[template >= 0] for each in ranked), template_rank[template[template >= 0]]),
                n[template >= 0],
                cluster_of,
                statement,
            ),
        )

    def _ranked_reviews(
        self, group_rank: Ints, cluster_rank: Ints, outcome_rank: Ints
    ) -> tuple[ReviewedRow, ...] | None:
        """Return the reviewed rows under their final numbers, in an order of their own."""
        if self._reviewed is None:
            return None
        ranked = [
            replace(
                row,
                group=int(group_rank[row.group]),
                cluster=int(cluster_rank[row.cluster]),
                outcome=int(outcome_rank[row.outcome]),
            )
            for row in self._reviewed
        ]
        return tuple(sorted(ranked, key=_review_order))


def _counted(keys: Sequence[Ints], n: Ints) -> tuple[tuple[Ints, ...], Ints]:
    """Return the different combinations of some keys in order, and the sum of ``n`` over each."""
    shape = tuple(int(key.max(initial=0)) + 1 for key in keys)
    unique, place = np.unique(np.ravel_multi_index(tuple(keys), shape), return_inverse=True)
    count = np.rint(np.bincount(place, weights=n, minlength=len(unique))).astype(np.int64)
    return np.unravel_index(unique, shape), count


def _templated(
    names: Sequence[str], keys: Sequence[Ints], n: Ints, cluster_of: Ints, statement_of: Ints
) -> TemplateTallies | None:
    """Count by group, part of a cluster, outcome and template."""
    if not names:
        return None
    (group, part, outcome, template), count = _counted(keys, n)
    return TemplateTallies(
        names=tuple(names),
        group=group,
        cluster=cluster_of[part],
        statement=statement_of[part],
        template=template,
        outcome=outcome,
        count=count,
    )


def _review_order(row: ReviewedRow) -> tuple[int, int, str, str]:
    return row.group, row.cluster, row.elab, str(row.reviewed)


def _numbers(names: Sequence[str]) -> Ints:
    """Return the number of each name by the order of the names, equal names alike."""
    if not names:
        return np.zeros(0, dtype=np.int64)
    number = {name: index for index, name in enumerate(sorted(set(names)))}
    return np.array([number[name] for name in names], dtype=np.int64)


def _crossed(parts: Sequence[tuple[str, ...]], names: Sequence[str]) -> dict[str, Ints]:
    """Return the named clusters of each part, without clusters that lie in others; those with fewest come first."""
    clusterings = {name: _numbers([part[place] for part in parts]) for place, name in enumerate(names, start=1)}
    for name in names:
        if any(other != name and _lies_in(clusterings[name], clusters) for other, clusters in clusterings.items()):
            del clusterings[name]
    return dict(sorted(clusterings.items(), key=lambda item: int(item[1].max(initial=0))))


def _lies_in(finer: Ints, coarser: Ints) -> bool:
    """Return whether every cluster of the first numbering lies in one of the second."""
    return len(np.unique(np.stack([finer, coarser]), axis=1).T) == len(np.unique(finer))


def _nested(values: Sequence[str], cluster_of: Ints) -> Ints | None:
    """Return the number of each cluster's value; None where a cluster has two, or values do not join any clusters."""
    numbers = _numbers(values)
    pairs = np.unique(np.stack([cluster_of, numbers]), axis=1)
    clusters, groups = len(np.unique(cluster_of)), len(set(values))
    return pairs[1] if len(pairs.T) == clusters and 1 < groups < clusters else None


def _ranked(keys: Sequence[object]) -> tuple[list[int], Ints]:
    """Return the places of the keys in sorted order, and each key's rank."""
    order = sorted(range(len(keys)), key=keys.__getitem__)  # type: ignore[arg-type] # keys of one kind compare
    rank = np.empty(len(keys), dtype=np.int64)
    rank[order] = np.arange(len(keys))
    return order, rank
