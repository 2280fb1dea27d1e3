"""The bootstrap by counts is the bootstrap of rows; few clusters get wider tails."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.stats.bootstrap import (
    bootstrap_totals,
    cluster_bootstrap,
    cluster_draws,
    draw_weights,
    expanded_percentile,
    rate_replicates,
)


def ratio(totals):
    return totals[..., 0] / totals[..., 1]


@settings(deadline=None)
@given(st.integers(2, 12), st.integers(0, 2**32), st.data())
def test_counts_and_rows_agree_bit_for_bit(n_clusters, seed, data):
    """For the same draws, resampled rows and reweighted counts of clusters give the same bits."""
    sizes = data.draw(st.lists(st.integers(1, 6), min_size=n_clusters, max_size=n_clusters))
    rows = [
        np.array(data.draw(st.lists(st.integers(0, 1), min_size=size, max_size=size)), dtype=np.float64)
        for size in sizes
    ]
    counts = np.array([[row.sum(), float(len(row))] for row in rows])
    by_counts = ratio(bootstrap_totals(counts, 25, seed))
    draws = cluster_draws(n_clusters, 25, seed)
    by_rows = np.array([np.concatenate([rows[index] for index in draw]) for draw in draws], dtype=object)
    expected = np.array([float(np.sum(each)) / len(each) for each in by_rows])
    assert by_counts.tobytes() == expected.tobytes()


def test_draws_depend_on_seed_and_clusters_alone():
    """So everything measured on the same statements is resampled together."""
    assert (cluster_draws(50, 20, 7) == cluster_draws(50, 20, 7)).all()
    assert (cluster_draws(50, 20, 7) != cluster_draws(50, 20, 8)).any()


def test_weights_count_the_draws():
    draws = cluster_draws(30, 100, 1)
    weights = draw_weights(draws, 30)
    assert (weights.sum(axis=1) == 30).all()
    assert weights[4, 7] == np.count_nonzero(draws[4] == 7)


def test_spread_of_replicates_is_the_linearised_error():
    """200 clusters: the bootstrap's deviation is sqrt(p(1-p)/G) to within Monte Carlo error."""
    counts = np.stack([np.repeat([1.0, 0.0], [60, 140]), np.ones(200)], axis=1)
    out = cluster_bootstrap(counts, ratio, n_boot=4000, seed=2)
    assert out.replicates.std() == pytest.approx(np.sqrt(0.3 * 0.7 / 200), rel=0.05)
    assert out.low < 0.3 < out.high


def test_few_clusters_move_the_tails_out():
    replicates = np.linspace(0, 1, 10_001)
    low_few, high_few = expanded_percentile(replicates, 15)
    low_many, high_many = expanded_percentile(replicates, 100_000)
    assert low_few < low_many == pytest.approx(0.025, abs=1e-3)
    # Phi(-sqrt(15/14) * 2.1448) = Phi(-2.2201) = .0132
    assert low_few == pytest.approx(0.0132, abs=2e-4)
    assert high_few == pytest.approx(1 - 0.0132, abs=2e-4)
    assert high_many == pytest.approx(0.975, abs=1e-3)


def test_many_clusters_go_to_the_normal_limit():
    rng = np.random.default_rng(3)
    n = rng.integers(1, 4, 6000).astype(float)
    counts = np.stack([rng.binomial(n.astype(int), 0.2).astype(float), n], axis=1)
    rates = ratio(bootstrap_totals(counts, 4000, 5))
    exact = ratio(draw_weights(cluster_draws(6000, 400, 5), 6000) @ counts)
    assert rates.mean() == pytest.approx(counts[:, 0].sum() / counts[:, 1].sum(), abs=3e-4)
    assert rates.std() == pytest.approx(exact.std(), rel=0.1)


def test_parts_are_the_whole(monkeypatch):
    """Draws that do not fit in memory at once are the same draws."""
    counts = np.stack([np.arange(40.0), np.ones(40)], axis=1)
    whole = bootstrap_totals(counts, 100, 9)
    monkeypatch.setattr("auditor.stats.bootstrap.HELD_DRAWS", 40 * 7)
    assert (bootstrap_totals(counts, 100, 9) == whole).all()


def test_rates_of_conditions_are_resampled_together():
    """Twice the same condition: the same replicates. One that a draw left out stays at its rate."""
    trials = np.ones((20, 3))
    trials[1:, 2] = 0
    y = np.array([1.0, 0, 0, 1] * 5)[:, None] * trials
    rates, replicates = rate_replicates(y, trials, n_boot=50, seed=3)
    assert rates.tolist() == [0.5, 0.5, 1.0]
    assert (replicates[:, 0] == replicates[:, 1]).all()
    assert (replicates[:, 0] == bootstrap_totals(y, 50, 3)[:, 0] / 20).all()
    assert (replicates[:, 2] == 1).all()
