"""Kappa with its interval: the plain kappa's value, wider for clusters, and nothing where there is one label."""

import numpy as np
import pytest

from auditor.stats.agreement import clustered_kappa, cohen_kappa


def test_the_value_is_the_plain_kappas_of_the_weighted_table():
    confusion = np.random.default_rng(2).uniform(0, 3, (40, 3, 3)) + 4 * np.eye(3)
    out = clustered_kappa(confusion, n_boot=200, seed=0)
    assert out.value == pytest.approx(cohen_kappa(confusion.sum(axis=0)))
    assert -1 <= out.low < out.value < out.high <= 1
    assert out == clustered_kappa(confusion, n_boot=200, seed=0)


def test_labels_that_go_together_are_fewer_labels():
    """A hundred pairs in twenty-five statements of four, alike, or in a hundred statements: twice as wide."""
    first = np.arange(25) % 2
    other = np.where(np.arange(25) % 5 == 0, 1 - first, first)
    alike = np.zeros((25, 2, 2))
    alike[np.arange(25), first, other] = 1
    wide, narrow = (clustered_kappa(each, seed=1) for each in (4 * alike, np.repeat(alike, 4, axis=0)))
    assert wide.value == pytest.approx(narrow.value)
    assert 1.8 < (wide.high - wide.low) / (narrow.high - narrow.low) < 2.4


def test_one_label_throughout_is_nothing_to_agree_on():
    assert clustered_kappa(np.tile([[0.7, 0.0], [0.0, 0.0]], (20, 1, 1)), n_boot=50, seed=0) is None


@pytest.mark.parametrize("true", [0.4, 0.8])
def test_the_interval_holds_the_truth_about_as_often_as_it_says(true):
    """Two labels of even odds, 100 statements of 3: 95 % of 200 samples, give or take three standard errors."""
    held = 0
    for seed in range(200):
        rng = np.random.default_rng([3, seed])
        first = rng.integers(0, 2, (100, 3))
        other = np.where(rng.random((100, 3)) < (1 + true) / 2, first, 1 - first)
        confusion = np.zeros((100, 2, 2))
        np.add.at(confusion, (np.arange(100)[:, None], first, other), 1)
        out = clustered_kappa(confusion, n_boot=300, seed=seed)
        held += out.low <= true <= out.high
    assert 0.89 <= held / 200 <= 0.99
