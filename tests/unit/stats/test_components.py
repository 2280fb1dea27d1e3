"""Variance components: those of the analysis of variance where the design is balanced; what templates add to rates."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.stats.components import RESIDUAL, common_component, variance_components
from auditor.stats.sampled_templates import TemplateCounts, template_variance


def crossed(seed, *shape):
    rng = np.random.default_rng(seed)
    y = (rng.random(shape) < rng.uniform(0.2, 0.8, (shape[0], *[1] * (len(shape) - 1)))).astype(float)
    return y, [each.ravel() for each in np.indices(shape)]


@given(st.integers(0, 2**32), st.integers(3, 8), st.integers(2, 6))
def test_balanced_components_are_those_of_the_analysis_of_variance(seed, statements, templates):
    y, (statement, template) = crossed(seed, statements, templates)
    found = variance_components(
        y.ravel(), np.ones(y.size), {"s": statement, "t": template}, np.zeros(y.size, dtype=int)
    )
    grand, rows, columns = y.mean(), y.mean(axis=1), y.mean(axis=0)
    rest = ((y - rows[:, None] - columns + grand) ** 2).sum() / ((statements - 1) * (templates - 1))
    of_rows = templates * ((rows - grand) ** 2).sum() / (statements - 1)
    of_columns = statements * ((columns - grand) ** 2).sum() / (templates - 1)
    expected = {"s": (of_rows - rest) / templates, "t": (of_columns - rest) / statements, RESIDUAL: rest}
    assert found == pytest.approx(expected, abs=1e-12)


@given(st.integers(0, 2**32))
def test_strata_are_compared_within(seed):
    """Rates of conditions may be far apart: components do not see it."""
    y, (statement, template) = crossed(seed, 12, 4)
    stratum = (template >= 2).astype(int)
    found = variance_components(y.ravel(), np.ones(y.size), {"s": statement, "t": template}, stratum)
    parts = []
    for own in (stratum == 0, stratum == 1):
        factors = {"s": statement[own], "t": template[own]}
        parts.append(variance_components(y.ravel()[own], np.ones(24), factors, np.zeros(24, dtype=int)))
    for name in ("s", "t"):
        assert found[name] == pytest.approx(np.mean([part[name] for part in parts]), abs=1e-12)


def test_draws_separate_the_interaction_from_the_residual():
    y, (statement, template, _) = crossed(1, 6, 4, 3)
    sums = y.sum(axis=2)
    found = variance_components(
        sums.ravel(), np.full(24, 3.0), {"s": statement[::3], "t": template[::3]}, np.zeros(24, dtype=int)
    )
    within = y.var(axis=2, ddof=1).mean()
    assert found[RESIDUAL] == pytest.approx(within)
    assert "s:t" in found


def test_a_nested_design_has_no_component_of_its_interaction():
    statement = np.arange(30)
    y = (np.random.default_rng(0).random(30) < 0.4).astype(float)
    found = variance_components(y, np.ones(30), {"s": statement, "t": statement % 5}, np.zeros(30, dtype=int))
    assert set(found) == {"t", RESIDUAL}


def test_what_strata_have_in_common_is_their_covariance():
    y = np.array([1.0, 1, 0, 0, 1, 1, 0, 0])
    unit, stratum = np.tile(np.arange(4), 2), np.repeat([0, 1], 4)
    assert common_component(y, np.ones(8), unit, stratum) == pytest.approx(0.25)
    assert common_component(y, np.ones(8), np.arange(8), stratum) is None


def counts_of(y, statement, template, column):
    return TemplateCounts(
        y=y, n=np.ones_like(y), statement=statement, template=template, column=column, stratum=np.zeros_like(column)
    )


def test_a_rate_has_its_component_over_the_number_of_templates():
    y, (statement, template) = crossed(3, 40, 5)
    found = template_variance(counts_of(y.ravel(), statement, template, np.zeros(200, dtype=int)))
    component = variance_components(y.ravel(), np.ones(200), {"s": statement, "t": template}, np.zeros(200, dtype=int))[
        "t"
    ]
    assert found.extra[0, 0] == pytest.approx(max(0, component) / 5)
    assert (found.df[0], found.n_templates[0], found.borrowed[0]) == (4, 5, 0)
    assert found.between[0, 0] == pytest.approx(y.mean(axis=0).var(ddof=1) / 5)


def test_the_effect_of_shared_templates_cancels_in_a_difference():
    """Two columns over the same templates, which move both alike."""
    rng = np.random.default_rng(0)
    p = np.clip(0.5 + 0.3 * rng.standard_normal(8), 0.05, 0.95)
    y = (rng.random((60, 8, 2)) < p[:, None]).astype(float)
    statement, template, column = (each.ravel() for each in np.indices(y.shape))
    shared = template_variance(counts_of(y.ravel(), statement, template, column))
    apart = template_variance(counts_of(y.ravel(), statement, template + 8 * column, column))
    pair = np.array([0]), np.array([1])
    assert shared.pair_variance(*pair)[0] < 0.1 * apart.pair_variance(*pair)[0]


def test_one_template_everywhere_says_nothing_of_templates():
    y, (statement, _) = crossed(0, 20, 1)
    zero = np.zeros(20, dtype=int)
    assert template_variance(counts_of(y.ravel(), statement, zero, zero)) is None


def test_each_statement_in_a_template_of_its_own_needs_nothing_more():
    """Then the variance by statements has the templates' in it."""
    y = (np.random.default_rng(0).random(60) < 0.4).astype(float)
    found = template_variance(counts_of(y, np.arange(60), np.arange(60), np.zeros(60, dtype=int)))
    assert found.extra[0, 0] == 0


def test_draws_have_the_covariance():
    y, (statement, template) = crossed(3, 40, 10)
    column = (template >= 5).astype(int)
    found = template_variance(counts_of(y.ravel(), statement, template, column))
    draws = found.noise(20_000, 0)
    assert np.cov(draws.T) == pytest.approx(found.extra, abs=2e-4)
