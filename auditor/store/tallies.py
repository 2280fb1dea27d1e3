"""Count codings by hour, and keep running sums over windows of time.

A tile is one hour of one coder; a tile that changed is counted again as a whole. The difference is added to every
window that contains the hour, and a window that moves on subtracts the tiles that it leaves behind. So an update reads
only rows that changed, and estimates read as many rows as there are statements and conditions.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Date,
    DateTime,
    Table,
    Text,
    Uuid,
    cast,
    delete,
    func,
    insert,
    select,
    text,
    true,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.store.codings import stale_tiles, subject_columns
from auditor.store.engine import metadata

tallies = Table(
    "tallies",
    metadata,
    Column("hour", DateTime(timezone=True), nullable=False),
    Column("coder", Text, nullable=False),
    *subject_columns(),
    Column("sel", Text),
    Column("sel_reason", Text),
    Column("elab", Text),
    Column("elab_reason", Text),
    Column("uncoded", Text),
    Column("n", BigInteger, CheckConstraint("n > 0"), nullable=False),
)


ballots = Table(
    "ballots",
    metadata,
    Column("hour", DateTime(timezone=True), nullable=False),
    Column("coder", Text, nullable=False),
    Column("deployment", Text, nullable=False),
    Column("origin", Text, nullable=False),
    Column("rubric", Text, nullable=False),
    Column("votes", JSONB, nullable=False),
    Column("n", BigInteger, CheckConstraint("n > 0"), nullable=False),
)


#: The sums have one row for each subject, with a number for each outcome.
OUTCOME: Final = ("sel", "sel_reason", "elab", "elab_reason", "uncoded")


SUBJECT: Final = tuple(column.name for column in tallies.columns if column.name not in {"hour", "coder", "n", *OUTCOME})


#: The same for ballots.
VOTES: Final = ("votes",)


VOTERS: Final = ("deployment", "origin", "rubric")


def _sums(name: str, tiles: Table, key: tuple[str, ...]) -> Table:
    return Table(
        name,
        metadata,
        Column("coder", Text, primary_key=True),
        Column("window", Text, primary_key=True),
        Column("digest", Uuid, primary_key=True),
        *(Column(column, tiles.c[column].type, nullable=tiles.c[column].nullable) for column in key),
        Column("counts", JSONB, nullable=False),
    )


windows = Table(
    "windows",
    metadata,
    Column("coder", Text, primary_key=True),
    Column("window", Text, primary_key=True),
    Column("since", DateTime(timezone=True), nullable=False),
)


window_tallies = _sums("window_tallies", tallies, SUBJECT)


window_ballots = _sums("window_ballots", ballots, VOTERS)


_KEY: Final = ", ".join((*SUBJECT, *OUTCOME))


#: The query that counts a tile, by table.
_COUNTED: Final = {
    "tallies": f"""
        SELECT hour, coder, {_KEY}, count(*) FROM codings
        WHERE hour = :hour AND coder = :coder GROUP BY hour, coder, {_KEY}
    """,  # noqa: S608 -- column names of our own
    "ballots": """
        SELECT hour, coder, deployment, origin, rubric, votes, count(*)
        FROM (
            SELECT c.hour, c.coder, c.deployment, c.origin, c.rubric,
                   jsonb_agg(jsonb_build_array(v.judge, v.label) ORDER BY v.judge) AS votes
            FROM codings c JOIN votes v USING (exchange_id, coder)
            WHERE c.hour = :hour AND c.coder = :coder
            GROUP BY c.exchange_id, c.hour, c.coder, c.deployment, c.origin, c.rubric
        ) AS cast_votes
        GROUP BY hour, coder, deployment, origin, rubric, votes
    """,
}


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Tile:
    """One hour of one coder."""

    hour: datetime
    coder: str


async def stale(connection: AsyncConnection, limit: int = 1000) -> list[Tile]:
    """Return the tiles that have changed since they were counted, the oldest first."""
    query = (
        select(stale_tiles.c.hour, stale_tiles.c.coder)
        .distinct()
        .order_by(stale_tiles.c.hour, stale_tiles.c.coder)
        .limit(limit)
    )
    return [Tile(hour=row.hour, coder=row.coder) for row in await connection.execute(query)]


async def recount(connection: AsyncConnection, tile: Tile) -> None:
    """Count one tile again, in a transaction of its own, at the level READ COMMITTED.

    The marks are deleted first: codings that are added after the count add a new mark.
    """
    lock = text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))")
    await connection.execute(lock, {"name": f"biasmeter tile {tile.hour.isoformat()} {tile.coder}"})
    marks = delete(stale_tiles).where(stale_tiles.c.hour == tile.hour, stale_tiles.c.coder == tile.coder)
    await connection.execute(marks)
    await recount_tile(connection, tile.coder, tile.hour, _COUNTED)


Rows = list[Mapping[str, Any]]


#: Only one transaction at a time changes a coder's windows.
_LOCK: Final = text("SELECT pg_advisory_xact_lock(hashtext('biasmeter windows'), hashtext(:coder))")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Kind:
    """A table of tiles, the table of its sums, and the columns of their subjects and outcomes."""

    tiles: str
    sums: Table
    subject: tuple[str, ...]
    outcome: tuple[str, ...]

    @property
    def key(self) -> str:
        return ", ".join((*self.subject, *self.outcome))

    def recount(self, counted: str) -> str:
        """Return the query that replaces a tile by what ``counted`` selects, and adds the difference to its windows."""
        return f"""
            WITH gone AS (
                DELETE FROM {self.tiles} WHERE hour = :hour AND coder = :coder RETURNING {self.key}, n
            ), fresh AS (
                INSERT INTO {self.tiles} (hour, coder, {self.key}, n) {counted} RETURNING {self.key}, n
            ), changed AS (
                SELECT {self.key}, n FROM fresh UNION ALL SELECT {self.key}, -n FROM gone
            ), holding AS (
                SELECT "window" FROM windows WHERE coder = :coder AND since <= :hour
            ), {self._add()}
        """  # noqa: S608 -- names of our own

    def sum_up(self, condition: str, sign: str = "") -> str:
        """Return the query that adds the tiles of some hours to one window, or with a minus subtracts them."""
        return f"""
            WITH changed AS (
                SELECT {self.key}, {sign}n AS n FROM {self.tiles} WHERE coder = :coder AND {condition}
            ), holding AS (
                SELECT CAST(:window AS text) AS "window"
            ), {self._add()}
        """  # noqa: S608 -- names of our own

    def _add(self) -> str:
        """Return the part that adds the rows of ``changed`` to their windows and selects sums that became empty."""
        subject = ", ".join(self.subject)
        return f"""
            delta AS (
                SELECT {subject}, jsonb_object_agg(outcome, n) AS counts
                FROM (
                    SELECT {subject}, jsonb_build_array({", ".join(self.outcome)})::text AS outcome, sum(n) AS n
                    FROM changed GROUP BY {subject}, outcome HAVING sum(n) <> 0
                ) AS listed GROUP BY {subject}
            ), added AS (
                INSERT INTO {self.sums.name} AS sums (coder, "window", digest, {subject}, counts)
                SELECT :coder, "window", md5(jsonb_build_array({subject})::text)::uuid, {subject}, counts
                FROM delta CROSS JOIN holding
                ON CONFLICT (coder, "window", digest) DO UPDATE SET counts = (
                    SELECT coalesce(jsonb_object_agg(outcome, n), '{{}}')
                    FROM (
                        SELECT outcome, sum(n::bigint) AS n
                        FROM (
                            SELECT * FROM jsonb_each_text(sums.counts)
                            UNION ALL SELECT * FROM jsonb_each_text(excluded.counts)
                        ) AS listed (outcome, n) GROUP BY outcome HAVING sum(n::bigint) <> 0
                    ) AS left_over
                )
                RETURNING "window", digest, counts
            )
            SELECT "window", digest FROM added WHERE counts = '{{}}'
        """  # noqa: S608 -- names of our own


_TALLIES: Final = _Kind(tiles="tallies", sums=window_tallies, subject=SUBJECT, outcome=OUTCOME)


_BALLOTS: Final = _Kind(tiles="ballots", sums=window_ballots, subject=VOTERS, outcome=VOTES)


_ALL: Final = (_TALLIES, _BALLOTS)


_EXPIRING: Final = """
    SELECT coder FROM tallies WHERE hour < :before UNION SELECT coder FROM ballots WHERE hour < :before
    UNION SELECT coder FROM windows WHERE since < :before ORDER BY coder
"""


async def recount_tile(connection: AsyncConnection, coder: str, hour: datetime, counted: Mapping[str, str]) -> None:
    """Count a tile again, with a query for each table of tiles, and update the windows that contain it."""
    await connection.execute(_LOCK, {"coder": coder})
    for kind in _ALL:
        await _apply(connection, kind, kind.recount(counted[kind.tiles]), {"coder": coder, "hour": hour})


async def move_windows(connection: AsyncConnection, coder: str, starts: Mapping[str, datetime]) -> None:
    """Move the start of a coder's windows to these hours; sum up new windows, and delete those not named."""
    await connection.execute(_LOCK, {"coder": coder})
    query = select(windows.c.window, windows.c.since).where(windows.c.coder == coder)
    known = {row.window: row.since for row in await connection.execute(query)}
    for name in sorted(known.keys() - starts.keys()):
        await _forget(connection, coder, name)
    for name, since in starts.items():
        parameters = {"coder": coder, "window": name, "since": since}
        before = known.get(name)
        if before is None or since < before:
            await _forget(connection, coder, name)
            await connection.execute(insert(windows).values(parameters))
            for kind in _ALL:
                await _apply(connection, kind, kind.sum_up("hour >= :since"), parameters)
        elif since > before:
            for kind in _ALL:
                left = kind.sum_up("hour >= :before AND hour < :since", "-")
                await _apply(connection, kind, left, parameters | {"before": before})
            is_window = (windows.c.coder == coder) & (windows.c.window == name)
            await connection.execute(update(windows).where(is_window).values(since=since))


async def expire_tiles(connection: AsyncConnection, before: datetime) -> None:
    """Delete the tiles of all hours before a moment, and the windows that contain such hours.

    The next estimates sum up the windows that are still configured from the tiles that are left.
    """
    coders = (await connection.execute(text(_EXPIRING), {"before": before})).scalars().all()
    for coder in coders:
        await connection.execute(_LOCK, {"coder": coder})
        for table in (tallies, ballots):
            await connection.execute(delete(table).where(table.c.coder == coder, table.c.hour < before))
        has_expired = (windows.c.coder == coder) & (windows.c.since < before)
        for name in (await connection.execute(select(windows.c.window).where(has_expired))).scalars().all():
            await _forget(connection, coder, name)


async def freeze_window(
    connection: AsyncConnection, coder: str, window: str, deployment: str, since: datetime, until: datetime
) -> None:
    """Sum one deployment's tiles of the hours in [since, until), without keeping the sum up to date."""
    await connection.execute(_LOCK, {"coder": coder})
    sums = window_tallies
    query = select(sums.c.digest).where(sums.c.coder == coder, sums.c.window == window).limit(1)
    if (await connection.execute(query)).first() is None:
        statement = _TALLIES.sum_up("deployment = :deployment AND hour >= :since AND hour < :until")
        parameters = {"coder": coder, "window": window, "deployment": deployment, "since": since, "until": until}
        await _apply(connection, _TALLIES, statement, parameters)


async def _apply(connection: AsyncConnection, kind: _Kind, statement: str, parameters: Mapping[str, Any]) -> None:
    """Change sums, and delete empty ones by their keys, without reading other rows."""
    emptied: dict[str, list[UUID]] = {}
    for row in await connection.execute(text(statement), parameters):
        emptied.setdefault(row.window, []).append(row.digest)
    drop = f"""DELETE FROM {kind.sums.name} WHERE coder = :coder AND "window" = :window AND digest = ANY(:digests)"""  # noqa: S608 -- names of our own
    for name, digests in emptied.items():
        await connection.execute(text(drop), {"coder": parameters["coder"], "window": name, "digests": digests})


async def _forget(connection: AsyncConnection, coder: str, window: str) -> None:
    for table in (windows, window_tallies, window_ballots):
        await connection.execute(delete(table).where(table.c.coder == coder, table.c.window == window))


async def read_windows(connection: AsyncConnection, coder: str, names: Iterable[str]) -> dict[str, Rows]:
    """Read the tallies of windows, summed over their hours: a row for each subject and outcome, with ``n``."""
    return await _read(connection, _TALLIES, coder, names)


async def read_window_of(
    connection: AsyncConnection, coder: str, window: str, deployment: str, origin: str
) -> list[Mapping[str, Any]]:
    """Read the tallies of one deployment and origin in one window.

    Returns
    -------
    list of mapping
        ``cluster``, the condition's factors, the outcome and ``n``: what a comparison needs of ``read_windows``.
    """
    sums = window_tallies.c
    names = ("cluster", "task", "perspective", "role", "sentiment")
    counted = func.jsonb_each_text(sums.counts).table_valued("key", "value").render_derived()
    query = (
        select(*(sums[name] for name in names), counted.c.key, cast(counted.c.value, BigInteger))
        .join(counted, true())
        .where(sums.deployment == deployment, sums.coder == coder, sums.window == window, sums.origin == origin)
    )
    return [
        {**dict(zip(names, row, strict=False)), **dict(zip(OUTCOME, _labels(row[-2]), strict=True)), "n": row[-1]}
        for row in await connection.execute(query)
    ]


async def read_days(
    connection: AsyncConnection, coder: str, deployment: str, origin: str, since: datetime, until: datetime
) -> list[Mapping[str, Any]]:
    """Count the codings of one deployment's hours in [since, until) by day.

    Returns
    -------
    list of mapping
        ``day``, ``cluster``, ``inclusion``, ``task``, ``rubric``, both labels with their reasons, and ``n``.
    """
    columns = tallies.c
    day = cast(func.timezone("UTC", columns.hour), Date).label("day")
    names = ("cluster", "inclusion", "task", "rubric", "sel", "sel_reason", "elab", "elab_reason")
    keys = [day, *(columns[name] for name in names)]
    query = (
        select(*keys, cast(func.sum(columns.n), BigInteger).label("n"))
        .where(
            columns.coder == coder, columns.deployment == deployment, columns.origin == origin,
            columns.hour >= since, columns.hour < until, columns.uncoded.is_(None),
        )
        .group_by(*keys)
        .order_by(day)
    )  # fmt: skip
    return [dict(row) for row in (await connection.execute(query)).mappings()]


async def read_window_ballots(connection: AsyncConnection, coder: str, window: str) -> Rows:
    """Read a window's ballots, summed over its hours."""
    return (await _read(connection, _BALLOTS, coder, [window]))[window]


async def _read(connection: AsyncConnection, kind: _Kind, coder: str, names: Iterable[str]) -> dict[str, Rows]:
    sums = kind.sums
    rows: dict[str, Rows] = {name: [] for name in names}
    query = (
        select(sums.c.window, *(sums.c[name] for name in kind.subject), sums.c.counts)
        .where(sums.c.coder == coder, sums.c.window.in_(rows))
        .order_by(sums.c.window, sums.c.digest)
    )
    for row in (await connection.execute(query)).mappings():
        entry = dict(row)
        rows[entry.pop("window")] += _unfolded(entry, kind.outcome)
    return rows


def _unfolded(row: dict[str, Any], outcome: Sequence[str]) -> Rows:
    """Yield a row for each counted outcome."""
    counts: Mapping[str, int] = row.pop("counts")
    return [{**row, **dict(zip(outcome, _labels(key), strict=True)), "n": n} for key, n in sorted(counts.items())]


@lru_cache(maxsize=4096)
def _labels(key: str) -> tuple[Any, ...]:
    """Read a key of ``counts``; there are few different ones."""
    return tuple(json.loads(key))
