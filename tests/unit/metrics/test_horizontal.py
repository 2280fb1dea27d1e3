"""The range over conditions: 0 where the truths are equal, found where they are not, with what is too thin left out."""

import numpy as np
import pytest
from support.worlds.equal_conditions import WORLDS, EqualConditions, range_holds_zero

from auditor.domain.estimate import Insufficient
from auditor.metrics.shares import horizontal_range


@pytest.mark.parametrize("name", WORLDS)
def test_equal_truths_have_a_range_that_contains_zero(name):
    """In 93 % of audits or more, though what is observed is a range above 0.

    ``make measurements`` has a thousand of each.
    """
    held, above = np.mean([range_holds_zero(WORLDS[name], seed, n_boot=300) for seed in range(100)], axis=0)
    assert held >= 0.93
    assert above >= 0.9


def test_unequal_truths_are_found():
    """Task formats as far apart as .10 and .55: every audit finds more than twenty points."""
    low, high = EqualConditions(conditions=5, rate=0.1), EqualConditions(conditions=1, rate=0.55)
    for seed in range(20):
        rng = np.random.default_rng([16, seed])
        (y, n), (y_high, n_high) = low.audit(rng), high.audit(rng)
        found = horizontal_range("abcdef", np.hstack([y, y_high]), np.hstack([n, n_high]), n_boot=300, seed=seed)
        assert found.max_at == "f"
        assert 0.2 < found.low <= found.high < 0.7


def test_a_level_with_few_statements_is_left_out_and_named():
    y, n = WORLDS["roles"].audit(np.random.default_rng(0))
    n[14:, 2], y[14:, 2] = 0, 0
    found = horizontal_range("abcdef", y, n, n_boot=100, seed=0)
    assert found.left_out == ("c",)
    assert found.n_statements == 200


def test_one_level_has_no_range():
    y, n = WORLDS["roles"].audit(np.random.default_rng(0))
    assert horizontal_range("a", y[:, :1], n[:, :1], n_boot=100, seed=0) == Insufficient(reason="one level")
