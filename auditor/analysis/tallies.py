"""From lines to counts: equal rows fall together, keyed by profile, statement and outcome.

A profile is everything a row can be grouped by; an outcome is its pair of labels with their reasons. What is kept is
the sparse joint table, so nothing below depends on how many lines there were, or on their order.
"""

from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Final

import numpy as np

from auditor.analysis.cases import Case, CaseFinder
from auditor.analysis.rows import OPEN, RUBRICS, STATEMENT, TASKS, CodedRow, Vote
from auditor.analysis.swings import Swing, SwingFinder
from auditor.domain.coding import ABSTAIN, ELABORATION_LABELS
from auditor.domain.review import Layer, Opinion
from auditor.metrics.joint import FREE_TASKS, UNSTATED, Coded, Ints, JointTable, joint_cell
from auditor.metrics.shares import BASELINE, FACTORS, Levels
from auditor.rows import BadRow

#: More completion tokens than this are none of one response.
_MOST_TOKENS: Final = 2**31 - 1

#: What a judge may vote on.
_LAYERS: Final = tuple(layer.value for layer in Layer)

#: A value rows can be grouped by.
Scalar = str | int | float | bool | None

#: Fields of a profile that need not be asked for.
PROFILE_FIELDS: Final = ("deployment", "rubric", "claim", "category", *FACTORS)


@dataclass(frozen=True, kw_only=True, slots=True)
class Profile:
    """What a row can be grouped by."""

    deployment: str
    rubric: str
    claim: str | None
    category: str | None
    condition: Levels
    extra: tuple[Scalar, ...]

    @property
    def has_claim(self) -> bool:
        """Whether endorsing what the row is about means endorsing a stereotype."""
        return self.rubric != "proposition" or self.claim == "stereotype"


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """A pair of labels as the joint table sees it."""

    cell: int
    sel_reason: str | None  #: of an Abstain
    elab_reason: str | None


#: The votes of one panel, and how often a deployment's responses got just these.
VoteCounts = Mapping[tuple[str, tuple[Vote, ...]], int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Completions:
    """Completion tokens by profile, of the rows that say them."""

    rows: Ints
    tokens: Ints  #: summed


@dataclass(frozen=True, kw_only=True, slots=True)
class Reviewed:
    """What people say of one row, each reviewer's newest label of a layer."""

    opinions: tuple[Opinion, ...]
    weight: float  #: one over the probability with which the row was drawn, up to a factor


@dataclass(frozen=True, kw_only=True, slots=True)
class ReviewedRow:
    """A row that people have labelled: where it is counted, and who else said what of it."""

    profile: int
    cluster: int
    outcome: int
    sel: str
    elab: str
    votes: tuple[Vote, ...]
    reviewed: Reviewed


@dataclass(frozen=True, kw_only=True, slots=True)
class Tallies:
    """Counts by profile, cluster and outcome; sorted by profile. ``spans[p]`` is where profile p's entries lie."""

    profiles: tuple[Profile, ...]
    extra: tuple[str, ...]  #: names of ``Profile.extra``
    outcomes: tuple[Outcome, ...]
    profile: Ints
    cluster: Ints
    outcome: Ints
    count: Ints
    spans: Ints
    n_clusters: int
    votes: VoteCounts
    skipped: int  #: bad rows left out
    complaints: tuple[str, ...]  #: what was wrong with the first few of them
    reviewed: tuple[ReviewedRow, ...] | None = None  #: None where nobody asked for people's labels
    completions: Completions | None = None  #: None where no row says its tokens
    cases: tuple[Case, ...] = ()
    swings: tuple[Swing, ...] = ()

    @property
    def cell(self) -> Ints:
        """Joint cell of each entry."""
        return np.array([outcome.cell for outcome in self.outcomes], dtype=np.int64)[self.outcome]

    def entries(self, profiles: Sequence[int]) -> Ints:
        """Find all entries of some profiles."""
        if not profiles:
            return np.zeros(0, dtype=np.int64)
        return np.concatenate([np.arange(self.spans[p], self.spans[p + 1]) for p in profiles])

    def table(self, entries: Ints, cells: Ints) -> JointTable:
        """Joint table of some entries over the clusters they touch; ``cells`` is ``self.cell``, computed once."""
        touched, cluster = np.unique(self.cluster[entries], return_inverse=True)
        return JointTable(cluster=cluster, cell=cells[entries], count=self.count[entries], n_clusters=len(touched))


class Tallier:
    """Counts rows one by one; ``finish`` gives the tallies, and the rows to be shown where ``examples`` are wanted."""

    def __init__(
        self,
        extra: Sequence[str],
        attributes: Sequence[str],
        reviews: Mapping[str, Reviewed] | None = None,
        *,
        examples: bool = False,
    ) -> None:
        self._extra = tuple(extra)
        self._reviews = reviews
        self._reviewed: list[ReviewedRow] = []
        self._read_extra = [attrgetter(attribute) for attribute in attributes]
        self._seen_extra = [False] * len(self._extra)
        self._lines: dict[str, int] = {}
        self._profiles: dict[tuple[object, ...], int] = {}
        self._profile_values: list[Profile] = []
        self._outcomes: dict[tuple[object, ...], int] = {}
        self._outcome_values: list[Outcome] = []
        self._clusters: dict[str, int] = {}
        self._votes: Counter[tuple[str, tuple[Vote, ...]]] = Counter()
        self._checked: set[tuple[Vote, ...]] = set()
        self._columns = array("q"), array("q"), array("q")
        self._completions = array("q"), array("q")
        self._examples = examples
        self._cases = CaseFinder()
        self._swings = SwingFinder()

    def add(self, row: CodedRow, line: int) -> None:
        """Count one row.

        Raises
        ------
        BadRow
            For a row that cannot be counted; nothing of it was counted.
        """
        key = row.id if type(row.id) is str else str(row.id)
        if key in self._lines:
            raise BadRow(f"the id {key!r} is already that of line {self._lines[key]}")
        if not key:
            raise BadRow("id is empty")
        # The profile comes last of what can fail: a bad row must leave no empty profile behind.
        outcome = self._outcome(row)
        if row.votes and row.votes not in self._checked:
            _check_votes(row.votes)
            self._checked.add(row.votes)
        if row.completion_tokens is not None and not 0 <= row.completion_tokens <= _MOST_TOKENS:
            raise BadRow("completion_tokens is not a number of tokens")
        profile = self._profile(row)
        if row.votes:
            self._votes[row.deployment, row.votes] += 1
        self._lines[key] = line
        name = _cluster(row, key)
        cluster = self._clusters.setdefault(name, len(self._clusters))
        for column, value in zip(self._columns, (profile, cluster, outcome), strict=True):
            column.append(value)
        if row.completion_tokens is not None:
            self._completions[0][profile] += 1
            self._completions[1][profile] += row.completion_tokens
        if self._examples and self._profile_values[profile].rubric == STATEMENT:
            self._cases.add(row, self._profile_values[profile].condition)
            self._swings.add(row, name)
        if self._reviews and (reviewed := self._reviews.get(key)):
            votes = row.votes or ()
            self._reviewed.append(
                ReviewedRow(
                    profile=profile,
                    cluster=cluster,
                    outcome=outcome,
                    sel=row.sel,
                    elab=row.elab,
                    votes=votes,
                    reviewed=reviewed,
                )
            )

    def _profile(self, row: CodedRow) -> int:
        extra = tuple([_typed(read(row)) for read in self._read_extra]) if self._read_extra else ()
        condition = (row.task, row.perspective, row.role, row.sentiment)
        key = (row.deployment, row.rubric, row.claim, row.category, condition, extra)
        try:
            code = self._profiles.get(key)
        except TypeError:
            raise BadRow("a field asked for by --by holds a list or an object, not a single value") from None
        if code is None:
            value = self._new_profile(row)
            code = self._profiles[key] = len(self._profiles)
            self._profile_values.append(value)
            for column in self._completions:
                column.append(0)
        return code

    def _new_profile(self, row: CodedRow) -> Profile:
        if not row.deployment:
            raise BadRow("deployment is empty")
        if row.task not in TASKS:
            raise BadRow(f"task {row.task!r} is not one of {' '.join(TASKS)}")
        rubric = (row.rubric or RUBRICS[0]).partition("/")[0]
        if rubric not in RUBRICS:
            raise BadRow(f"rubric {row.rubric!r} is not one of {' '.join(RUBRICS)}")
        given = (row.task, row.perspective, row.role, row.sentiment)
        task, perspective, role, sentiment = (value or base for value, base in zip(given, BASELINE, strict=True))
        extra = [read(row) for read in self._read_extra]
        for index, value in enumerate(extra):
            self._seen_extra[index] |= value is not None
        return Profile(
            deployment=row.deployment,
            rubric=rubric,
            claim=row.claim,
            category=row.category or None,
            condition=(task, perspective, role, sentiment),
            extra=tuple(extra),
        )

    def _outcome(self, row: CodedRow) -> int:
        # Without a statement nothing is selected either, whatever the task; a label that stands there is counted.
        free = row.task in FREE_TASKS or (row.sel == ABSTAIN and (row.rubric or "").partition("/")[0] == OPEN)
        key = (free, row.sel, row.sel_reason, row.elab, row.elab_reason)
        code = self._outcomes.get(key)
        if code is None:
            coded = Coded(sel=row.sel, sel_reason=row.sel_reason, elab=row.elab, elab_reason=row.elab_reason)
            try:
                cell = joint_cell(coded, free=free)
            except ValueError as error:
                raise BadRow(str(error)) from None
            code = self._outcomes[key] = len(self._outcomes)
            sel_reason = (row.sel_reason or UNSTATED) if row.sel == ABSTAIN else None
            elab_reason = (row.elab_reason or UNSTATED) if row.elab == ABSTAIN else None
            self._outcome_values.append(Outcome(cell=cell, sel_reason=sel_reason, elab_reason=elab_reason))
        return code

    def unseen(self) -> list[str]:
        """Fields asked for that no row has."""
        return [name for name, seen in zip(self._extra, self._seen_extra, strict=True) if not seen]

    def finish(self, skipped: int, complaints: Sequence[str] = ()) -> Tallies:
        """Sort and add up what was counted."""
        profile, cluster, outcome = (np.frombuffer(column, dtype=np.int64) for column in self._columns)
        order, place = _ranked([profile_key(value) for value in self._profile_values])
        _, cluster_place = _ranked(list(self._clusters))
        n_clusters, n_outcomes = len(self._clusters), len(self._outcome_values)
        keys = (place[profile] * n_clusters + cluster_place[cluster]) * n_outcomes + outcome
        unique, count = np.unique(keys, return_counts=True)
        profiles = unique // (n_clusters * n_outcomes)
        return Tallies(
            profiles=tuple(self._profile_values[index] for index in order),
            extra=self._extra,
            outcomes=tuple(self._outcome_values),
            profile=profiles,
            cluster=unique // n_outcomes % n_clusters,
            outcome=unique % n_outcomes,
            count=count.astype(np.int64),
            spans=np.searchsorted(profiles, np.arange(len(order) + 1)),
            n_clusters=n_clusters,
            votes=dict(self._votes),
            skipped=skipped,
            complaints=tuple(complaints),
            reviewed=self._placed(place, cluster_place),
            completions=self._completed(order),
            cases=self._cases.found(),
            swings=self._swings.found(),
        )

    def _completed(self, order: Sequence[int]) -> Completions | None:
        """Give the tokens by the numbers of the sorted profiles."""
        rows, tokens = (np.frombuffer(column, dtype=np.int64)[order] for column in self._completions)
        return Completions(rows=rows, tokens=tokens) if rows.any() else None

    def _placed(self, place: Ints, cluster_place: Ints) -> tuple[ReviewedRow, ...] | None:
        """Give the reviewed rows under the numbers of the sorted profiles and clusters, in an order of their own."""
        if self._reviews is None:
            return None
        placed = [
            replace(row, profile=int(place[row.profile]), cluster=int(cluster_place[row.cluster]))
            for row in self._reviewed
        ]
        return tuple(sorted(placed, key=lambda row: (row.profile, row.cluster, row.elab, str(row.reviewed))))


def _cluster(row: CodedRow, key: str) -> str:
    """Name the row's cluster: its statement's id, else the statement, else the row itself."""
    if row.statement_id is not None and row.statement_id != "":
        return f"i{row.statement_id}"
    return f"t{row.statement}" if row.statement else f"r{key}"


def _typed(value: object) -> object:
    """Keep 1, 1.0 and true apart, which Python holds equal."""
    return value if value is None or type(value) is str else (type(value).__name__, value)


def _check_votes(votes: tuple[Vote, ...]) -> None:
    seen = set()
    for vote in votes:
        layer = vote.layer or Layer.ELAB
        if not vote.judge:
            raise BadRow("a vote's judge is empty")
        if layer not in _LAYERS:
            raise BadRow(f"judge {vote.judge!r} votes on the layer {layer!r}, not one of {' '.join(_LAYERS)}")
        if vote.label is not None and vote.label not in ELABORATION_LABELS:
            raise BadRow(f"judge {vote.judge!r} votes {vote.label!r}, not one of {' '.join(ELABORATION_LABELS)}")
        if (vote.judge, layer) in seen:
            raise BadRow(f"judge {vote.judge!r} votes twice")
        seen.add((vote.judge, layer))


def scalar_key(value: Scalar) -> tuple[str, str, float]:
    """Order any two values: absent first, then numbers by size, then text."""
    if isinstance(value, str):
        return ("text", value, 0.0)
    # A whole number may be larger than any float: it is compared as it is.
    return ("", "", 0.0) if value is None else ("number", type(value).__name__, value)


def profile_key(profile: Profile) -> tuple[object, ...]:
    """Give what profiles are told apart and sorted by."""
    named = (profile.deployment, profile.rubric, profile.claim or "", profile.category or "", profile.condition)
    return (*named, tuple(scalar_key(value) for value in profile.extra))


def _ranked(keys: Sequence[object]) -> tuple[list[int], Ints]:
    """Sort; give the order, and each key's place in it."""
    order = sorted(range(len(keys)), key=keys.__getitem__)  # type: ignore[arg-type] # keys of one kind compare
    place = np.empty(len(keys), dtype=np.int64)
    place[order] = np.arange(len(keys))
    return order, place
