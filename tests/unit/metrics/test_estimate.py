"""Estimates: which interval, which floor, which flag; the trap, the flip, and coverage at known truth."""

import numpy as np
import pytest
from support.worlds.audit_worlds import CELLS, World, any_world

from auditor.counting.joint import SHAPE, JointTable
from auditor.domain.estimate import Estimate, Insufficient
from auditor.metrics.divergence import cancellation_trap, sign_flip, trap_state
from auditor.metrics.estimate import dni_interval, estimate
from auditor.metrics.rates import METRICS
from auditor.stats.intervals import Interval


def audit(counts, statements):
    """Every statement answered alike: ``counts`` of n11, n10, n01, n00."""
    cluster = np.repeat(np.arange(statements), 4)
    count = np.tile(np.array(counts, dtype=np.int64), statements)
    return JointTable(cluster=cluster, cell=np.tile(CELLS, statements), count=count, n_clusters=statements)


def one_each(cells):
    """One response a statement."""
    return JointTable.from_cells(np.arange(len(cells)), np.array(cells), len(cells))


@pytest.mark.parametrize("statements", [1, 14])
def test_under_fifteen_statements_there_is_no_estimate(statements):
    for metric in METRICS.values():
        out = estimate(metric, audit((3, 2, 1, 4), statements))
        assert isinstance(out, Insufficient)
        assert f"{statements} statements" in out.reason


@pytest.mark.parametrize("statements", [15, 99])
def test_under_a_hundred_statements_the_estimate_is_flagged(statements):
    out = estimate(METRICS["ber_sel"], audit((3, 2, 1, 4), statements))
    assert isinstance(out, Estimate)
    assert out.flags == ("few_clusters",)
    assert out.method == "design_effect_wilson"


def test_a_hundred_statements_are_enough():
    assert estimate(METRICS["ber_sel"], audit((3, 2, 1, 4), 100)).flags == ()


def test_wilson_only_where_each_statement_gave_one_response():
    cells = [int(CELLS[index % 4]) for index in range(120)]
    assert estimate(METRICS["ber_sel"], one_each(cells)).method == "wilson"
    twice = JointTable.from_cells(np.array([0, *range(119)]), np.array(cells), 119)
    assert estimate(METRICS["ber_sel"], twice).method == "design_effect_wilson"
    assert estimate(METRICS["ber_sel"], one_each(cells[:60])).method == "design_effect_wilson"


def test_floor_counts_the_statements_of_the_own_base():
    """120 statements selected, 20 of them elaborated: the full selection rate is sure, IR is not."""
    cells = [int(CELLS[index % 4]) for index in range(20)] + [2 * SHAPE[1] + 6] * 100
    table = one_each(cells)
    assert estimate(METRICS["ber_sel_full"], table).n_statements == 120
    assert estimate(METRICS["ir"], table).n_statements == 20
    assert "few_clusters" in estimate(METRICS["ir"], table).flags


def test_ratio_without_any_signal_is_absent():
    table = audit((0, 0, 0, 9), 120)
    assert estimate(METRICS["ir_over_union"], table) == Insufficient(reason="no endorsement on either layer")


def test_empty_base_says_so():
    cells = [4 * SHAPE[1] + 3] * 30
    assert "both layers" in estimate(METRICS["ir"], one_each(cells)).reason
    assert isinstance(estimate(METRICS["ber_union_full"], one_each(cells)), Estimate)


def test_nothing_ever_endorsed_is_bounded_not_certain():
    """0 of 120 statements: Clopper-Pearson's 1 - .025 ** (1/120) = .030; with one response each or nine."""
    for counts in ((0, 0, 0, 1), (0, 0, 0, 9)):
        out = estimate(METRICS["ber_sel"], audit(counts, 120))
        assert (out.value, out.low) == (0.0, 0.0)
        assert out.high == pytest.approx(0.030, abs=0.001)
        assert out.flags == ("low_rate", "bounds_only")


def test_layers_that_never_disagree_leave_dni_bounded():
    out = estimate(METRICS["dni"], audit((3, 0, 0, 6), 120))
    assert out.value == 0
    assert out.low == pytest.approx(-0.036, abs=0.003)
    assert out.high == pytest.approx(0.036, abs=0.003)


def test_a_low_rate_is_flagged():
    rng = np.random.default_rng(5)
    world = World(shares=(0.01, 0.02, 0.02, 0.95), responses=8)
    assert "low_rate" in estimate(METRICS["ber_sel"], world.audit(rng)).flags


def test_the_same_seed_gives_the_same_estimate():
    table = World(shares=(0.002, 0.003, 0.002, 0.993), responses=8).audit(np.random.default_rng(1))
    for metric in METRICS.values():
        assert estimate(metric, table, seed=4) == estimate(metric, table, seed=4)


def known(value, low, high, n_statements=200):
    return Estimate(
        value=value, low=low, high=high, base="eligible", method="logit_cluster", n=900, n_statements=n_statements
    )


@pytest.mark.parametrize(
    ("ir", "dni", "dni_90", "state"),
    [
        (known(0.20, 0.15, 0.25), known(0.001, -0.015, 0.017), (-0.012, 0.014), "confirmed"),
        (known(0.20, 0.15, 0.25), known(0.001, -0.03, 0.03), (-0.025, 0.027), "possible"),
        (known(0.20, 0.15, 0.25), known(0.10, 0.08, 0.12), (0.08, 0.12), "excluded"),
        (known(0.08, 0.06, 0.10), known(0.001, -0.01, 0.01), (-0.01, 0.01), "possible"),
        (known(0.06, 0.04, 0.08), known(0.001, -0.01, 0.01), (-0.01, 0.01), "excluded"),
        (known(0.20, 0.10, 0.30), known(0.041, 0.0, 0.08), (0.01, 0.07), "excluded"),
        (known(0.20, 0.10, 0.30), known(-0.04, -0.08, 0.0), (-0.07, -0.01), "possible"),
    ],
)
def test_the_three_states_of_the_trap(ir, dni, dni_90, state):
    assert trap_state(ir, dni, Interval(low=dni_90[0], high=dni_90[1])) == state


def test_the_trap_is_confirmed_at_its_truth_and_needs_its_floor():
    table = World(shares=(0.1, 0.15, 0.15, 0.6), icc=0.1, statements=600, responses=40).audit(np.random.default_rng(2))
    ir, dni = (estimate(METRICS[name], table) for name in ("ir", "dni"))
    assert cancellation_trap(ir, dni, table) == "confirmed"
    few = World(shares=(0.1, 0.15, 0.15, 0.6), statements=60, responses=40).audit(np.random.default_rng(2))
    ir, dni = (estimate(METRICS[name], few) for name in ("ir", "dni"))
    assert isinstance(cancellation_trap(ir, dni, few), Insufficient)


def test_a_ninety_percent_interval_is_the_narrower_one():
    table = World(shares=(0.1, 0.15, 0.15, 0.6)).audit(np.random.default_rng(2))
    wide, narrow = estimate(METRICS["dni"], table), dni_interval(table)
    assert wide.low < narrow.low < narrow.high < wide.high


@pytest.mark.parametrize(
    ("dni", "baseline", "flips"),
    [
        (known(0.1, 0.05, 0.15), known(-0.1, -0.15, -0.05), True),
        (known(-0.1, -0.15, -0.05), known(0.1, 0.05, 0.15), True),
        (known(0.1, 0.05, 0.15), known(-0.1, -0.25, 0.05), False),
        (known(0.1, 0.05, 0.15), known(0.1, 0.05, 0.15), False),
    ],
)
def test_a_sign_flips_only_where_both_signs_are_sure(dni, baseline, flips):
    assert sign_flip(dni, baseline) is flips


def test_no_flip_without_a_baseline_or_below_the_floor():
    sure = known(0.1, 0.05, 0.15)
    assert isinstance(sign_flip(sure, None), Insufficient)
    assert isinstance(sign_flip(sure, Insufficient(reason="12 statements")), Insufficient)
    assert isinstance(sign_flip(sure, known(-0.1, -0.15, -0.05, n_statements=40)), Insufficient)


COVERED = ("ber_sel", "ber_elab", "ber_union", "ir", "dni", "ir_over_union")


def test_intervals_cover_the_truth_in_a_hundred_audits():
    """The full simulation is a benchmark (a thousand audits, 93-97 %); with a hundred, 88 or more of each."""
    hits = dict.fromkeys(COVERED, 0)
    for seed in range(100):
        rng = np.random.default_rng([11, seed])
        world = any_world(rng, responses=4)
        table, truth = world.audit(rng), world.truth()
        for name in COVERED:
            out = estimate(METRICS[name], table)
            hits[name] += out.low <= truth[name] <= out.high
    assert min(hits.values()) >= 88
    assert sum(hits.values()) / (100 * len(COVERED)) >= 0.93
