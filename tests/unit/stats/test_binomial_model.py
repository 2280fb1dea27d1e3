"""Logistic regression of counts: against statsmodels on the answers themselves, CR2 by its definition, separation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg
from support.lazy_imports import ImportedLater

from auditor.stats.binomial_model import BinomialCells, Fit, fit_binomial, independent_columns

sm = ImportedLater("statsmodels.api")

#: Intercept, two deployments and three tasks.
DESIGN = np.array([[1.0, d, t == 1, t == 2] for d in (0, 1) for t in (0, 1, 2)])


def drawn(seed: int, clusters: int = 25, rate: float = 0.4) -> BinomialCells:
    """Unbalanced answers whose clusters differ."""
    chance = np.random.default_rng(seed)
    cluster, row = (each.ravel() for each in np.indices((clusters, len(DESIGN))))
    trials = chance.integers(0, 4, len(row)).astype(float)
    trials[row == cluster % len(DESIGN)] += 1
    p = 1 / (1 + np.exp(-(np.log(rate / (1 - rate)) + 0.5 * DESIGN[row, 1] + chance.normal(0, 1, clusters)[cluster])))
    kept = trials > 0
    events = chance.binomial(trials.astype(int), p).astype(float)
    return BinomialCells(row=row[kept], cluster=cluster[kept], events=events[kept], trials=trials[kept])


def answers(counts: BinomialCells) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the design, the outcome and the cluster of each single answer."""
    times = counts.trials.astype(int)
    hits = [np.arange(n) < y for y, n in zip(counts.events, times, strict=True)]
    return DESIGN[np.repeat(counts.row, times)], np.concatenate(hits) * 1.0, np.repeat(counts.cluster, times)


@settings(max_examples=5)
@given(st.integers(0, 10_000))
def test_coefficients_are_those_of_statsmodels_on_single_answers(seed: int) -> None:
    counts = drawn(seed)
    x, y, _ = answers(counts)
    fitted = sm.GLM(y, x, family=sm.families.Binomial()).fit(tol=1e-12)
    assert fit_binomial(DESIGN, counts).beta == pytest.approx(fitted.params, abs=1e-7)


def test_scores_without_leverage_are_the_clustered_error_of_statsmodels() -> None:
    """With many clusters the adjustment vanishes."""
    counts = drawn(1, clusters=600)
    x, y, cluster = answers(counts)
    fitted = sm.GLM(y, x, family=sm.families.Binomial()).fit(
        cov_type="cluster", cov_kwds={"groups": cluster, "use_correction": False}
    )
    se, df, _ = fit_binomial(DESIGN, counts).estimate(np.eye(4))
    assert se == pytest.approx(fitted.bse, rel=0.01)
    assert (df > 300).all()


def test_the_adjustment_is_that_of_bell_and_mccaffrey_on_single_answers() -> None:
    """CR2 by its definition: residuals of each cluster times (I - H)^(-1/2), with matrices of all its answers."""
    counts = drawn(2, clusters=8)
    fit = fit_binomial(DESIGN, counts)
    x, y, cluster = answers(counts)
    mean = 1 / (1 + np.exp(-(x @ fit.beta)))
    root = np.sqrt(mean * (1 - mean))
    bread = np.linalg.inv((x * root[:, None] ** 2).T @ x)
    parts = []
    for label in np.unique(cluster):
        inside = cluster == label
        scaled = x[inside] * root[inside, None]
        adjust = linalg.fractional_matrix_power(np.eye(inside.sum()) - scaled @ bread @ scaled.T, -0.5)
        parts.append(bread @ scaled.T @ adjust @ ((y - mean)[inside] / root[inside]))
    assert fit.influence == pytest.approx(np.array(parts), abs=1e-6)


def test_balanced_clusters_have_one_degree_of_freedom_less_than_clusters() -> None:
    cluster, row = (each.ravel() for each in np.indices((30, len(DESIGN))))
    events = np.random.default_rng(0).integers(0, 2, len(row)).astype(float)
    counts = BinomialCells(row=row, cluster=cluster, events=events, trials=np.ones(len(row)))
    fit: Fit = fit_binomial(DESIGN, counts)
    assert fit.estimate(np.eye(4))[1] == pytest.approx(29, abs=1e-6)


def test_a_level_without_events_leaves_the_others_as_they_are() -> None:
    counts = drawn(3, clusters=100)
    none = np.where(DESIGN[counts.row, 2] == 1, 0.0, counts.events)
    fit = fit_binomial(DESIGN, BinomialCells(row=counts.row, cluster=counts.cluster, events=none, trials=counts.trials))
    kept = DESIGN[counts.row, 2] == 0
    rows = np.cumsum(DESIGN[:, 2] == 0) - 1
    alone = fit_binomial(
        DESIGN[DESIGN[:, 2] == 0][:, [0, 1, 3]],
        BinomialCells(
            row=rows[counts.row[kept]], cluster=counts.cluster[kept], events=none[kept], trials=counts.trials[kept]
        ),
    )
    assert fit.is_separated
    assert fit.beta[2] < -4
    assert fit.beta[[0, 1, 3]] == pytest.approx(alone.beta, abs=0.05)
    assert np.isfinite(fit.influence).all()


def test_answers_that_never_differ_are_refused() -> None:
    counts = drawn(4)
    with pytest.raises(ValueError, match="all answers are events, or none is"):
        fit_binomial(
            DESIGN, BinomialCells(row=counts.row, cluster=counts.cluster, events=counts.trials, trials=counts.trials)
        )


def test_later_columns_that_depend_on_earlier_ones_are_dropped() -> None:
    design = np.column_stack([DESIGN, DESIGN[:, 1], DESIGN[:, 0] - DESIGN[:, 2] - DESIGN[:, 3], np.zeros(6)])
    assert independent_columns(design).tolist() == [True] * 4 + [False] * 3
