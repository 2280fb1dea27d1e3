"""Averages over deployments: against plain arithmetic, the paper's, and the truth of simulated audits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.counting.joint import SHAPE, JointTable
from auditor.domain.estimate import Estimate, Insufficient
from auditor.metrics.estimate import estimate
from auditor.metrics.means import unweighted_mean
from auditor.metrics.rates import METRICS, point

#: Cells (E, E), (E, D), (D, E), (D, D).
FOURFOLD = np.array([0, 3, 16, 19])


def deployment(rng, shares, statements=120, responses=4):
    """Answer every statement a few times, in the given shares of the four stances."""
    cell = FOURFOLD[rng.choice(4, statements * responses, p=shares)]
    return JointTable.from_cells(np.repeat(np.arange(statements), responses), cell, statements)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**32), st.integers(1, 5))
def test_the_mean_is_that_of_the_deployments(seed, count):
    rng = np.random.default_rng(seed)
    tables = {str(k): deployment(rng, rng.dirichlet(np.ones(4) * 3), responses=k + 1) for k in range(count)}
    for metric in METRICS.values():
        found = unweighted_mean(metric, tables, n_boot=50)
        assert isinstance(found, Estimate)
        assert found.value == pytest.approx(np.mean([point(metric, table.totals) for table in tables.values()]))
        assert found.low <= found.value <= found.high
        assert found.n == sum(estimate(metric, table).n for table in tables.values())


def test_the_mean_and_the_pool_are_two_numbers():
    """Rates of .1 and .5, the second with nine times the responses: .3 and .46."""
    rng = np.random.default_rng(0)
    one, other = deployment(rng, [0.1, 0, 0, 0.9], responses=2), deployment(rng, [0.5, 0, 0, 0.5], responses=18)
    tables = {"one": one, "other": other}
    mean, pooled = unweighted_mean(METRICS["ber_sel"], tables), estimate(METRICS["ber_sel"], one + other)
    assert (mean.value, pooled.value) == (pytest.approx(0.3, abs=0.03), pytest.approx(0.46, abs=0.03))
    assert mean.high < pooled.low


def test_one_deployment_is_its_own_mean():
    table = deployment(np.random.default_rng(5), [0.2, 0.2, 0.1, 0.5], statements=200)
    mean, own = unweighted_mean(METRICS["ber_union"], {"a": table}), estimate(METRICS["ber_union"], table)
    assert (mean.value, mean.low, mean.high) == pytest.approx((own.value, own.low, own.high), abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "shares"), [("ir", [0.2, 0.1, 0.1, 0.6]), ("ber_cor", [0.01, 0.1, 0.1, 0.79])])
def test_interval_holds_the_truth(name, shares):
    """Statements that differ, four deployments that share their differences: .93 of 200 audits or more."""
    truth = {"ir": shares[1] + shares[2], "ber_cor": shares[0]}[name]
    held = 0
    for seed in range(200):
        rng = np.random.default_rng([7, seed])
        own = rng.dirichlet(np.array(shares) * 4, 100)
        tables = {}
        for k in range(4):
            cell = FOURFOLD[(rng.random((100, 3, 1)) > own.cumsum(axis=1)[:, None, :3]).sum(axis=2)]
            tables[str(k)] = JointTable.from_cells(np.repeat(np.arange(100), 3), cell.ravel(), 100)
        found = unweighted_mean(METRICS[name], tables, n_boot=400, seed=seed)
        held += found.low <= truth <= found.high
    assert held >= 0.93 * 200


def test_a_rare_difference_has_bounds_and_says_so():
    tables = {str(k): deployment(np.random.default_rng(k), [0, 0.01, 0.01, 0.98]) for k in range(3)}
    found = unweighted_mean(METRICS["dni"], tables)
    assert {"low_rate"} <= set(found.flags)
    assert found.low < 0 < found.high


def test_a_deployment_without_a_value_leaves_no_mean():
    table = deployment(np.random.default_rng(1), [0.2, 0.2, 0.1, 0.5])
    none = JointTable.from_cells(np.arange(20), np.full(20, 4 * SHAPE[1]), 120)
    found = unweighted_mean(METRICS["ir"], {"a": table, "b": none})
    assert found == Insufficient(reason="b: no response has a label on both layers")


def test_other_statements_have_no_common_mean():
    tables = {"a": deployment(np.random.default_rng(1), [0.2, 0.2, 0.1, 0.5])}
    tables["b"] = deployment(np.random.default_rng(1), [0.2, 0.2, 0.1, 0.5], statements=130)
    with pytest.raises(ValueError, match="same clusters"):
        unweighted_mean(METRICS["ir"], tables)
    with pytest.raises(ValueError, match="same clusters"):
        unweighted_mean(METRICS["ir"], {})
