"""Plans that ask until a rate is known: how blocks are shared out and drawn, and when enough is known."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.config import Probe
from auditor.domain.estimate import Insufficient
from auditor.instrument.designs import Design
from auditor.instrument.pool import shipped_pool
from auditor.probes.blocks import (
    CAP,
    FEWEST,
    FLOOR,
    block_rates,
    is_known,
    make_blocks,
    needed,
    plug_in,
    sequence_of,
    shares,
)
from auditor.probes.plan import PlanSpec, make_plan
from auditor.store.target_plans import BlockCount

POOL = shipped_pool()
ASKED = PlanSpec(design=Design.PANEL, statements=POOL, number=7)
PROBE = Probe(plan="panel", half_width=0.02)

rates = st.lists(st.floats(0.05, 0.95), min_size=1, max_size=24).map(np.array)


@given(rates, st.integers(0, 1000))
def test_questions_are_shared_out_within_floor_and_cap(past: np.ndarray, seed: int) -> None:
    size = len(past)
    chance = np.random.default_rng(seed)
    weights, costs = chance.dirichlet(np.ones(size)), chance.uniform(1, 9, size)
    found = shares(past, weights, costs)
    assert found.sum() == pytest.approx(1)
    assert (found >= FLOOR / size - 1e-9).all()
    assert (found <= CAP / size + 1e-9).all()
    wanted = weights * np.sqrt(past * (1 - past) / costs)
    free = (found > FLOOR / size + 1e-6) & (found < min(CAP / size, 1) - 1e-6)
    assert np.ptp((found / wanted)[free]) < 1e-6 if free.any() else True


@given(rates)
def test_neyman_needs_no_more_answers_than_equal_shares(past: np.ndarray) -> None:
    size = len(past)
    weights, equal = np.full(size, 1 / size), np.full(size, 1 / size)
    best = needed(past, weights, shares(past, weights, np.ones(size)), 0.02)
    assert best <= needed(past, weights, equal, 0.02)


def test_conditions_near_zero_are_asked_less() -> None:
    """Three of four conditions near 0 (MONITORING 5): down to a quarter of the answers, not to none."""
    past = plug_in(np.array([0, 0, 1, 56]), np.array([200, 200, 200, 100]))
    found = shares(past, np.full(4, 0.25), np.ones(4))
    assert found[3] > 0.4
    assert all(0.15 < each < 0.25 for each in found[:3])
    assert plug_in(np.zeros(1), np.zeros(1))[0] == 0.5


def test_a_block_asks_each_condition_about_statements_drawn_anew() -> None:
    blocks = make_blocks(ASKED, 0.02, {"CTO/self/none/neutral": 0.5, "BJ/self/none/neutral": 0.05})
    sizes = dict(zip((cell.condition.task.value for cell in blocks.cells), blocks.sizes, strict=True))
    assert sizes["CTO"] > 1.5 * sizes["BJ"] > 0
    first, second = blocks.block(0), blocks.block(1)
    assert Counter(item.template.condition.task.value for item in first) == sizes
    assert len({(item.statement.id, item.template.condition) for item in first}) == len(first) == sum(sizes.values())
    assert {item.key for item in first} != {item.key for item in second}
    assert blocks.instances == FEWEST * len(first)
    asked = Counter(item.statement.id for number in range(200) for item in blocks.block(number))
    assert set(asked) == {one.id for one in POOL}
    assert max(asked.values()) < 2 * min(asked.values())


def test_more_blocks_are_the_same_plan_and_go_on_where_it_was() -> None:
    few, more = make_blocks(ASKED, 0.05), make_blocks(ASKED, 0.05).of(FEWEST + 1)
    assert few.plan == more.plan
    calls, longer = list(few.calls("a")), list(more.calls("a"))
    assert longer[: len(calls)] == calls
    assert len(longer) == len(calls) + sum(few.sizes)
    assert len({call.ref for call in longer}) == len(longer)
    assert all(len(call.ref) <= 64 for call in longer)
    assert {call.draw for call in longer[len(calls) :]} == {FEWEST}


def test_the_plan_is_the_same_whatever_was_known_and_another_for_another_width_or_pass() -> None:
    known = make_blocks(ASKED, 0.02, {"CTO/self/none/neutral": 0.9})
    assert known.plan.id == make_blocks(ASKED, 0.02).plan.id
    assert known.plan.settings["rates"]["CTO/self/none/neutral"] == 0.9  # type: ignore[index]
    ids = {known.plan.id, make_blocks(ASKED, 0.03).plan.id, make_plan(ASKED).plan.id}
    ids.add(make_blocks(PlanSpec(design=Design.PANEL, statements=POOL, number=8), 0.02).plan.id)
    assert len(ids) == 4
    assert known.plan.design == "target"  # not watched for drift: its own answers say when it ends


def test_enough_is_known_when_the_sequence_is_narrow_and_not_before_twenty_blocks() -> None:
    values = np.random.default_rng(0).normal(0.3, 0.06, 400).clip(0, 1)
    known = [is_known(values[:size], PROBE) for size in range(1, 401)]
    assert not any(known[: FEWEST - 1])
    assert known[-1]
    assert not is_known(values[:30], PROBE)
    assert isinstance(sequence_of(values[: FEWEST - 1]), Insufficient)
    assert not is_known(values, Probe(plan="panel"))


@pytest.mark.slow
def test_the_interval_at_the_stop_holds_the_rate_of_the_panel() -> None:
    """300 simulated passes over statements that differ a lot; each stops as soon as it may. Promised: 95 %."""
    chance = np.random.default_rng(2)
    statements = chance.beta(0.5, 1.2, (200, 3))
    truth, held, asked = float(statements.mean()), 0, []
    for _ in range(300):
        drawn = np.argsort(chance.random((150, 3, 200)), axis=2)[:, :, :40]
        rate = np.stack([statements[drawn[:, c], c] for c in range(3)], axis=1)
        values = chance.binomial(1, rate).mean(axis=(1, 2))
        stop = next((k for k in range(FEWEST, 151) if is_known(values[:k], PROBE)), 150)
        found = sequence_of(values[:stop])
        assert not isinstance(found, Insufficient)
        held += found.low <= truth <= found.high
        asked.append(stop)
    assert held >= 0.95 * 300
    assert 20 <= np.median(asked) <= 60


def test_a_block_that_lacks_a_condition_is_left_out() -> None:
    said = [(0, "a", 1, 2), (0, "b", 2, 2), (1, "a", 1, 2), (1, "b", 0, 0), (2, "a", 0, 2), (2, "b", 0, 1)]
    counts = [
        BlockCount(block=block, condition=name, coded=2, events=events, trials=trials)
        for block, name, events, trials in said
    ]
    assert block_rates(counts).tolist() == [0.75, 0.0]
    assert block_rates([]).tolist() == []
