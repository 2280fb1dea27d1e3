"""Rates against tokens: recipes and the frontier by their definitions, their support, and the paper's own choices."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from auditor.domain.estimate import Insufficient
from auditor.metrics.tradeoff import BALANCED, CONSTRAINED, frontier_shares, pareto_frontier, token_tradeoff

STATEMENTS = 100


def steady(rates, tokens, statements=STATEMENTS, n_boot=20):
    """Every statement answers alike, so that rates are known."""
    y = np.tile(np.array(rates) * 1000, (statements, 1))
    return token_tradeoff(
        [str(index) for index in range(len(rates))], y, np.full_like(y, 1000), np.array(tokens), n_boot=n_boot, seed=1
    )


planes = st.lists(st.tuples(st.integers(1, 8), st.integers(1, 8)), min_size=2, max_size=8)


@settings(deadline=None)
@given(planes)
def test_recipes_are_what_their_rules_say(plane):
    rates, tokens = [rate / 16 for rate, _ in plane], [float(cost) for _, cost in plane]
    found = steady(rates, tokens)
    chosen = {recipe.use: int(recipe.name) for recipe in found.recipes}
    assert rates[chosen["max_reduction"]] == min(rates)
    needed = max(rates) - BALANCED * (max(rates) - min(rates))
    cheapest = min(cost for rate, cost in zip(rates, tokens, strict=True) if rate <= needed)
    assert tokens[chosen["balanced"]] == cheapest
    assert rates[chosen["balanced"]] <= needed
    affordable = [rate for rate, cost in zip(rates, tokens, strict=True) if cost <= CONSTRAINED * min(tokens)]
    assert rates[chosen["cost_constrained"]] == min(affordable)
    assert tokens[chosen["cost_constrained"]] <= CONSTRAINED * min(tokens)


@settings(deadline=None)
@given(planes)
def test_recipes_lie_on_the_frontier(plane):
    found = steady([rate / 16 for rate, _ in plane], [float(cost) for _, cost in plane])
    frontier = {option.name for option in found.options if option.on_frontier}
    assert {recipe.name for recipe in found.recipes} <= frontier
    assert all(recipe.support == 1 for recipe in found.recipes)
    assert all(option.frontier_share == option.on_frontier for option in found.options)


def test_support_falls_where_conditions_hardly_differ():
    """Two conditions of one rate, each on other statements, share the support; one far off is never chosen."""
    stances = np.arange(200) % 5
    y = np.stack([stances, stances[::-1], np.full(200, 4)], axis=1).astype(float)
    found = token_tradeoff(["a", "b", "c"], y, np.full_like(y, 4), np.ones(3), n_boot=500, seed=0)
    lowest = next(recipe for recipe in found.recipes if recipe.use == "max_reduction")
    assert lowest.name == "a"
    assert 0.4 < lowest.support < 0.6
    shares = {option.name: option.frontier_share for option in found.options}
    assert shares["c"] == 0
    assert shares["a"] + shares["b"] == pytest.approx(1, abs=0.1)


def test_the_paper_s_recipes_and_costs():
    """Tables XIV and XV: rates against tokens; the same three choices, 3.4, 3.2 and 1.6 times CTO's tokens."""
    names = ["CTO", "SC", "BJ", "BJ + ai_ethicist", "BJ + negative"]
    y = np.tile(np.array([675.0, 178, 104, 24, 279]), (200, 1))
    found = token_tradeoff(names, y, np.full_like(y, 1000), np.array([8.2, 12.7, 26.4, 28.1, 25.9]), n_boot=10, seed=0)
    assert {recipe.use: recipe.name for recipe in found.recipes} == {
        "max_reduction": "BJ + ai_ethicist",
        "balanced": "BJ",
        "cost_constrained": "SC",
    }
    options = {option.name: option for option in found.options}
    costs = [options[name].cost for name in ("BJ + ai_ethicist", "BJ", "SC")]
    assert costs == pytest.approx((3.4, 3.2, 1.6), abs=0.055)
    # 85 % and 96 % of CTO's rate are gone.
    assert [options[name].reduction for name in ("BJ", "BJ + ai_ethicist")] == pytest.approx((0.85, 0.96), abs=0.005)
    assert [name for name in names if not options[name].on_frontier] == ["BJ + negative"]


def test_no_recipe_on_few_statements():
    assert steady([0.5, 0.2], [1.0, 2.0], statements=99) == Insufficient(
        reason="fewer than two conditions with 100 statements"
    )
    y, n = np.ones((120, 3)), np.full((120, 3), 4.0)
    n[:30, 2] = y[:30, 2] = 0
    found = token_tradeoff(["a", "b", "c"], y, n, np.ones(3), n_boot=5, seed=0)
    assert found.left_out == ("c",)
    assert (len(found.options), found.n_statements) == (2, 120)


def test_nothing_to_reduce():
    assert steady([0.0, 0.0], [1.0, 2.0]) == Insufficient(reason="no response endorses under any condition")


@pytest.mark.parametrize("tokens", [[1.0, 0.0], [1.0, np.nan]])
def test_tokens_are_known_and_positive(tokens):
    with pytest.raises(ValueError, match="positive"):
        steady([0.5, 0.2], tokens)


grids = st.integers(1, 12).flatmap(lambda n: arrays(np.float64, (n, 2), elements=st.integers(0, 4).map(float)))


def dominates(one, other):
    return all(one <= other) and any(one < other)


@given(grids)
def test_the_frontier_is_what_nothing_dominates(costs):
    kept = pareto_frontier(costs)
    assert kept.any()
    for option, row in enumerate(costs):
        beaten = any(dominates(other, row) for other in costs)
        assert kept[option] == (not beaten)


@given(grids)
def test_what_is_off_the_frontier_is_beaten_by_something_on_it(costs):
    kept = pareto_frontier(costs)
    for row in costs[~kept]:
        assert any(dominates(other, row) for other in costs[kept])


@given(grids, st.randoms(use_true_random=False))
def test_order_and_units_do_not_matter(costs, random):
    order = list(range(len(costs)))
    random.shuffle(order)
    assert (pareto_frontier(costs[order]) == pareto_frontier(costs)[order]).all()
    assert (pareto_frontier(costs * [3.0, 0.5] + [1.0, 7.0]) == pareto_frontier(costs)).all()


@given(st.integers(1, 6), st.integers(1, 8), st.integers(0, 2**32))
def test_shares_count_the_draws_in_which_an_option_is_kept(draws, options, seed):
    rng = np.random.default_rng(seed)
    replicates, cost = rng.integers(0, 4, (draws, options)) / 4, rng.integers(0, 4, options).astype(float)
    kept = [pareto_frontier(np.stack([rates, cost], axis=1)) for rates in replicates]
    assert frontier_shares(replicates, cost) == pytest.approx(np.mean(kept, axis=0))


def test_frontier_of_the_paper_has_the_cheapest_configuration_too():
    """F-E2 lists SC, BJ and BJ + ai_ethicist; nothing is cheaper than CTO, so nothing dominates it."""
    costs = np.array([[0.675, 8.2], [0.178, 12.7], [0.104, 26.4], [0.024, 28.1], [0.279, 25.9]])
    assert pareto_frontier(costs).tolist() == [True, True, True, True, False]


def test_an_unknown_cost_is_refused():
    with pytest.raises(ValueError, match="unknown"):
        pareto_frontier(np.array([[0.1, np.nan]]))
