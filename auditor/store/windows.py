"""Rolling windows: sums over hour tiles, kept up to date by what changes, whatever they have summed up so far.

A tile that is counted anew (``tallies``) adds how it differs from before to every window that holds its hour; a window
that moves on takes off the tiles it leaves behind. So an update reads the rows that changed, and estimates read the
sums: as many rows as there are statements and conditions, however many responses there were.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Table, delete, insert, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.store.window_tables import OUTCOME, SUBJECT, VOTERS, VOTES, window_ballots, window_tallies, windows

Rows = list[Mapping[str, Any]]

#: One at a time adds to a coder's windows or moves them: held to the end of the transaction.
_LOCK: Final = text("SELECT pg_advisory_xact_lock(hashtext('tiltmeter windows'), hashtext(:coder))")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Kind:
    """What is summed up: a table of tiles, the table of its sums, whose they are, and what is told apart in each."""

    tiles: str
    sums: Table
    subject: tuple[str, ...]
    outcome: tuple[str, ...]

    @property
    def key(self) -> str:
        return ", ".join((*self.subject, *self.outcome))

    def recount(self, counted: str) -> str:
        """Put what ``counted`` selects in the place of a tile, and add the difference to the windows that hold it."""
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

    def sum_up(self, where: str, sign: str = "") -> str:
        """Add the tiles of some hours to one window, or with a minus take them off."""
        return f"""
            WITH changed AS (
                SELECT {self.key}, {sign}n AS n FROM {self.tiles} WHERE coder = :coder AND {where}
            ), holding AS (
                SELECT CAST(:window AS text) AS "window"
            ), {self._add()}
        """  # noqa: S608 -- names of our own

    def _add(self) -> str:
        """Add the rows of ``changed`` to the windows ``holding`` them, and name the sums that are nothing now."""
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


async def recount_tile(connection: AsyncConnection, coder: str, hour: datetime, counted: Mapping[str, str]) -> None:
    """Count a tile anew, by a query for each table of tiles, and keep the windows right that hold it."""
    await connection.execute(_LOCK, {"coder": coder})
    for kind in _ALL:
        await _apply(connection, kind, kind.recount(counted[kind.tiles]), {"coder": coder, "hour": hour})


async def move_windows(connection: AsyncConnection, coder: str, starts: Mapping[str, datetime]) -> None:
    """Let a coder's windows begin at these hours; one that is new is summed up, one that is not named is forgotten."""
    await connection.execute(_LOCK, {"coder": coder})
    query = select(windows.c.window, windows.c.since).where(windows.c.coder == coder)
    known = {row.window: row.since for row in await connection.execute(query)}
    for name in sorted(known.keys() - starts.keys()):
        await _forget(connection, coder, name)
    for name, since in starts.items():
        given = {"coder": coder, "window": name, "since": since}
        before = known.get(name)
        if before is None or since < before:
            await _forget(connection, coder, name)
            await connection.execute(insert(windows).values(given))
            for kind in _ALL:
                await _apply(connection, kind, kind.sum_up("hour >= :since"), given)
        elif since > before:
            for kind in _ALL:
                left = kind.sum_up("hour >= :before AND hour < :since", "-")
                await _apply(connection, kind, left, given | {"before": before})
            own = (windows.c.coder == coder) & (windows.c.window == name)
            await connection.execute(update(windows).where(own).values(since=since))


async def freeze_window(
    connection: AsyncConnection, coder: str, window: str, deployment: str, since: datetime, until: datetime
) -> None:
    """Sum up one deployment's tiles of the hours in [since, until), once: what is counted later changes nothing."""
    await connection.execute(_LOCK, {"coder": coder})
    sums = window_tallies
    query = select(sums.c.digest).where(sums.c.coder == coder, sums.c.window == window).limit(1)
    if (await connection.execute(query)).first() is None:
        own = _TALLIES.sum_up("deployment = :deployment AND hour >= :since AND hour < :until")
        given = {"coder": coder, "window": window, "deployment": deployment, "since": since, "until": until}
        await _apply(connection, _TALLIES, own, given)


async def _apply(connection: AsyncConnection, kind: _Kind, statement: str, given: Mapping[str, Any]) -> None:
    """Change sums, and delete those that are nothing now, by their keys: no other row is looked at."""
    emptied: dict[str, list[UUID]] = {}
    for row in await connection.execute(text(statement), given):
        emptied.setdefault(row.window, []).append(row.digest)
    drop = f"""DELETE FROM {kind.sums.name} WHERE coder = :coder AND "window" = :window AND digest = ANY(:digests)"""  # noqa: S608 -- names of our own
    for name, digests in emptied.items():
        await connection.execute(text(drop), {"coder": given["coder"], "window": name, "digests": digests})


async def _forget(connection: AsyncConnection, coder: str, window: str) -> None:
    for table in (windows, window_tallies, window_ballots):
        await connection.execute(delete(table).where(table.c.coder == coder, table.c.window == window))


async def read_windows(connection: AsyncConnection, coder: str, names: Iterable[str]) -> dict[str, Rows]:
    """Read the tallies of windows, added up over their hours: a row for each subject and outcome, with ``n``."""
    return await _read(connection, _TALLIES, coder, names)


async def read_window_ballots(connection: AsyncConnection, coder: str, window: str) -> Rows:
    """Read a window's ballots, added up over its hours."""
    return (await _read(connection, _BALLOTS, coder, [window]))[window]


async def _read(connection: AsyncConnection, kind: _Kind, coder: str, names: Iterable[str]) -> dict[str, Rows]:
    sums = kind.sums
    found: dict[str, Rows] = {name: [] for name in names}
    query = (
        select(sums.c.window, *(sums.c[name] for name in kind.subject), sums.c.counts)
        .where(sums.c.coder == coder, sums.c.window.in_(found))
        .order_by(sums.c.window, sums.c.digest)
    )
    for row in (await connection.execute(query)).mappings():
        one = dict(row)
        found[one.pop("window")] += _unfolded(one, kind.outcome)
    return found


def _unfolded(row: dict[str, Any], outcome: Sequence[str]) -> Rows:
    """Give a row for each outcome that was counted."""
    counts: Mapping[str, int] = row.pop("counts")
    return [
        {**row, **dict(zip(outcome, json.loads(labels), strict=True)), "n": n} for labels, n in sorted(counts.items())
    ]
