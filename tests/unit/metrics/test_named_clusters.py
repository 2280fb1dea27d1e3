"""Intervals over named clusters: few, uneven or crossed. The whole simulation is in ``tests/benchmarks``."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.worlds.clustered_worlds import UNEVEN, crossed, in_topics, truth

from auditor.metrics.estimate import estimate
from auditor.metrics.rates import METRICS
from auditor.stats.crossed import crossed_rate
from auditor.stats.intervals import cluster_rate

AUDITS = 400


def test_200_statements_in_16_topics_are_covered():
    """By topic the interval holds the truth as often as it says; by statement it does not."""
    true, hits, by_statement = truth(0.8)["ber_union"], 0, 0
    for seed in range(AUDITS):
        statements, topics = in_topics(np.random.default_rng([31, seed]), UNEVEN, 0.8, 4)
        found, naive = (estimate(METRICS["ber_union"], table) for table in (topics, statements))
        hits += found.low <= true <= found.high
        by_statement += naive.low <= true <= naive.high
    assert 0.93 <= hits / AUDITS <= 0.98
    assert by_statement / AUDITS < 0.75


def test_statements_crossed_with_users_are_covered():
    true, hits = truth(0.8)["ber_sel"], 0
    for seed in range(AUDITS // 2):
        found = estimate(METRICS["ber_sel"], crossed(np.random.default_rng([32, seed]), 60, 30, 0.8))
        hits += found.low <= true <= found.high
    assert hits / (AUDITS // 2) >= 0.93


@settings(deadline=None)
@given(st.integers(2, 40), st.integers(1, 9), st.integers(0, 2**32))
def test_equal_clusters_have_the_usual_variance(clusters, size, seed):
    y = np.random.default_rng(seed).integers(0, size + 1, clusters).astype(float)
    n = np.full(clusters, float(size))
    one, usual = crossed_rate(y, n, [np.arange(clusters)]), cluster_rate(y, n)
    assert one.se == pytest.approx(usual.se, abs=1e-12)
    assert one.df == pytest.approx(usual.df)


def test_crossed_variance_is_inclusion_and_exclusion():
    """Balanced two-way cells: V = V_rows + V_columns - V_cells (Cameron, Gelbach and Miller 2011)."""
    rng = np.random.default_rng(5)
    rows, columns = (each.ravel() for each in np.indices((12, 9)))
    y = (rng.random(108) < 0.2 + 0.5 * rng.random(12)[rows] * rng.random(9)[columns]).astype(float)
    n = np.ones(108)
    parts = [crossed_rate(y, n, [way]).se ** 2 for way in (rows, columns, np.arange(108))]
    both = crossed_rate(y, n, [rows, columns])
    assert both.se**2 == pytest.approx(max(parts[0] + parts[1] - parts[2], parts[0], parts[1]))
    assert both.df <= 8


def test_uneven_clusters_have_fewer_degrees_of_freedom():
    """One cluster of 50 among fifteen of one: the variance rests on few of them."""
    y, n = np.array([20.0, *[1.0, 0.0, 0.0] * 5]), np.array([50.0, *[1.0] * 15])
    assert crossed_rate(y, n, [np.arange(16)]).df < 5
