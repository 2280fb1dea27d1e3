"""Read codings with their votes, a page at a time: all of a selection, or the answers that a number counts."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ColumnElement, and_, func, not_, or_, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.domain.coding import ABSTAIN
from auditor.domain.ids import floor_id
from auditor.store.codings import codings, votes

#: The column of each filter.
FILTERS: Final = {
    "statement_id": codings.c.cluster,
    **{
        name: codings.c[name]
        for name in (
            *("deployment", "origin", "rubric", "audit", "claim", "task", "perspective", "role", "sentiment"),
            *("category", "sel", "elab"),
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
#: Rows of a page of an export.
_PAGE: Final = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class CodedSelection:
    """Which codings are read."""

    equal: Mapping[str, str] = field(default_factory=dict)  #: values by filter; the filters are ``FILTERS``
    cells: Sequence[str] = ()  #: some of ``CELLS``; none: all
    reason: str | None = None  #: why a layer, or the whole answer, has no label
    since: datetime | None = None  #: None: from the first
    until: datetime | None = None  #: not included; None: to the last


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


async def read_answers(
    connection: AsyncConnection, coders: Collection[str], selection: CodedSelection, limit: int, after: UUID | None
) -> list[VotedCoding]:
    """Read one page of a selection, the newest exchange first, from before the exchange ``after``."""
    wanted = _conditions(coders, selection)
    if after is not None:
        wanted.append(codings.c.exchange_id < after)
    query = select(codings).where(*wanted).order_by(codings.c.exchange_id.desc(), codings.c.coder).limit(limit)
    return await _with_votes(connection, (await connection.execute(query)).mappings().all())


async def read_codings(connection: AsyncConnection, exchange_id: UUID) -> list[VotedCoding]:
    """Read all codings of an exchange, the newest first."""
    query = select(codings).where(codings.c.exchange_id == exchange_id).order_by(codings.c.coded_at.desc())
    return await _with_votes(connection, (await connection.execute(query)).mappings().all())


def _conditions(coders: Collection[str], selection: CodedSelection) -> list[ColumnElement[bool]]:
    wanted: list[ColumnElement[bool]] = [codings.c.coder.in_(sorted(coders))]
    wanted += [FILTERS[name] == value for name, value in selection.equal.items()]
    if selection.cells:
        wanted.append(or_(*(CELLS[cell] for cell in selection.cells)))
    if selection.reason is not None:
        reasons = (codings.c.uncoded, codings.c.sel_reason, codings.c.elab_reason)
        wanted.append(or_(*(column == selection.reason for column in reasons)))
    if selection.since is not None:
        wanted.append(codings.c.exchange_id >= floor_id(selection.since))
    if selection.until is not None:
        wanted.append(codings.c.exchange_id < floor_id(selection.until))
    return wanted


async def _with_votes(connection: AsyncConnection, page: Sequence[Mapping[Any, Any]]) -> list[VotedCoding]:
    query = (
        select(votes)
        .where(votes.c.exchange_id.in_([row["exchange_id"] for row in page]))
        .order_by(votes.c.exchange_id, votes.c.coder, votes.c.judge)
    )
    found: dict[tuple[UUID, str], list[Mapping[str, Any]]] = {}
    for row in (await connection.execute(query)).mappings():
        vote = {name: row[name] for name in ("judge", "label", "reason", "rationale")}
        found.setdefault((row["exchange_id"], row["coder"]), []).append(vote)
    return [(dict(row), found.get((row["exchange_id"], row["coder"]), [])) for row in page]
