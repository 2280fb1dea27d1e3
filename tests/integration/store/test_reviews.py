"""People's labels in the store: only ever added, the newest of a reviewer counts."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from support.stores.audited_store import audited_database, configuration, fetch, ship
from support.stores.databases import Databases
from support.stores.exchanges import NOON, exchange
from support.stores.postgres import copied_database

from auditor.domain.sampling import allocate
from auditor.reviews.opinions import Layer, Opinion
from auditor.store.engine import make_engine, transaction
from auditor.store.review_draws import ReviewDraw, add_draw, stratum_sizes
from auditor.store.reviews import Added, Review, add_reviews, find_exchanges, read_reviews

STORED = exchange()
SHARES = {"d1": {"E|E": 10, "E|D": 20, "D|D": 60, "D|": 10}, "d2": {"D|D": 60, "D|E": 40}}


def label(said: str, reviewer: str = "anna", note: str | None = None, layer: Layer = Layer.ELAB) -> Review:
    opinion = Opinion(reviewer=reviewer, layer=layer, label=said, note=note)
    return Review(exchange_id=STORED.id, rubric="statement/1", opinion=opinion)


async def add(engine: AsyncEngine, *given: Review) -> Added:
    async with transaction(engine) as connection:
        return await add_reviews(connection, given, NOON)


async def test_a_later_label_supersedes_and_both_are_kept(engine: AsyncEngine) -> None:
    assert await add(engine, label("E"), label("D", "ben"), label("D", layer=Layer.SEL)) == Added(
        new=3, superseding=0, unchanged=0
    )
    assert await add(engine, label("E"), label("D", "ben")) == Added(new=0, superseding=0, unchanged=2)
    assert await add(engine, label("QE"), label("D", "ben", "on reflection")) == Added(
        new=2, superseding=2, unchanged=0
    )
    assert await add(engine, label("N"), label("QE"), label("QE")) == Added(new=2, superseding=2, unchanged=1)
    async with transaction(engine) as connection:
        kept = await read_reviews(connection, [STORED.id])
    assert [(one.review.opinion.reviewer, one.review.opinion.label, one.superseded) for one in kept] == [
        ("anna", "E", True), ("ben", "D", True), ("anna", "D", False), ("anna", "QE", True), ("ben", "D", False),
        ("anna", "N", True), ("anna", "QE", False),
    ]  # fmt: skip


async def test_the_same_labels_twice_at_once_are_stored_once(migrated_url: str, engine: AsyncEngine) -> None:
    other = make_engine(migrated_url)
    given = [label("E", f"r{number}") for number in range(50)]
    done = await asyncio.gather(add(engine, *given), add(other, *given))
    await other.dispose()
    assert sorted(each.new for each in done) == [0, 50]
    assert (await fetch(migrated_url, "SELECT count(*) AS n FROM reviews"))[0]["n"] == 50


async def test_exchanges_that_are_there(migrated_url: str, engine: AsyncEngine) -> None:
    await ship(migrated_url, [STORED])
    async with transaction(engine) as connection:
        assert await find_exchanges(connection, [STORED.id, exchange().id]) == {STORED.id}


@pytest.fixture(scope="module")
def seeded(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of a database with the answers of two deployments, coded, to be copied."""
    config = configuration(tmp_path_factory.mktemp("audited"))
    with audited_database(databases, config, SHARES) as name:
        yield name


@pytest.fixture
def migrated_url(postgres_server: str, seeded: str) -> Iterator[str]:
    """The URL of a copy of the audited database, for a test and for its `engine`."""
    with copied_database(postgres_server, seeded) as url:
        yield url


@pytest.fixture
async def coder(migrated_url: str) -> str:
    return str((await fetch(migrated_url, "SELECT DISTINCT coder FROM codings"))[0]["coder"])


def draw(coder: str, number: int, seed: int = 0, deployments: tuple[str, ...] | None = None) -> ReviewDraw:
    return ReviewDraw(
        id=f"draw_{number}_{seed}_{deployments}", coder=coder, rubric="statement/1", origin="probe",
        deployments=deployments, since=NOON - timedelta(days=1), drawn_at=NOON + timedelta(hours=1),
        settings={"n": number, "seed": seed},
    )  # fmt: skip


async def drawn(engine: AsyncEngine, made: ReviewDraw, by: tuple[str, ...] = ()) -> list[Any]:
    async with transaction(engine) as connection:
        sizes = await stratum_sizes(connection, made, by)
        return await add_draw(connection, made, by, allocate(sizes, made.settings["n"]), sizes)


async def test_a_draw_knows_how_probable_each_was(migrated_url: str, engine: AsyncEngine, coder: str) -> None:
    # D has no elaboration ten times: nobody could say anything of it.
    simple = await drawn(engine, draw(coder, 60))
    assert {one.inclusion for one in simple} == {60 / 190}
    by_label = await drawn(engine, draw(coder, 60, seed=1), ("deployment", "label"))
    labels = {row["exchange_id"]: row for row in await fetch(migrated_url, "SELECT * FROM codings")}
    counted = Counter((one.deployment, labels[one.exchange_id]["elab"], one.inclusion) for one in by_label)
    assert counted == {
        ("d1", "E", 1.0): 10, ("d1", "D", 16 / 80): 16, ("d2", "D", 17 / 60): 17, ("d2", "E", 17 / 40): 17,
    }  # fmt: skip
    items = await fetch(migrated_url, "SELECT * FROM review_draw_items WHERE draw_id LIKE '%_1_%' ORDER BY position")
    assert [(row["exchange_id"], row["inclusion"]) for row in items] == [
        (one.exchange_id, one.inclusion) for one in by_label
    ]
    # In the order of the file no stratum comes first.
    assert len({labels[one.exchange_id]["elab"] for one in by_label[:12]}) == 2


async def test_the_same_seed_draws_the_same_and_more_of_it(engine: AsyncEngine, coder: str) -> None:
    few, more, other = [
        [one.exchange_id for one in await drawn(engine, draw(coder, number, seed))]
        for number, seed in ((30, 0), (90, 0), (30, 2))
    ]
    assert set(few) < set(more)
    assert [one for one in more if one in set(few)] == few
    assert len(set(few) & set(other)) < 20
    assert {one.deployment for one in await drawn(engine, draw(coder, 500, 0, ("d2",)))} == {"d2"}


async def test_every_coding_is_drawn_equally_often(engine: AsyncEngine, coder: str, thorough: bool) -> None:
    """200 seeds: each of 190 is drawn about 63 times (standard deviation 6.6); of 50, 16 times (3.3)."""
    times: Counter[Any] = Counter()
    for seed in range(200 if thorough else 50):
        times.update(one.exchange_id for one in await drawn(engine, draw(coder, 60, seed)))
    assert len(times) == 190
    low, high = (35, 92) if thorough else (2, 30)
    assert low < min(times.values()) <= max(times.values()) < high
