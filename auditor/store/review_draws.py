"""Draw random samples of codings for people to review, with inclusion probabilities, and read their labels.

The frame of a draw is the set of codings with an elaboration label that one coder had made of one origin's exchanges by
then. The sample depends on the seed only: for the same frame, a larger draw contains a smaller one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    Column,
    DateTime,
    Double,
    ForeignKey,
    Integer,
    Table,
    Text,
    Uuid,
    func,
    insert,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.domain.coding import ABSTAIN
from auditor.domain.ids import floor_id
from auditor.store.codings import coders, codings
from auditor.store.engine import metadata
from auditor.store.tallies import tallies

review_draws = Table(
    "review_draws",
    metadata,
    Column("id", Text, primary_key=True),
    Column("coder", Text, ForeignKey(coders.c.id), nullable=False),
    Column("rubric", Text, nullable=False),
    Column("origin", Text, nullable=False),
    Column("deployments", ARRAY(Text)),
    Column("since", DateTime(timezone=True), nullable=False),
    Column("drawn_at", DateTime(timezone=True), nullable=False),
    Column("settings", JSONB, nullable=False),
)


review_draw_items = Table(
    "review_draw_items",
    metadata,
    Column("draw_id", Text, ForeignKey(review_draws.c.id), primary_key=True),
    Column("exchange_id", Uuid, primary_key=True),
    Column("position", Integer, nullable=False),
    Column("inclusion", Double, nullable=False),
)


#: Fields by which a draw may be stratified, and their columns of codings.
STRATA: Final[Mapping[str, str]] = {
    **{name: name for name in ("deployment", "task", "perspective", "role", "sentiment", "category")},
    "label": "elab",
}


_KEY: Final = tuple(column.name for column in tallies.columns if column.name not in {"hour", "n"})


_FRAME: Final = """
    coder = :coder AND origin = :origin AND exchange_id >= :low AND coded_at <= :drawn_at
    AND uncoded IS NULL AND elab <> 'Abstain'
    AND (CAST(:deployments AS text[]) IS NULL OR deployment = ANY(CAST(:deployments AS text[])))
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReviewDraw:
    """One draw: its frame and its settings."""

    id: str
    coder: str
    rubric: str  #: version of the rubric that the judges used
    origin: str
    deployments: tuple[str, ...] | None  #: None: all
    since: datetime
    drawn_at: datetime
    settings: Mapping[str, Any]  #: n, seed, strata

    @property
    def frame(self) -> dict[str, Any]:
        """The parameters of queries on the frame."""
        deployments = None if self.deployments is None else list(self.deployments)
        return {
            "coder": self.coder, "origin": self.origin, "low": floor_id(self.since), "drawn_at": self.drawn_at,
            "deployments": deployments,
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Drawn:
    """One coding that was drawn."""

    exchange_id: UUID
    inclusion: float
    deployment: str
    remainder_hash: bytes | None  #: hash of the text that the judges coded
    has_selection: bool  #: whether the coder also gave the selection a label


async def stratum_sizes(connection: AsyncConnection, draw: ReviewDraw, by: Sequence[str]) -> dict[str, int]:
    """Count the frame by stratum."""
    query = f"SELECT {_stratum(by)} AS stratum, count(*) AS n FROM codings WHERE {_FRAME} GROUP BY 1"  # noqa: S608 -- our own columns
    return {row.stratum: row.n for row in await connection.execute(text(query), draw.frame)}


def _stratum(by: Sequence[str]) -> str:
    return f"jsonb_build_array({', '.join(STRATA[name] for name in by)})::text"


async def add_draw(
    connection: AsyncConnection, draw: ReviewDraw, by: Sequence[str], takes: Mapping[str, int], sizes: Mapping[str, int]
) -> list[Drawn]:
    """Draw a number of codings from each stratum, store them with their inclusion, and return them in random order."""
    query = f"""
        WITH frame AS (
            SELECT exchange_id, deployment, remainder_hash, sel <> 'Abstain' AS has_selection,
                   {_stratum(by)} AS stratum,
                   row_number() OVER (
                       PARTITION BY {_stratum(by)} ORDER BY md5(CAST(:seed AS text) || exchange_id::text), exchange_id
                   ) AS place
            FROM codings WHERE {_FRAME}
        )
        SELECT frame.* FROM frame
        JOIN unnest(CAST(:strata AS text[]), CAST(:takes AS bigint[])) AS asked (stratum, take) USING (stratum)
        WHERE place <= take ORDER BY md5('order ' || CAST(:seed AS text) || exchange_id::text), exchange_id
    """  # noqa: S608 -- our own columns
    parameters = {"seed": f"{draw.settings['seed']} ", "strata": list(takes), "takes": list(takes.values())}
    rows = list(await connection.execute(text(query), draw.frame | parameters))
    drawn = [
        Drawn(
            exchange_id=row.exchange_id,
            inclusion=takes[row.stratum] / sizes[row.stratum],
            deployment=row.deployment,
            remainder_hash=row.remainder_hash,
            has_selection=row.has_selection,
        )
        for row in rows
    ]
    await connection.execute(insert(review_draws), [_draw_row(draw)])
    await _tally_frame(connection, draw)
    items = [
        {"draw_id": draw.id, "exchange_id": answer.exchange_id, "position": position, "inclusion": answer.inclusion}
        for position, answer in enumerate(drawn)
    ]
    if items:
        await connection.execute(insert(review_draw_items), items)
    return drawn


async def _tally_frame(connection: AsyncConnection, draw: ReviewDraw) -> None:
    """Tally the frame under the draw's name, so that windows count it like a coder's codings."""
    names = ", ".join(name for name in _KEY if name != "coder")
    query = f"""
        INSERT INTO tallies (hour, coder, {names}, n)
        SELECT hour, :draw, {names}, count(*) FROM codings WHERE {_FRAME} GROUP BY hour, {names}
    """  # noqa: S608 -- our own columns
    await connection.execute(text(query), draw.frame | {"draw": draw.id})


def _draw_row(draw: ReviewDraw) -> dict[str, Any]:
    names = ("id", "coder", "rubric", "origin", "since", "drawn_at")
    deployments = None if draw.deployments is None else list(draw.deployments)
    return {name: getattr(draw, name) for name in names} | {
        "deployments": deployments,
        "settings": dict(draw.settings),
    }


async def read_draws(connection: AsyncConnection, coder: str, as_of: datetime, limit: int) -> list[ReviewDraw]:
    """Read the draws of a coder's codings made by then, the newest first."""
    query = (
        select(review_draws)
        .where(review_draws.c.coder == coder, review_draws.c.drawn_at <= as_of)
        .order_by(review_draws.c.drawn_at.desc(), review_draws.c.id)
        .limit(limit)
    )
    return [_draw(row) for row in (await connection.execute(query)).mappings()]


async def list_draws(connection: AsyncConnection, limit: int) -> list[tuple[ReviewDraw, int]]:
    """Read the newest draws, each with its number of items."""
    n = select(func.count()).where(review_draw_items.c.draw_id == review_draws.c.id).scalar_subquery()
    query = select(review_draws, n.label("n")).order_by(review_draws.c.drawn_at.desc(), review_draws.c.id).limit(limit)
    rows = (await connection.execute(query)).mappings()
    return [(_draw({name: row[name] for name in review_draws.c.keys()}), row["n"]) for row in rows]  # noqa: SIM118


async def read_draw(connection: AsyncConnection, draw_id: str) -> ReviewDraw | None:
    """Read one draw."""
    row = (await connection.execute(select(review_draws).where(review_draws.c.id == draw_id))).mappings().first()
    return None if row is None else _draw(row)


def _draw(row: Mapping[Any, Any]) -> ReviewDraw:
    return ReviewDraw(**{**row, "deployments": None if row["deployments"] is None else tuple(row["deployments"])})


async def read_drawn_items(connection: AsyncConnection, draw: ReviewDraw) -> list[Drawn]:
    """Read what was drawn, in its random order."""
    items = review_draw_items
    query = (
        select(
            items.c.exchange_id,
            items.c.inclusion,
            codings.c.deployment,
            codings.c.remainder_hash,
            (codings.c.sel != ABSTAIN).label("has_selection"),
        )
        .join(codings, (codings.c.exchange_id == items.c.exchange_id) & (codings.c.coder == draw.coder))
        .where(items.c.draw_id == draw.id)
        .order_by(items.c.position)
    )
    return [Drawn(**row) for row in (await connection.execute(query)).mappings()]


async def read_frame(connection: AsyncConnection, draw: ReviewDraw) -> list[Mapping[str, Any]]:
    """Read the counts of a draw's whole frame, as they were kept when it was drawn."""
    names = ", ".join(name for name in _KEY if name != "coder")
    query = f"SELECT {names}, sum(n)::bigint AS n FROM tallies WHERE coder = :draw GROUP BY {names}"  # noqa: S608 -- our own columns
    rows = await connection.execute(text(query), {"draw": draw.id})
    return [{**row, "coder": draw.coder} for row in rows.mappings()]


@dataclass(frozen=True, kw_only=True, slots=True)
class Bounds:
    """Exchanges that began in [since, until), with the labels of people by ``as_of``."""

    since: datetime
    until: datetime
    as_of: datetime

    def within(self, draw: ReviewDraw) -> dict[str, Any]:
        """Return the query parameters of the part of a draw's frame within these bounds."""
        low = floor_id(max(self.since, draw.since))
        return draw.frame | {"low": low, "high": floor_id(self.until), "as_of": self.as_of}


async def count_frame(connection: AsyncConnection, draw: ReviewDraw, bounds: Bounds) -> list[Mapping[str, Any]]:
    """Count the part of a draw's frame within some bounds, by the keys of the joint table."""
    names = ", ".join(_KEY)
    query = f"SELECT {names}, count(*) AS n FROM codings WHERE {_FRAME} AND exchange_id < :high GROUP BY {names}"  # noqa: S608 -- our own columns
    rows = await connection.execute(text(query), bounds.within(draw))
    return [dict(row) for row in rows.mappings()]


async def read_drawn(connection: AsyncConnection, draw: ReviewDraw, bounds: Bounds) -> list[Mapping[str, Any]]:
    """Read the drawn codings with people's labels.

    Returns
    -------
    list
        Rows with the joint table's keys, ``draw_inclusion``, ``opinions`` as (layer, reviewer, label, whether it
        adjudicates), the newest of each reviewer by the draw's rubric with what the coder reads in view, or None, and
        ``votes`` as (judge, label).
    """
    names = ", ".join(f"c.{name}" for name in _KEY)
    query = f"""
        SELECT {names}, i.inclusion AS draw_inclusion, o.opinions, v.votes
        FROM review_draw_items i
        -- There is exactly one; the limit makes the planner look up each item.
        CROSS JOIN LATERAL (SELECT * FROM codings WHERE exchange_id = i.exchange_id AND coder = :coder LIMIT 1) c
        CROSS JOIN LATERAL (
            SELECT jsonb_agg(jsonb_build_array(layer, reviewer, label, adjudicates) ORDER BY layer, reviewer)
                AS opinions FROM (
                SELECT DISTINCT ON (layer, reviewer) layer, reviewer, label, adjudicates FROM reviews r
                WHERE r.exchange_id = i.exchange_id AND r.rubric = :rubric AND r.view = 'split' AND r.at <= :as_of
                ORDER BY layer, reviewer, r.id DESC
            ) AS newest
        ) o
        CROSS JOIN LATERAL (
            SELECT jsonb_agg(jsonb_build_array(judge, label) ORDER BY judge) AS votes FROM votes
            WHERE exchange_id = i.exchange_id AND coder = :coder
        ) v
        WHERE i.draw_id = :draw AND i.exchange_id >= :low AND i.exchange_id < :high
        ORDER BY i.position
    """  # noqa: S608 -- our own columns
    parameters = bounds.within(draw) | {"draw": draw.id, "rubric": draw.rubric}
    wanted = ("coder", "low", "high", "as_of", "draw", "rubric")
    rows = await connection.execute(text(query), {name: parameters[name] for name in wanted})
    return [dict(row) for row in rows.mappings()]
