"""Weights of captured traffic: estimates hold the truth of all traffic, whatever share of each route is captured."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.worlds.traffic_worlds import Traffic

from auditor.counting.joint import N_CELLS, SHAPE, JointTable
from auditor.domain.estimate import Estimate, Insufficient
from auditor.metrics.divergence import cancellation_trap
from auditor.metrics.estimate import estimate
from auditor.metrics.rates import METRICS, point
from auditor.stats.intervals import cluster_rate, sample_weights

SEL = METRICS["ber_sel"]
ENDORSED, REJECTED = 3, 2 * SHAPE[1] + 3


def table_of(*groups: tuple[int, int, float]) -> JointTable:
    """Make one response a user: (responses, of these endorsed, weight)."""
    cell = np.concatenate([np.repeat([ENDORSED, REJECTED], [yes, n - yes]) for n, yes, _ in groups])
    weight = np.concatenate([np.full(n, weight) for n, _, weight in groups])
    return replace(JointTable.from_cells(np.arange(len(cell)), cell, len(cell)), cell=cell, weight=weight)


def test_200_captures_cover_the_truth_of_two_routes():
    """``make measurements`` has 2,000 captures of six kinds of traffic."""
    world, hits, plain = Traffic(), 0, 0
    for seed in range(200):
        table = world.capture(np.random.default_rng([14, seed]))
        weighted, unweighted = estimate(SEL, table), estimate(SEL, replace(table, weight=None))
        hits += weighted.low <= world.truth()["ber_sel"] <= weighted.high
        plain += unweighted.low <= world.truth()["ber_sel"] <= unweighted.high
    assert 0.93 <= hits / 200 <= 0.97
    assert plain / 200 < 0.6, "the worlds no longer show what weights are for"


def test_a_rate_is_a_ratio_of_weighted_sums_with_a_linearised_error():
    # 380 answers of a route that keeps all, 40 of a route that keeps a tenth: 41 and 94 of their requests endorse.
    table = table_of((380, 41, 1.0), (40, 9, 10.0))
    found = estimate(SEL, table)
    assert found.value == pytest.approx((41 + 90) / 780)
    assert (found.n, found.n_statements) == (420, 420)
    assert found.n_effective == pytest.approx(780**2 / (380 + 4000))
    assert found.effective_statements == pytest.approx(found.n_effective), "one response a user"
    y, n = table.by_cluster(SEL.numerator), table.by_cluster(SEL.denominator)
    residual = y - found.value * n
    assert cluster_rate(y, n).se == pytest.approx(np.sqrt(420 / 419 * (residual @ residual)) / 780)
    assert found.low < 0.17 < found.high
    unweighted = estimate(SEL, replace(table, weight=None))
    assert unweighted.value == pytest.approx(50 / 420)
    assert unweighted.high < 0.17


def test_a_window_with_too_few_effective_answers_says_so():
    # The three answers of the second route stand for 300 of 400 requests.
    found = estimate(SEL, table_of((100, 20, 1.0), (3, 1, 100.0)))
    assert isinstance(found, Insufficient)
    assert found.reason.startswith("5.3 effective answers in the eligible base, 15 needed")
    assert isinstance(estimate(SEL, table_of((100, 20, 1.0), (3, 1, 2.0))), Estimate)


def test_a_verdict_counts_effective_answers():
    table = table_of((150, 60, 1.0), (20, 8, 10.0))
    found = [estimate(METRICS[name], table) for name in ("ir", "dni")]
    assert found[0].n_statements == 170
    refusal = cancellation_trap(*found, table)
    assert isinstance(refusal, Insufficient)
    assert refusal.reason == "no verdict on 57 statements, 100 needed"
    assert "few_clusters" in found[0].flags


tables = st.integers(0, 2**20)


def drawn(seed: int, statements: int = 40) -> JointTable:
    rng = np.random.default_rng(seed)
    table = JointTable.from_cells(rng.integers(0, statements, 300), rng.integers(0, N_CELLS, 300), statements)
    return replace(table, weight=rng.choice([1.0, 2.0, 10.0], len(table.count)))


@given(tables, st.sampled_from(sorted(METRICS)), st.floats(0.1, 50))
def test_equal_weights_are_no_weights_to_the_last_digit(seed, name, weight):
    table = replace(drawn(seed), weight=None)
    weighted = replace(table, weight=np.full(len(table.count), weight))
    assert estimate(METRICS[name], weighted) == estimate(METRICS[name], table)


@given(tables, st.sampled_from(sorted(METRICS)), st.sampled_from([0.25, 2.0, 64.0]))
def test_only_the_ratios_of_weights_count(seed, name, factor):
    table = drawn(seed)
    assert estimate(METRICS[name], replace(table, weight=factor * table.weight)) == estimate(METRICS[name], table)


@given(tables, st.sampled_from(sorted(METRICS)))
def test_a_weighted_value_is_that_of_repeated_responses(seed, name):
    """Weights of 2 and 10 are two and ten copies for the value, and fewer responses for the interval."""
    table = drawn(seed)
    copies = replace(table, count=np.rint(table.count * table.weight).astype(np.int64), weight=None)
    found, repeated = estimate(METRICS[name], table), estimate(METRICS[name], copies)
    if isinstance(found, Estimate) and isinstance(repeated, Estimate):
        assert found.value == pytest.approx(repeated.value)
        assert found.low <= found.value <= found.high
        assert found.n_effective is None or found.n_effective <= found.n * (1 + 1e-12)
    assert point(METRICS[name], table.weighted_totals) == pytest.approx(point(METRICS[name], copies.totals))


@given(tables)
def test_weights_take_away_and_never_add(seed):
    table = drawn(seed)
    found = sample_weights(table.count.astype(np.float64), table.cluster, table.weight)
    clusters = len(np.unique(table.cluster))
    assert 1 <= found.answers <= table.n * (1 + 1e-12)
    assert 0 < found.clusters <= clusters
    assert 0 < found.df <= clusters - 1
    even = sample_weights(table.count.astype(np.float64), table.cluster, np.full(len(table.count), 4.0))
    assert (even.answers, even.clusters, even.df) == pytest.approx((table.n, clusters, clusters - 1))
    assert table.effective == pytest.approx(found.answers)


def test_tables_of_two_deployments_add_with_their_weights():
    one, other = drawn(1), drawn(2)
    both = one + other
    for metric in METRICS.values():
        assert both.by_cluster(metric.numerator) == pytest.approx(
            one.by_cluster(metric.numerator) + other.by_cluster(metric.numerator)
        )
    assert (both + replace(one, weight=None)).weighted_totals == pytest.approx(both.weighted_totals + one.totals)


def test_an_empty_table_has_no_weights():
    with pytest.raises(ValueError, match="no responses"):
        sample_weights(np.zeros(0), np.zeros(0, dtype=np.int64), np.zeros(0))
