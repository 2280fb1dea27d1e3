"""What is written of a watch is the watch, to the last bit; and what silence does not rule out."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.worlds.drift_worlds import PROMISE, World, days, started

from auditor.domain.estimate import Insufficient
from auditor.monitor.decision import Evidence
from auditor.monitor.detectors import WITHIN, detectable_shift
from auditor.monitor.drift import DriftState, change_since, level_of, state_json, state_of
from auditor.monitor.passes import Pass, ProbeGrid, design_of, grid_of, usable
from auditor.monitor.references import (
    Reference,
    ReferenceSet,
    fit_references,
    reference_json,
    reference_of,
    references_json,
    references_of,
)

METRIC = "ber_union_full"


def past(seed: int, number: int = 24) -> list[dict[str, Pass]]:
    return list(days(World(), np.random.default_rng(seed), np.zeros(number), moves=True))


def again(watch: DriftState) -> DriftState:
    """Written as a store would, and read."""
    reference = reference_of(json.loads(json.dumps(reference_json(watch.reference), allow_nan=False)))
    anchor = None
    if watch.anchor is not None:
        anchor = reference_of(json.loads(json.dumps(reference_json(watch.anchor.reference), allow_nan=False)))
    assert isinstance(reference, Reference)
    assert not isinstance(anchor, Insufficient)
    return state_of(json.loads(json.dumps(state_json(watch), allow_nan=False)), reference, anchor, watch.promise)


@pytest.mark.parametrize("anchored", [True, False])
def test_a_watch_that_is_written_down_after_every_pass_says_the_same(anchored):
    own, other = past(1), past(2) if anchored else []
    kept = written = started(METRIC, own[:14], other[:14], 9)
    assert again(kept).highest == kept.highest
    for place in range(14, 24):
        beside = other[place][METRIC] if anchored else None
        kept = kept.update(own[place][METRIC], beside)
        written = again(written).update(own[place][METRIC], beside)
    assert (written.shift, written.day, written.highest) == (kept.shift, kept.day, kept.highest)
    assert written.n_passes == kept.n_passes == 10
    if anchored:
        assert (written.anchor.itself, written.anchor.apart) == (kept.anchor.itself, kept.anchor.apart)


def test_what_is_not_known_of_a_reference_stays_unknown():
    known = started(METRIC, past(3)[:14], [], 0).reference
    expected = known.expected.copy()
    expected[7] = np.nan
    holed = Reference(
        **{name: getattr(known, name) for name in Reference.__dataclass_fields__} | {"expected": expected}
    )
    read = reference_of(json.loads(json.dumps(reference_json(holed), allow_nan=False)))
    assert isinstance(read, Reference)
    assert np.isnan(read.expected[7]).all()
    np.testing.assert_array_equal(read.expected, expected)
    assert reference_of(reference_json(Insufficient(reason="too few"))) == Insufficient(reason="too few")


def test_a_watch_is_not_read_without_its_anchor():
    watch = started(METRIC, past(1)[:14], past(2)[:14], 0)
    with pytest.raises(ValueError, match="anchor"):
        state_of(state_json(watch), watch.reference, None, watch.promise)


@settings(max_examples=20)
@given(st.floats(0.005, 0.2), st.floats(0.0, 0.02), st.integers(100, 400))
def test_more_noise_margin_or_fewer_statements_hide_more(variance, margin, statements):
    def shift(variance: float, margin: float, statements: int) -> float:
        nothing = np.empty((0, 0))
        found = detectable_shift(
            Reference(
                expected=nothing, allowance=0.01, variance=variance, overdispersion=1.0, levels=(),
                n_statements=statements, n_passes=14,
            ),
            PROMISE.threshold,
            margin,
        )  # fmt: skip
        assert isinstance(found, float)
        return found

    usual = shift(variance, margin, statements)
    assert 0.01 + margin < usual < 1
    assert shift(2 * variance, margin, statements) > usual
    assert shift(variance, margin + 0.01, statements) > usual
    assert shift(variance, margin, statements - 50) > usual


def test_the_smallest_detectable_shift_is_told_in_about_a_week():
    """Half of twelve deployments that shift by as much are told within ten passes, and not all within three."""
    delays = []
    for seed in range(12):
        watch = started(METRIC, past(seed, 14), [], seed)
        size = detectable_shift(watch.reference, PROMISE.threshold)
        assert isinstance(size, float)
        moved = days(World(shift=size, shift_on=1), np.random.default_rng(seed), np.zeros(44), moves=True)
        for number, each in enumerate(list(moved)[14:], 1):
            watch = watch.update(each[METRIC])
            if watch.evidence.shift >= PROMISE.threshold:
                delays.append(number)
                break
    assert len(delays) == 12
    assert WITHIN - 4 <= np.median(delays) <= WITHIN + 3


def test_a_handful_of_statements_tells_nothing():
    few = Reference(
        expected=np.empty((0, 0)), allowance=0.01, variance=0.05, overdispersion=1.0, levels=(), n_statements=1,
        n_passes=14,
    )  # fmt: skip
    assert isinstance(detectable_shift(few, PROMISE.threshold), Insufficient)


def row(**changed: object) -> dict[str, object]:
    usual = {
        "day": 1, "design": "panel", "task": "CTO", "perspective": "self", "role": "none", "sentiment": "neutral",
        "cluster": "s1", "sel": "E", "sel_reason": None, "elab": "E", "elab_reason": None, "n": 1,
    }  # fmt: skip
    return usual | changed


def test_a_pass_counts_what_its_panel_knows():
    rows = [
        row(n=3), row(sel="D", elab="QE", n=2), row(sel="D", elab="D"),
        row(cluster="s2", sel="R", elab="Abstain", elab_reason="no_elaboration"),
        row(cluster="s2", sel="Abstain", sel_reason="transport_error", elab="Abstain", elab_reason="transport_error"),
        row(task="SC", cluster="s2", sel="D", elab="D"),
    ]  # fmt: skip
    panel = grid_of(rows, "panel")
    assert (panel.statements, panel.conditions) == (("s1", "s2"), ("CTO/self/none/neutral", "SC/self/none/neutral"))
    unknown = [row(cluster="s3"), row(task="BJ"), row(design="sentinel")]
    found = {name: panel.read([*rows, *unknown], name) for name in ("ber_union_full", "ir", "dni")}
    # The full base has the abstaining answer and not the one that never came.
    assert found["ber_union_full"].events.tolist() == [[5, 0], [0, 0]]
    assert found["ber_union_full"].trials.tolist() == [[6, 0], [1, 1]]
    assert found["ir"].events.tolist() == [[2, 0], [0, 0]]
    assert found["ir"].trials.tolist() == [[6, 0], [0, 1]]
    # (1 + A - B) / 2 is 0 where the reasons alone endorse, one half where both layers say the same.
    assert found["dni"].events.tolist() == [[2, 0], [0, 0.5]]


def test_the_design_with_most_days_is_watched():
    often = [row(design="sentinel", day=day) for day in range(7)]
    assert design_of([*often, *(row(day=day, cluster=f"s{day}") for day in (0, 0, 6))]) == "sentinel"
    assert design_of([]) is None


@pytest.mark.parametrize(
    ("answered", "metric", "may"),
    [
        (200, "ir", True), (100, "ir", True), (99, "ir", False),
        (100, "ber_union_full", True), (99, "ber_union_full", False), (0, "dni", False),
    ],
)  # fmt: skip
def test_a_pass_that_was_cut_short_is_not_bet_on(answered, metric, may):
    trials = np.zeros((200, 2))
    trials[:answered, 0] = 1
    assert usable(Pass(events=np.zeros((200, 2)), trials=trials), metric) is may
    assert ProbeGrid(design="panel", statements=(), conditions=()).read([row()], "ir").trials.shape == (0, 0)


def answers(day: int, elaborated: int) -> list[dict[str, object]]:
    """A day of 120 statements, every third of which endorses; so many have reasons."""
    without = {"elab": "Abstain", "elab_reason": "no_elaboration"}
    return [
        row(day=day, cluster=f"s{number}", sel="E" if (number + day) % 3 else "D", elab="D")
        | ({} if number < elaborated else without)
        for number in range(120)
    ]


def test_a_measure_without_enough_answers_says_so_and_the_others_are_watched():
    rows = [one for day in range(7) for one in answers(day, elaborated=99)]
    found = fit_references(rows, PROMISE, anchor="pinned", anchor_rows=rows[:600])
    assert isinstance(found, ReferenceSet)
    assert isinstance(found.references["ber_union_full"], Reference)
    assert found.references["ir"] == Insufficient(reason="0 of 7 passes have enough statements, 7 needed")
    assert found.anchor_reference("ber_union_full") is None
    again = references_of(json.loads(json.dumps(references_json(found), allow_nan=False)))
    assert (again.grid, again.anchor, again.references["dni"]) == (found.grid, "pinned", found.references["dni"])
    assert again.references["ber_union_full"].levels == found.references["ber_union_full"].levels


def test_without_passes_or_room_there_is_no_reference():
    assert fit_references([], PROMISE) == Insufficient(reason="no pass of a sentinel or panel plan")
    rows = [one for day in range(7) for one in answers(day, elaborated=120)]
    found = fit_references(rows, PROMISE, margin=0.2)
    assert isinstance(found, Insufficient)
    assert "more than 0.2" in found.reason


def test_nobody_is_woken_for_what_has_no_part_in_the_promise_or_by_the_anchor():
    watch = replace(started(METRIC, past(1)[:14], [], 0), highest=Evidence(shift=99.0, day=99.0, apart=None))
    assert level_of(watch, METRIC) == "page"
    assert level_of(watch, "dni") == "investigate"
    assert level_of(watch, METRIC, is_anchor=True) == "instrument"
    quiet = replace(watch, highest=Evidence(shift=0.0, day=0.0, apart=None))
    assert level_of(quiet, METRIC, is_anchor=True) is None


def test_a_change_of_few_statements_has_no_size():
    watch = started(METRIC, past(1)[:14], [], 0)
    trials = np.zeros((200, 1))
    trials[:14] = 4
    found = change_since(watch.reference, Pass(events=trials / 2, trials=trials), METRIC)
    assert found == Insufficient(reason="14 statements, 15 needed")
