"""A thousand audits of conditions with equal truths: nothing may be found in them, more than once in fifteen or so.

Run by ``make measurements``. A scaled-down run is in ``tests/unit/metrics/test_horizontal.py``.
"""

import numpy as np
import pytest
from support.worlds.equal_conditions import WORLDS, range_holds_zero

from auditor.metrics.mitigation import mitigation_effects
from auditor.stats.comparisons import all_pairs, compare_rates

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]

AUDITS = 1000


@pytest.mark.parametrize("name", WORLDS)
def test_range_contains_zero(name):
    held, above = np.mean([range_holds_zero(WORLDS[name], seed) for seed in range(AUDITS)], axis=0)
    print(f"{name}: the interval contains 0 in {held:.1%}, the observed range is above 0 in {above:.1%}")
    assert held >= 0.93
    assert above >= 0.93


@pytest.mark.parametrize("name", WORLDS)
def test_no_pair_differs(name):
    wrong = 0
    for seed in range(AUDITS):
        y, n = WORLDS[name].audit(np.random.default_rng([14, seed]))
        wrong += compare_rates(y, n, all_pairs(WORLDS[name].conditions), n_boot=1000, seed=seed).p.min() <= 0.05
    print(f"{name}: a pair differs in {wrong / AUDITS:.1%}")
    assert wrong / AUDITS <= 0.07


@pytest.mark.parametrize("responses", [1, 20])
def test_no_role_mitigates(responses):
    """Both labels of every response; five roles that change nothing."""
    quiet, odds = 0, 7 / 3  # ICC .3
    levels = ("none", "sociologist", "military", "policy_maker", "data_scientist", "ai_ethicist")
    for seed in range(AUDITS):
        rng = np.random.default_rng([15, seed])
        own = rng.dirichlet(np.array([0.06, 0.08, 0.05, 0.81]) * odds, 200)
        counts = np.stack([rng.multinomial(responses, own) for _ in levels], axis=1).astype(float)
        found = mitigation_effects(levels, counts, baseline=0, n_boot=1000, seed=seed)
        quiet += all(each.verdict == "no reduction" for each in found)
    print(f"{responses} responses: no reduction by any role in {quiet / AUDITS:.1%}")
    assert quiet / AUDITS >= 0.93
