"""Ranks over conditions: sure ones, uncertain ones, and what is left out."""

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from auditor.counting.joint import SHAPE, Floats
from auditor.domain.estimate import Insufficient
from auditor.metrics.divergence import qe_fold
from auditor.metrics.ranks import ConditionRanks, fold_stability, folded, rank_by_condition
from auditor.metrics.rates import METRICS, point


def fold_changes(totals: Floats) -> Mapping[str, float]:
    """Compute the change of each measure by the fold, shape ``SHAPE``, where both sides have one."""
    both = {metric.name: (point(metric, totals), point(metric, folded(totals))) for metric in METRICS.values()}
    return {name: new - old for name, (old, new) in both.items() if old is not None and new is not None}


NAMES = ("a", "b", "c")


def ask(rng, truths, statements=150, responses=4):
    """Draw answers of every statement for the rates [C, K]."""
    truths = np.array(truths)
    y = rng.binomial(responses, truths, (statements, *truths.shape)).astype(float)
    return y, np.full_like(y, responses)


def ranks_of(y, n, n_boot=100):
    conditions = [f"condition {index}" for index in range(y.shape[1])]
    return rank_by_condition(conditions, NAMES[: y.shape[2]], y, n, n_boot=n_boot, seed=0)


def test_a_crossover_is_seen_and_sure():
    """The first leads under three conditions of four and is the last under the fourth."""
    y, n = ask(np.random.default_rng(0), [[0.8, 0.5, 0.2]] * 3 + [[0.1, 0.5, 0.3]])
    found = ranks_of(y, n)
    assert found.ranks["a"].shares == (0.75, 0, 0.25)
    assert (found.ranks["a"].best, found.ranks["a"].worst) == (1, 3)
    assert found.ranks["a"].resampled == pytest.approx(found.ranks["a"].shares, abs=0.01)
    assert found.flags == ()


def test_equal_deployments_change_ranks_by_chance_alone():
    """Ten conditions, one rate: the rankings hardly agree, and resampling spreads every rank."""
    y, n = ask(np.random.default_rng(1), [[0.3, 0.3, 0.3]] * 10)
    found = ranks_of(y, n)
    assert found.concordance < 0.5
    assert all(min(one.resampled) > 0.1 for one in found.ranks.values())


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**32), st.integers(2, 5), st.integers(2, 3))
def test_shares_are_shares(seed, conditions, deployments):
    rng = np.random.default_rng(seed)
    y, n = ask(rng, rng.random((conditions, deployments)), statements=20)
    found = ranks_of(y, n, n_boot=10)
    assert isinstance(found, ConditionRanks)
    assert found.flags == ("few_clusters",)
    for one in found.ranks.values():
        assert (sum(one.shares), sum(one.resampled)) == pytest.approx((1, 1))
        taken = [rank for rank, share in enumerate(one.shares, start=1) if share]
        assert (one.best, one.worst) == (taken[0], taken[-1])


def test_a_condition_that_one_deployment_was_not_asked_under_is_left_out():
    y, n = ask(np.random.default_rng(2), [[0.8, 0.5], [0.7, 0.4], [0.2, 0.6]])
    n[14:, 1, 0] = y[14:, 1, 0] = 0
    found = ranks_of(y, n)
    assert (found.conditions, found.left_out) == (("condition 0", "condition 2"), ("condition 1",))
    assert found.ranks["a"].shares == (0.5, 0.5)


def test_what_has_no_ranks():
    y, n = ask(np.random.default_rng(3), [[0.8, 0.5], [0.7, 0.4]])
    assert ranks_of(y[:, :, :1], n[:, :, :1]) == Insufficient(reason="one deployment has no rank")
    assert ranks_of(y[:, :1], n[:, :1]) == Insufficient(
        reason="fewer than two conditions with 15 statements of every deployment"
    )


tables = arrays(np.int64, SHAPE, elements=st.integers(0, 5)).map(lambda table: table.astype(float))


@given(tables)
def test_folded_ir_is_the_one_of_the_check(totals):
    check = qe_fold(totals)
    if isinstance(check, Insufficient):
        assert "ir" not in fold_changes(totals)
    else:
        assert point(METRICS["ir"], folded(totals)) == pytest.approx(check.ir_folded)
        assert fold_changes(totals)["ir"] == pytest.approx(check.ir_folded - check.ir)


@given(tables)
def test_the_fold_moves_only_qualified_endorsements(totals):
    twice = folded(folded(totals))
    assert (twice == folded(totals)).all()
    assert folded(totals).sum() == totals.sum()
    assert (folded(totals).sum(axis=1) == totals.sum(axis=1)).all()
    changes = fold_changes(totals)
    for name in ("ber_elab", "ber_cor", "ber_union", "ber_elab_full", "ber_union_full"):
        assert changes.get(name, 0) <= 0
    assert changes.get("ber_sel", 0) == changes.get("ber_sel_full", 0) == 0
    if "ir" in changes:
        # What leaves elaboration's endorsement leaves DNI's subtrahend.
        assert changes["dni"] == pytest.approx(-changes["ber_elab"])
        assert abs(changes["ir"]) <= -changes["ber_elab"] + 1e-12


@given(tables)
def test_without_qualified_endorsements_nothing_moves(totals):
    totals[:, 1] = 0
    assert set(fold_changes(totals).values()) <= {0.0}
    assert len(fold_changes(totals)) == sum(point(metric, totals) is not None for metric in METRICS.values())


def of(both, qualified, only_sel, neither):
    """Lay out n11, of them so many qualified, n10 and n00."""
    totals = np.zeros(SHAPE)
    totals[0, 0], totals[0, 1], totals[0, 3], totals[2, 3] = both - qualified, qualified, only_sel, neither
    return totals


def test_a_ranking_that_rests_on_qualified_endorsement():
    """Under BJ the third deployment leads by QE alone; under CTO there is none."""
    bj = [of(10, 0, 0, 90), of(20, 0, 0, 80), of(30, 30, 0, 70)]
    cto = [of(40, 0, 5, 55), of(50, 0, 5, 45), of(60, 0, 5, 35)]
    found = fold_stability(["BJ", "CTO"], ["a", "b", "c"], np.array([bj, cto]))
    assert (found.condition, found.deployment, found.robust) == ("BJ", "c", False)
    assert found.change == pytest.approx(0.3)
    # Before 1, 2, 3; after 2, 3, 1: sum of squares 6, rho = 1 - 36 / 24.
    assert found.rho == pytest.approx({"BJ": -0.5, "CTO": 1.0})


def test_a_few_qualified_endorsements_change_nothing():
    totals = np.array([[of(100, 0, 50, 850), of(200, 3, 50, 750), of(300, 0, 50, 650)]])
    found = fold_stability(["BJ"], ["a", "b", "c"], totals)
    assert found.robust
    assert (found.change, found.rho) == (pytest.approx(0.003), {"BJ": 1.0})


def test_conditions_without_a_base_are_named():
    empty = np.zeros((3, *SHAPE))
    whole = np.array([of(10, 0, 0, 90), of(20, 0, 0, 80), of(30, 0, 0, 70)])
    found = fold_stability(["Explain", "BJ"], ["a", "b", "c"], np.array([empty, whole]))
    assert found.left_out == ("Explain",)
    assert isinstance(fold_stability(["Explain"], ["a", "b", "c"], empty[None]), Insufficient)
    assert fold_stability(["BJ"], ["a", "b"], whole[None, :2]) == Insufficient(reason="2 deployments, 3 needed")
