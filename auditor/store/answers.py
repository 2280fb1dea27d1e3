"""Read codings with their votes, a page at a time: all of a selection, or the answers that a number counts."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ColumnElement, Select, and_, func, not_, or_, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.domain.coding import ABSTAIN
from auditor.domain.ids import floor_id
from auditor.store.answer_words import holds_words
from auditor.store.codings import codings, votes
from auditor.store.exchanges import planned_instances
from auditor.store.plans import planned_calls

#: The column of each filter.
FILTERS: Final = {
    "statement_id": codings.c.cluster,
    **{
        name: codings.c[name]
        for name in (
            *("deployment", "origin", "rubric", "audit", "claim", "task", "perspective", "role", "sentiment"),
            *("category", "coder", "sel", "elab"),
        )
    },
}
_ENDORSES_SEL: Final = codings.c.sel == "E"
_ENDORSES_ELAB: Final = codings.c.elab.in_(("E", "QE"))
_ELIGIBLE: Final = and_(codings.c.sel != ABSTAIN, codings.c.elab != ABSTAIN)
#: The answers in the numerators of the measures (``auditor.metrics.rates``): both layers coded (``nXY``: whether the
#: selection and the elaboration endorse), one layer whatever the other is, either layer, or not coded on both layers.
CELLS: Final = {
    "n11": and_(_ELIGIBLE, _ENDORSES_SEL, _ENDORSES_ELAB),
    "n10": and_(_ELIGIBLE, _ENDORSES_SEL, not_(_ENDORSES_ELAB)),
    "n01": and_(_ELIGIBLE, not_(_ENDORSES_SEL), _ENDORSES_ELAB),
    "n00": and_(_ELIGIBLE, not_(_ENDORSES_SEL), not_(_ENDORSES_ELAB)),
    "sel_E": _ENDORSES_SEL,
    "elab_E": _ENDORSES_ELAB,
    "union": or_(_ENDORSES_SEL, _ENDORSES_ELAB),
    "uncoded": or_(codings.c.uncoded.is_not(None), codings.c.sel == ABSTAIN, codings.c.elab == ABSTAIN),
}
#: So many codings are all found before the page is cut from them.
_FEW: Final = 5000
#: Rows of a page of an export.
_PAGE: Final = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class CodedSelection:
    """Which codings are read: those of the given coders, unless the selection names one itself."""

    equal: Mapping[str, str] = field(default_factory=dict)  #: values by filter; the filters are ``FILTERS``
    conditions: Sequence[Mapping[str, str]] = ()  #: values by filter, one of which has to hold; none: all
    cells: Sequence[str] = ()  #: some of ``CELLS``; none: all
    reason: str | None = None  #: why a layer, or the whole answer, has no label
    since: datetime | None = None  #: None: from the first
    until: datetime | None = None  #: not included; None: to the last
    as_of: datetime | None = None  #: time up to which codings count; None: all
    plan: str | None = None  #: the id of the plan whose calls they answer; None: of all plans, and of none
    words: str | None = None  #: words in the answer or its statement, as ``holds_words`` reads them


#: A coding with its votes: the columns of ``codings``; ``judge``, ``label``, ``reason`` and ``rationale`` of each vote.
VotedCoding = tuple[Mapping[str, Any], list[Mapping[str, Any]]]


async def read_coded(
    connection: AsyncConnection, coders: Collection[str], selection: CodedSelection
) -> AsyncIterator[list[VotedCoding]]:
    """Yield codings a page at a time, the oldest exchange first. Exchanges that could not be coded are left out."""
    wanted = [*_conditions(coders, selection), codings.c.uncoded.is_(None)]
    query = select(codings).order_by(codings.c.exchange_id, codings.c.coder).limit(_PAGE)
    after: list[ColumnElement[bool]] = []
    while True:
        page = (await connection.execute(query.where(*wanted, *after))).mappings().all()
        if not page:
            return
        yield await _with_votes(connection, page)
        last = page[-1]["exchange_id"], page[-1]["coder"]
        after = [tuple_(codings.c.exchange_id, codings.c.coder) > last]


async def count_answers(connection: AsyncConnection, coders: Collection[str], selection: CodedSelection) -> int:
    """Count the codings of a selection."""
    query = select(func.count()).select_from(codings).where(*_conditions(coders, selection))
    return (await connection.execute(query)).scalar_one()


async def count_labels(
    connection: AsyncConnection, coders: Collection[str], selection: CodedSelection
) -> dict[tuple[str, str], int]:
    """Count the codings of a selection by the labels of selection and elaboration."""
    query = (
        select(codings.c.sel, codings.c.elab, func.count().label("n"))
        .where(*_conditions(coders, selection), codings.c.uncoded.is_(None))
        .group_by(codings.c.sel, codings.c.elab)
    )
    return {(row.sel, row.elab): row.n for row in await connection.execute(query)}


async def read_answers(
    connection: AsyncConnection,
    coders: Collection[str],
    selection: CodedSelection,
    limit: int,
    after: UUID | None,
    total: int,
) -> list[VotedCoding]:
    """Read one page of a selection of ``total`` codings, the newest exchange first, from before ``after``."""
    wanted = _conditions(coders, selection)
    if after is not None:
        wanted.append(codings.c.exchange_id < after)
    if "deployment" in selection.equal or total <= _FEW:
        # The codings of one deployment are found by its index, and few by those of the filters. Left to choose,
        # PostgreSQL goes through all codings in the order of the page, which takes long where few of them match.
        selected = (
            select(codings.c.exchange_id, codings.c.coder).where(*wanted).cte("found").prefix_with("MATERIALIZED")
        )
        newest = select(selected).order_by(selected.c.exchange_id.desc(), selected.c.coder).limit(limit)
        keys = [tuple(row) for row in await connection.execute(newest)]
        wanted = [tuple_(codings.c.exchange_id, codings.c.coder).in_(keys)]
    query = select(codings).where(*wanted).order_by(codings.c.exchange_id.desc(), codings.c.coder).limit(limit)
    return await _with_votes(connection, (await connection.execute(query)).mappings().all())


async def read_codings(connection: AsyncConnection, ids: Sequence[UUID]) -> dict[UUID, list[VotedCoding]]:
    """Read all codings of exchanges, by exchange, the newest first."""
    query = select(codings).where(codings.c.exchange_id.in_(ids)).order_by(codings.c.coded_at.desc(), codings.c.coder)
    by_exchange: dict[UUID, list[VotedCoding]] = {each: [] for each in ids}
    for voted in await _with_votes(connection, (await connection.execute(query)).mappings().all()):
        by_exchange[voted[0]["exchange_id"]].append(voted)
    return by_exchange


def _conditions(coders: Collection[str], selection: CodedSelection) -> list[ColumnElement[bool]]:
    wanted: list[ColumnElement[bool]] = [] if "coder" in selection.equal else [codings.c.coder.in_(sorted(coders))]
    wanted += [FILTERS[name] == value for name, value in selection.equal.items()]
    if selection.conditions:
        each = (
            and_(*(FILTERS[name] == value for name, value in condition.items())) for condition in selection.conditions
        )
        wanted.append(or_(*each))
    if selection.cells:
        wanted.append(or_(*(CELLS[cell] for cell in selection.cells)))
    if selection.reason is not None:
        reasons = (codings.c.uncoded, codings.c.sel_reason, codings.c.elab_reason)
        wanted.append(or_(*(column == selection.reason for column in reasons)))
    if selection.since is not None:
        wanted.append(codings.c.exchange_id >= floor_id(selection.since))
    if selection.until is not None:
        wanted.append(codings.c.exchange_id < floor_id(selection.until))
    if selection.as_of is not None:
        wanted.append(codings.c.coded_at <= selection.as_of)
    if selection.plan is not None:
        wanted.append(codings.c.exchange_id.in_(_of_plan(selection.plan, selection.equal.get("deployment"))))
    if selection.words is not None:
        wanted.append(holds_words(codings.c.exchange_id, selection.words))
    return wanted


def _of_plan(plan_id: str, deployment: str | None) -> Select[tuple[UUID]]:
    """Select the exchanges that count for a plan; the deployment, if it is known, spares those of all others."""
    query = select(planned_instances.c.exchange_id).join(planned_calls, planned_calls.c.ref == planned_instances.c.ref)
    query = query.where(planned_calls.c.plan_id == plan_id)
    return query if deployment is None else query.where(planned_calls.c.deployment == deployment)


async def _with_votes(connection: AsyncConnection, page: Sequence[Mapping[Any, Any]]) -> list[VotedCoding]:
    query = (
        select(votes)
        .where(votes.c.exchange_id.in_([row["exchange_id"] for row in page]))
        .order_by(votes.c.exchange_id, votes.c.coder, votes.c.judge)
    )
    ballots: dict[tuple[UUID, str], list[Mapping[str, Any]]] = {}
    for row in (await connection.execute(query)).mappings():
        vote = {name: row[name] for name in ("judge", "label", "reason", "rationale")}
        ballots.setdefault((row["exchange_id"], row["coder"]), []).append(vote)
    return [(dict(row), ballots.get((row["exchange_id"], row["coder"]), [])) for row in page]
