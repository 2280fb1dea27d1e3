"""Rolling windows are the sums of their tiles, whatever happened in between, and cost what has changed."""

import random
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
from support.stores.databases import Databases
from support.stores.exchanges import NOON
from support.stores.window_reads import cost_of_an_update

from auditor.store.engine import transaction
from auditor.store.tallies import freeze_window, move_windows, read_window_ballots, read_windows, recount_tile

START = NOON.replace(minute=0)
#: Stands in for the codings: what a tile is counted from.
STAGED = {
    "tallies": "SELECT * FROM staged_tallies WHERE hour = :hour AND coder = :coder",
    "ballots": "SELECT * FROM staged_ballots WHERE hour = :hour AND coder = :coder",
}


async def stage(connection: AsyncConnection, chance: random.Random, hour: int, coder: str) -> None:
    """Let one hour hold other codings than before; perhaps none."""
    given = {"hour": START + timedelta(hours=hour), "coder": coder}
    for table in ("staged_tallies", "staged_ballots"):
        await connection.execute(text(f"DELETE FROM {table} WHERE hour = :hour AND coder = :coder"), given)
    for cluster in chance.sample(["s1", "s2", "a 'quoted' one", "s3"], chance.randrange(4)):
        for sel, reason in chance.sample([("E", None), ("D", None), ("Abstain", "no_option")], chance.randrange(1, 4)):
            await connection.execute(
                text(
                    "INSERT INTO staged_tallies (hour, coder, deployment, origin, rubric, task, cluster, inclusion,"
                    " sel, sel_reason, elab, n) VALUES (:hour, :coder, :d, 'probe', 'statement', 'CTO', :cluster, :pi,"
                    " :sel, :reason, 'D', :n)"
                ),
                given | {"d": chance.choice(["d1", "d2"]), "cluster": cluster, "sel": sel, "reason": reason,
                         "pi": chance.choice([1.0, 0.1]), "n": chance.randrange(1, 9)},
            )  # fmt: skip
    await connection.execute(
        text(
            "INSERT INTO staged_ballots (hour, coder, deployment, origin, rubric, votes, n)"
            " VALUES (:hour, :coder, 'd1', 'probe', 'statement', '[[\"j\", \"E\"]]', :n)"
        ),
        given | {"n": chance.randrange(1, 9)},
    )


async def counted(connection: AsyncConnection, coder: str, since: int) -> set[tuple[object, ...]]:
    query = text(
        "SELECT deployment, cluster, inclusion, sel, sel_reason, sum(n)::bigint FROM tallies"
        " WHERE coder = :coder AND hour >= :since GROUP BY 1, 2, 3, 4, 5"
    )
    found = await connection.execute(query, {"coder": coder, "since": START + timedelta(hours=since)})
    return {tuple(row) for row in found}


async def summed(connection: AsyncConnection, coder: str, window: str) -> list[tuple[object, ...]]:
    rows = (await read_windows(connection, coder, [window]))[window]
    assert all((row["task"], row["elab"], row["uncoded"], row["audit"]) == ("CTO", "D", None, None) for row in rows)
    return [
        tuple(row[name] for name in ("deployment", "cluster", "inclusion", "sel", "sel_reason", "n")) for row in rows
    ]


@pytest.mark.parametrize("seed", range(3))
async def test_windows_are_the_sums_of_their_tiles_whatever_happened(engine: AsyncEngine, seed: int) -> None:
    chance = random.Random(seed)
    starts = {"short": 8, "long": 0}
    async with transaction(engine) as connection:
        for table in ("tallies", "ballots"):
            await connection.execute(text(f"CREATE TABLE staged_{table} (LIKE {table})"))
    for step in range(60):
        coder = chance.choice(["one", "other"])
        async with transaction(engine) as connection:
            if step % 12 == 11:
                back = -3 if step == 35 else 2  # once a clock went wrong
                starts = {name: since + back for name, since in starts.items()}
                for each in ("one", "other"):
                    moved = {name: START + timedelta(hours=since) for name, since in starts.items()}
                    await move_windows(connection, each, moved)
            else:
                hour = chance.randrange(16)
                await stage(connection, chance, hour, coder)
                await recount_tile(connection, coder, START + timedelta(hours=hour), STAGED)
    async with transaction(engine) as connection:
        for coder in ("one", "other"):
            for name, since in starts.items():
                found = await summed(connection, coder, name)
                assert len(found) == len(set(found)) > 0
                assert set(found) == await counted(connection, coder, since)
                (ballot,) = await read_window_ballots(connection, coder, name)
                assert (ballot["deployment"], ballot["votes"]) == ("d1", [["j", "E"]])
        nothing = await connection.execute(text("SELECT count(*) FROM window_tallies WHERE counts = '{}'"))
        assert nothing.scalar() == 0
        await move_windows(connection, "one", {"long": START + timedelta(hours=99)})
        assert await read_windows(connection, "one", ["long", "short"]) == {"long": [], "short": []}
        left = await connection.execute(text('SELECT coder, "window" FROM windows ORDER BY 1, 2'))
        assert [tuple(row) for row in left] == [("one", "long"), ("other", "long"), ("other", "short")]


async def test_a_frozen_window_stays_as_it_was(engine: AsyncEngine) -> None:
    chance = random.Random(1)
    async with transaction(engine) as connection:
        for table in ("tallies", "ballots"):
            await connection.execute(text(f"CREATE TABLE staged_{table} (LIKE {table})"))
        for hour in range(6):
            await stage(connection, chance, hour, "one")
            await recount_tile(connection, "one", START + timedelta(hours=hour), STAGED)
        bounds = (START + timedelta(hours=1), START + timedelta(hours=4))
        await freeze_window(connection, "one", "then", "d1", *bounds)
        frozen = await summed(connection, "one", "then")
        query = text("SELECT sum(n) FROM tallies WHERE deployment = 'd1' AND hour >= :since AND hour < :until")
        whole = (await connection.execute(query, {"since": bounds[0], "until": bounds[1]})).scalar()
        assert sum(row[-1] for row in frozen) == whole > 0
        await stage(connection, chance, 2, "one")
        await recount_tile(connection, "one", START + timedelta(hours=2), STAGED)
        await freeze_window(connection, "one", "then", "d1", *bounds)
        await move_windows(connection, "one", {"1d": START})
        assert await summed(connection, "one", "then") == frozen


@pytest.mark.slow
async def test_an_update_costs_the_same_whatever_there_was_before(tmp_path: Path, databases: Databases) -> None:
    read = {}
    few, many = 10**3, 10**5
    for past in (few, many):
        with databases.fresh() as url:
            read[past] = await cost_of_an_update(url, tmp_path, past, hours=20)
    assert read[many].tile_rows > 5 * read[few].tile_rows
    assert abs(read[many].rows_read - read[few].rows_read) < 0.1 * read[few].rows_read
