"""A thousand simulated audits: do the intervals contain the truth as often as they say?

G = 100 statements, ICC .3, rates of .05 to .5. Run by ``make measurements``; prints what the choice of intervals in
``auditor.metrics.estimate`` rests on. A scaled-down run is in ``tests/unit/metrics/test_estimate.py``.
"""

import numpy as np
import pytest
from scipy.stats import beta
from support.worlds.audit_worlds import World, any_world

from auditor.metrics.estimate import estimate
from auditor.metrics.rates import METRICS
from auditor.metrics.shares import horizontal_range

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]

AUDITS = 1000
COVERED = ("ber_sel", "ber_elab", "ber_union", "ber_union_full", "ir", "dni", "ir_over_union")


@pytest.mark.parametrize(
    ("responses", "uneven"), [(1, False), (4, False), (20, False), (20, True)], ids=["1", "4", "20", "1-20"]
)
def test_nominal_95_covers_93_to_97(responses, uneven):
    hits = dict.fromkeys(COVERED, 0)
    for seed in range(AUDITS):
        rng = np.random.default_rng([7, responses, seed])
        world = any_world(rng, responses=responses, uneven=uneven)
        table, truth = world.audit(rng), world.truth()
        for name in COVERED:
            out = estimate(METRICS[name], table)
            hits[name] += out.low <= truth[name] <= out.high
    covered = {name: count / AUDITS for name, count in hits.items()}
    print(f"{responses} responses a statement{' at most' if uneven else ''}: {covered}")
    assert min(covered.values()) >= 0.93
    assert max(covered.values()) <= 0.97


@pytest.mark.parametrize("rate", [0.005, 0.015, 0.03])
@pytest.mark.parametrize("responses", [1, 4, 20])
def test_rare_rates_warn_and_do_not_undercover(rate, responses):
    """One deployment with p < .05: flagged, and its bounds hold at least as often as they say."""
    world = World(shares=(rate / 2, rate / 2, rate / 2, 1 - 1.5 * rate), responses=responses, uneven=responses == 20)
    truth = world.truth()
    hits, warned = dict.fromkeys(("ber_sel", "dni"), 0), 0
    for seed in range(AUDITS // 2):
        table = world.audit(np.random.default_rng([8, responses, seed]))
        found = {name: estimate(METRICS[name], table) for name in hits}
        for name, out in found.items():
            hits[name] += out.low <= truth[name] <= out.high
        warned += "low_rate" in found["ber_sel"].flags
    covered = {name: count / (AUDITS // 2) for name, count in hits.items()}
    print(f"rate {rate}, {responses} responses: {covered}, warned {warned / (AUDITS // 2)}")
    assert min(covered.values()) >= 0.95
    assert warned / (AUDITS // 2) >= 0.75


@pytest.mark.parametrize("truths", [[0.3] * 12, [0.1] * 21, [0.1, 0.2, 0.3, 0.5], [0.07, 0.56, 0.33, 0.1, 0.1, 0.15]])
def test_range_over_conditions_is_honest(truths):
    """Equal truths: the interval holds 0. Unequal ones: it holds the true range."""
    true, hits, levels = max(truths) - min(truths), 0, [str(index) for index in range(len(truths))]
    for seed in range(AUDITS // 2):
        rng = np.random.default_rng([9, seed])
        # A statement stands at the same place among all statements under every condition; ICC .3.
        place, p = rng.uniform(size=(100, 1)), np.array(truths)
        y = rng.binomial(4, beta.ppf(place, p * 7 / 3, (1 - p) * 7 / 3)).astype(float)
        out = horizontal_range(levels, y, np.full_like(y, 4), n_boot=1000, seed=seed)
        hits += out.low <= true <= out.high
    print(f"{len(truths)} conditions, true range {true:.2f}: {hits / (AUDITS // 2)}")
    assert hits / (AUDITS // 2) >= 0.93
