"""One series, watched: what its detectors say, and that its state is all there is."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.worlds.drift_worlds import PROMISE, WORLDS, World, days, delays, paged_share, started

from auditor.domain.estimate import Insufficient
from auditor.monitor.decision import Evidence, Promise, decide
from auditor.monitor.detectors import DayState, ShiftState
from auditor.monitor.passes import Pass
from auditor.monitor.references import Reference, fit_reference


def passes(world: World, seed: int, number: int, shocks: np.ndarray | None = None) -> list[Pass]:
    rng = np.random.default_rng(seed)
    shocks = np.zeros(number) if shocks is None else shocks
    return [each["ber_union_full"] for each in days(world, rng, shocks, moves=True)]


def test_the_same_passes_give_the_same_state_bit_for_bit():
    everything = [{"ber_union_full": each} for each in passes(World(), 1, 34)]
    ends = []
    for _ in range(2):
        watch = started("ber_union_full", everything[:14], [], 9)
        for each in everything[14:]:
            watch = watch.update(each["ber_union_full"])
        ends.append(watch)
    assert (ends[0].shift, ends[0].day, ends[0].highest) == (ends[1].shift, ends[1].day, ends[1].highest)
    assert ends[0].n_passes == 20


def test_a_reference_knows_its_statements_and_whether_days_shook():
    calm = fit_reference(passes(World(kept=0.5), 2, 14), alpha=0.02, series=2)
    shaken = fit_reference(passes(World(kept=0.5), 2, 14, np.tile([0.12, -0.12], 7)), alpha=0.02, series=2)
    assert isinstance(calm, Reference)
    assert isinstance(shaken, Reference)
    assert (calm.n_statements, calm.n_passes, calm.shaken) == (200, 14, False)
    assert 0.008 < calm.allowance < 0.016
    assert shaken.shaken
    assert shaken.overdispersion > 5


def test_too_little_is_no_reference():
    few = passes(World(), 3, 6)
    found = fit_reference(few, alpha=0.02)
    assert isinstance(found, Insufficient)
    assert "6 passes, 7 needed" in found.reason
    small = [Pass(events=each.events[:99], trials=each.trials[:99]) for each in passes(World(), 3, 14)]
    found = fit_reference(small, alpha=0.02)
    assert isinstance(found, Insufficient)
    assert "99 statements" in found.reason


def test_a_condition_that_was_not_asked_is_not_compared():
    """One of two conditions endorses far more; leaving it out on a day moves no statement."""
    rng = np.random.default_rng(4)

    def day(low: float, high: float, asked: float) -> Pass:
        trials = np.column_stack([np.full(200, 4.0), np.full(200, asked)])
        events = rng.binomial(trials.astype(int), [low, high]).astype(float)
        return Pass(events=events, trials=trials)

    past = [{"ir": day(0.1, 0.7, 4)} for _ in range(14)]
    watch = started("ir", past, [], 0)
    for _ in range(10):
        watch = watch.update(day(0.1, 0.7, 0))
    assert watch.evidence.shift < 2
    for _ in range(10):
        watch = watch.update(day(0.3, 0.7, 0))
    assert watch.shift.side == 1
    assert watch.evidence.shift > PROMISE.threshold


@given(
    st.floats(-20, 20),
    st.floats(-20, 20),
    st.none() | st.floats(-20, 20),
    st.none() | st.floats(-20, 20),
    st.booleans(),
)
def test_nobody_is_paged_without_the_statements_and_a_confirmation(shift, day, apart, instrument, shaken):
    promise = Promise(alpha=0.05, horizon=90, series=2)
    level = decide(Evidence(shift=shift, day=day, apart=apart, instrument=instrument), promise, shaken=shaken)
    if level == "page":
        assert shift >= promise.threshold
        assert day >= promise.day_threshold if apart is None else apart >= 2
    if level is None:
        assert shift < promise.threshold
        assert day < promise.day_threshold


def test_the_instrument_is_told_apart_from_the_deployment():
    """The judges change on day 5: everybody who is read by them moves, and the anchor with them."""
    watched, anchor = (passes(World(shift=0.10, shift_on=5), seed, 34) for seed in (5, 6))
    own = started("ir", [{"ir": each} for each in watched[:14]], [{"ir": each} for each in anchor[:14]], 0)
    for mine, its in zip(watched[14:], anchor[14:], strict=True):
        own = own.update(mine, its)
    assert own.level == "instrument"
    alone = started("ir", [{"ir": each} for each in watched[:14]], [{"ir": each} for each in anchor[:14]], 0)
    for mine, its in zip(watched[14:], passes(World(), 6, 34)[14:], strict=True):
        alone = alone.update(mine, its)
    assert alone.level == "page"


def test_states_start_from_nothing():
    assert ShiftState().evidence == -np.inf
    state = DayState(series="x", seed=1).seeded([0.1, 0.2])
    assert state.update(0.15).levels == (0.1, 0.2, 0.15)
    assert state.update(0.15) == state.update(0.15)
    assert replace(state, seed=2).update(0.15).log_sums != state.update(0.15).log_sums


@pytest.mark.slow
@pytest.mark.parametrize(("name", "anchored"), [("B", True), ("E", True), ("E", False)])
def test_hardly_anybody_is_paged_where_nothing_changes(name, anchored):
    """Ten deployments for ninety days; the two thousand are in tests/benchmarks."""
    assert paged_share(WORLDS[name], 10, anchored=anchored) <= 0.1


@pytest.mark.parametrize(("shift", "anchored", "most"), [(0.05, True, 8.5), (0.10, True, 3), (0.05, False, 12)])
def test_a_change_is_told_within_days(shift, anchored, most):
    found = delays(shift, 10, anchored=anchored)
    assert len(found) >= 9
    assert np.median(found) <= most
