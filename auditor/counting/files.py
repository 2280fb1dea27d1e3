"""Make the tallies of a coded file: check and count each row.

``rows`` decodes the lines, ``tallies`` builds the tallies; ``stored`` does the same for rows of the store.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from types import MappingProxyType
from typing import Final

from auditor.counting.conditions import BASELINE, TRAFFIC
from auditor.counting.joint import LabelPair, is_selection_free
from auditor.counting.rows import KEYS, RUBRICS, STATEMENT, CodedRow, Vote
from auditor.counting.tallies import GroupKey, Reviewed, ReviewedRow, Tallies, TallyBuilder
from auditor.documents.jsonl import BadRow
from auditor.domain.coding import ELABORATION_LABELS
from auditor.domain.condition import Task
from auditor.quotations.choice import CaseFinder, SwingFinder
from auditor.reviews.opinions import Layer

#: No response has more completion tokens than this.
_MOST_TOKENS: Final = 2**31 - 1
#: The layers that a judge may vote on.
_LAYERS: Final = tuple(layer.value for layer in Layer)


class RowCounter:
    """A counter of the rows of a file; with ``examples`` it also keeps the rows to show."""

    def __init__(
        self,
        extra: Sequence[str] = (),
        attributes: Sequence[str] = (),
        reviews: Mapping[str, Reviewed] | None = None,
        *,
        examples: bool = False,
        clusterings: Mapping[str, str] = MappingProxyType({}),
        nesting: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._builder = TallyBuilder(
            extra, reviewed=reviews is not None, clusterings=tuple(clusterings), nesting=tuple(nesting)
        )
        self._clusterings = {name: attrgetter(attribute) for name, attribute in clusterings.items()}
        self._nesting = {name: attrgetter(attribute) for name, attribute in nesting.items()}
        self._clustered: set[str] = set()
        self._reviews = reviews
        self._read_extra = [attrgetter(attribute) for attribute in attributes]
        self._seen_extra = [False] * len(extra)
        self._lines: dict[str, int] = {}
        self._groups: dict[tuple[object, ...], int] = {}
        self._outcomes: dict[tuple[object, ...], int] = {}
        self._checked: set[tuple[Vote, ...]] = set()
        self._examples = examples
        self._cases = CaseFinder()
        self._swings = SwingFinder()

    def add(self, row: CodedRow, line: int) -> None:
        """Count one row.

        Raises
        ------
        BadRow
            For a row that cannot be counted; no part of it is counted.
        """
        key = row.id if type(row.id) is str else str(row.id)
        self._check(row, key)
        outcome = self._outcome(row)
        group = self._group(row)
        name = _cluster(row, key)
        cluster = self._builder.cluster(name, *self._named(row, key))
        self._lines[key] = line
        if self._nesting:
            self._builder.add_nesting(cluster, {each: _text(read(row)) or "" for each, read in self._nesting.items()})
        inclusion = 1.0 if row.inclusion is None else row.inclusion
        template = self._builder.template(_wording(row.template_id))
        self._builder.add(group, cluster, outcome, inclusion=inclusion, template=template)
        if row.votes:
            self._builder.add_votes(row.deployment, row.votes)
        if row.completion_tokens is not None:
            self._builder.add_tokens(group, 1, row.completion_tokens)
        if self._examples and self._builder.groups[group].rubric == STATEMENT:
            self._cases.add(row, self._builder.groups[group].condition)
            self._swings.add(row, name)
        if self._reviews and (reviewed := self._reviews.get(key)):
            self._builder.add_reviewed(
                ReviewedRow(
                    group=group,
                    cluster=cluster,
                    outcome=outcome,
                    sel=row.sel,
                    elab=row.elab,
                    votes=row.votes or (),
                    reviewed=replace(reviewed, weight=reviewed.weight / inclusion),
                )
            )

    def _named(self, row: CodedRow, key: str) -> list[str]:
        """Return the row's named clusters; a row without a value of a field is a cluster of its own."""
        values = []
        for name, read in self._clusterings.items():
            value = _text(read(row))
            if value is not None:
                self._clustered.add(name)
            values.append(f"r{key}" if value is None else f"v{value}")
        return values

    def unclustered(self) -> list[str]:
        """Return the fields of clusters that no row has."""
        return [name for name in self._clusterings if name not in self._clustered]

    def unseen(self) -> list[str]:
        """Return the extra fields that no row has."""
        return [name for name, seen in zip(self._builder.extra, self._seen_extra, strict=True) if not seen]

    def finish(self, skipped: int = 0, complaints: Sequence[str] = ()) -> Tallies:
        """Return the tallies of the rows counted so far."""
        return replace(
            self._builder.finish(),
            skipped=skipped,
            complaints=tuple(complaints),
            cases=self._cases.cases(),
            swings=self._swings.swings(),
        )

    def _check(self, row: CodedRow, key: str) -> None:
        if key in self._lines:
            raise BadRow(f"the id {key!r} is already that of line {self._lines[key]}")
        if not key:
            raise BadRow("id is empty")
        if row.votes and row.votes not in self._checked:
            _check_votes(row.votes)
            self._checked.add(row.votes)
        if row.completion_tokens is not None and not 0 <= row.completion_tokens <= _MOST_TOKENS:
            raise BadRow("completion_tokens is not a number of tokens")
        if row.inclusion is not None and not 0 < row.inclusion <= 1:
            raise BadRow("inclusion must be a number over 0 and at most 1")

    def _outcome(self, row: CodedRow) -> int:
        key = (row.task, row.rubric, row.sel, row.sel_reason, row.elab, row.elab_reason)
        number = self._outcomes.get(key)
        if number is None:
            labels = LabelPair(sel=row.sel, sel_reason=row.sel_reason, elab=row.elab, elab_reason=row.elab_reason)
            try:
                number = self._builder.outcome(labels, free=is_selection_free(row.task, row.rubric, row.sel))
            except ValueError as error:
                raise BadRow(str(error)) from None
            self._outcomes[key] = number
        return number

    def _group(self, row: CodedRow) -> int:
        extra = tuple([_typed(read(row)) for read in self._read_extra]) if self._read_extra else ()
        condition = (row.task, row.perspective, row.role, row.sentiment)
        key = (row.deployment, row.rubric, row.claim, row.category, row.keyed, condition, extra)
        try:
            number = self._groups.get(key)
        except TypeError:
            raise BadRow("a field asked for by --by or --model holds a list or an object, not a single value") from None
        if number is None:
            number = self._groups[key] = self._builder.group(self._new_group(row))
        return number

    def _new_group(self, row: CodedRow) -> GroupKey:
        if not row.deployment:
            raise BadRow("deployment is empty")
        if row.task not in {*Task, TRAFFIC}:
            raise BadRow(f"task {row.task!r} is not one of {' '.join((*Task, TRAFFIC))}")
        rubric = (row.rubric or STATEMENT).partition("/")[0]
        if rubric not in RUBRICS:
            raise BadRow(f"rubric {row.rubric!r} is not one of {' '.join(RUBRICS)}")
        if row.keyed is not None and row.keyed not in KEYS:
            raise BadRow(f"keyed {row.keyed!r} is not one of {' '.join(KEYS)}")
        levels = (row.task, row.perspective, row.role, row.sentiment)
        task, perspective, role, sentiment = (value or base for value, base in zip(levels, BASELINE, strict=True))
        extra = tuple(read(row) for read in self._read_extra)
        for index, value in enumerate(extra):
            self._seen_extra[index] |= value is not None
        return GroupKey(
            deployment=row.deployment,
            rubric=rubric,
            claim=row.claim,
            category=row.category or None,
            condition=(task, perspective, role, sentiment),
            extra=extra,
            keyed=row.keyed,
        )


def _cluster(row: CodedRow, key: str) -> str:
    """Return the name of the row's cluster: its statement's id, else the statement, else the row itself."""
    if row.statement_id is not None and row.statement_id != "":
        return f"i{row.statement_id}"
    return f"t{row.statement}" if row.statement else f"r{key}"


def _wording(template_id: str | int | None) -> str | None:
    """Return the template of a row. A canonical wording with its options in the other order is no other wording."""
    if template_id is None or template_id == "":
        return None
    name = str(template_id)
    return name[:-1] if name.endswith("-00r") else name


def _text(value: object) -> str | None:
    """Return a single value as text; None for nothing.

    Raises
    ------
    BadRow
        For a list or an object.
    """
    if isinstance(value, list | dict):
        raise BadRow("a field that clusters holds a list or an object, not a single value")
    return None if value is None or value == "" else str(value)


def _typed(value: object) -> object:
    """Return a value that distinguishes 1, 1.0 and true, which are equal in Python."""
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
