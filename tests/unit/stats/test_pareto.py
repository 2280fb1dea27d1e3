"""The frontier against its definition, and against what the paper lists."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from auditor.stats.pareto import frontier_shares, pareto_frontier

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
