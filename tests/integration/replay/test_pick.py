"""Which stored exchanges are taken: those that fit and can be asked again, or a sample of them with known chances."""

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.ext.asyncio import AsyncEngine
from support.stores.audited_store import TRAFFIC, configuration, ship, verdict
from support.stores.exchanges import NOON, exchange

from auditor.config import loads
from auditor.domain.exchange import Origin, Outcome
from auditor.domain.ids import floor_id
from auditor.store.engine import transaction
from auditor.work import open_work
from replay.formats import read_formats
from replay.parents import ReplayCandidate, refusal
from replay.plan import ReplaySpec, prepare, store_plan
from replay.selection import DrawMethod, ExchangeSelection, SampleDraw, proportional, read_selection
from replay.store import stream_candidates

CONFIG = """
deployments: [{name: here, base_url: "http://127.0.0.1:1/v1", model: m}]
routes: [{model: app, deployments: [here]}]
"""


@dataclass(frozen=True)
class One:
    """An exchange as a draw sees it."""

    id: UUID
    inclusion: float = 1.0


def drawn(shown, **how):
    draw = SampleDraw(ExchangeSelection(**how))
    for one in shown:
        draw.show(one)
    return draw


ones = st.lists(st.uuids(version=4), unique=True, max_size=40).map(lambda ids: [One(each) for each in ids])


@given(ones, st.integers(1, 50), st.integers(0, 3), st.randoms(use_true_random=False))
def test_a_sample_is_the_same_in_any_order_and_nested(shown, limit, seed, random):
    taken = drawn(shown, limit=limit, seed=seed).taken
    shuffled = list(shown)
    random.shuffle(shuffled)
    assert drawn(shuffled, limit=limit, seed=seed).taken == taken
    assert len(taken) == min(limit, len(shown))
    assert set(taken) <= set(drawn(shown, limit=limit + 1, seed=seed).taken)
    assert drawn(shown).taken == sorted(shown, key=lambda one: one.id)


def test_another_seed_draws_others():
    shown = [One(UUID(int=number)) for number in range(100)]
    assert drawn(shown, limit=20, seed=1).taken != drawn(shown, limit=20, seed=2).taken


@given(
    st.dictionaries(st.sampled_from([1.0, 0.5, 0.1, 0.05, 0.01]), st.integers(1, 200), min_size=1), st.integers(1, 400)
)
def test_chances_by_traffic_sum_to_what_is_drawn_and_are_in_proportion(kept, n):
    chances = proportional(kept, n)
    assert sum(chances[one] * count for one, count in kept.items()) == pytest.approx(min(n, sum(kept.values())))
    assert all(0 <= chance <= 1 for chance in chances.values())
    uncertain = {one: chance * one for one, chance in chances.items() if chance < 1}
    assert all(share == pytest.approx(max(uncertain.values())) for share in uncertain.values())
    # Whoever is certain stands for at least as much as anybody who is not.
    assert all(one <= min(uncertain) for one, chance in chances.items() if chance == 1 and uncertain)


def test_what_a_draw_says_of_its_chances_is_how_often_it_takes():
    shown = [One(UUID(int=number), inclusion=1.0 if number < 60 else 0.2) for number in range(90)]
    runs, times = 600, Counter()
    for seed in range(runs):
        draw = drawn(shown, limit=21, seed=seed, draw=DrawMethod.TRAFFIC)
        times.update(one.inclusion for one in draw.taken)
    assert draw.chances == pytest.approx({1.0: 21 / 210, 0.2: 105 / 210})
    for inclusion, members in ((1.0, 60), (0.2, 30)):
        assert times[inclusion] / runs / members == pytest.approx(draw.chances[inclusion], abs=0.01)
    # What was kept times what was drawn is the same for all: each stands for as many.
    assert {round(inclusion * chance, 9) for inclusion, chance in draw.chances.items()} == {0.1}


def test_even_chances_are_the_share_that_is_drawn():
    shown = [One(UUID(int=number), inclusion=0.5) for number in range(10)]
    assert drawn(shown, limit=4).chances == {0.5: 0.4}
    assert drawn(shown, limit=40).chances == {0.5: 1.0}
    assert drawn(shown).chances == {0.5: 1.0}


def test_everything_that_cannot_be_asked_again_has_its_reason():
    config = loads(CONFIG, source="test", folder=Path(), environ={}).config
    usual = {
        "id": UUID(int=1), "at": NOON, "origin": Origin.CLIENT, "endpoint": "chat/completions", "route": "app",
        "deployment": "here", "model": "app", "inclusion": 1.0, "truncated": False, "has_content": True,
    }  # fmt: skip
    changes = {
        None: {},
        "deployment_gone": {"deployment": "gone"},
        "route_gone": {"model": "gone"},
        "not_a_chat": {"endpoint": "completions"},
        "no_content": {"has_content": False},
        "copy_truncated": {"truncated": True},
    }
    refuse = refusal(config)
    assert {reason: refuse(ReplayCandidate(**(usual | changed))) for reason, changed in changes.items()} == {
        reason: reason for reason in changes
    }


@pytest.mark.parametrize(
    ("select", "found"),
    [
        ("all", {"a", "b", "c", "d"}),
        ("deployment=d1", {"a", "b"}),
        ("route=desk", {"a", "c", "d"}),
        ("tag.tenant=one", {"a", "d"}),
        ("tag.tenant=one,tag.shift=night", {"d"}),
        ("tag.tenant=none", set()),
        ("from=2026-03-02", {"b", "c", "d"}),
        ("from=2026-03-02,to=2026-03-02T12:00:00.000500", {"b"}),
        ("to=2026-03-02T12:00", {"a"}),
    ],
)
async def test_the_store_is_asked_for_what_fits(migrated_url: str, engine: AsyncEngine, select: str, found: set[str]):
    day = timedelta(days=1)
    stored = {
        "a": exchange(NOON, deployment="d1", route="desk", tags={"tenant": "one"}),
        "b": exchange(NOON + day, deployment="d1", route="talk", inclusion=0.25),
        "c": exchange(NOON + day + timedelta(microseconds=500), deployment="d2", route="desk", tags={"tenant": "two"}),
        "d": exchange(NOON + 2 * day, deployment="d2", route="desk", tags={"tenant": "one", "shift": "night"}),
        "of no route that is read": exchange(NOON, route="other"),
        "cut": exchange(NOON, route="desk", outcome=Outcome.CUT),
    }
    await ship(migrated_url, [*stored.values()])
    names = {one.id: name for name, one in stored.items()}
    async with transaction(engine) as connection:
        seen = [one async for one in stream_candidates(connection, read_selection(select), ("desk", "talk"))]
    assert {names[one.id] for one in seen} == found
    assert all(one.inclusion == stored[names[one.id]].inclusion for one in seen)


async def test_a_resumed_replay_has_the_same_parents_with_the_same_weights(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
):
    kept = {"desk": 0.25, "quiet": 1.0}
    stored = [
        # The ids decide what is drawn.
        verdict("E", "D", number, route, model=route, inclusion=inclusion, id=UUID(int=floor_id(NOON).int + number))
        for number, (route, inclusion) in enumerate(one for one in kept.items() for _ in range(40))
    ]
    await ship(migrated_url, stored)
    spec = ReplaySpec(selection=read_selection("origin=client,limit=20,draw=traffic"), formats=read_formats("BJ"))
    async with open_work(engine, configuration(tmp_path, TRAFFIC), lambda: NOON) as work:
        prepared = await prepare(work, spec, lambda *_: None)
        await store_plan(work, prepared)
        again = await prepare(work, spec, lambda *_: None)
    assert (prepared.resumed, again.resumed) == (False, True)
    assert again.parents == prepared.parents
    assert again.calls == prepared.calls
    # 160 + 40 exchanges are stood for, and 20 are drawn: each stands for ten.
    assert prepared.chances == {0.25: 0.4, 1.0: 0.1}
    assert {parent.inclusion for parent in prepared.parents.values()} == {0.1}
    assert {parent.route for parent in prepared.parents.values()} == {"desk", "quiet"}
