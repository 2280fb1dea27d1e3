"""Simulated audits whose statements lie in topics, or are crossed with users: do intervals over them hold the truth?

Run by ``make measurements``. A scaled-down run is in ``tests/unit/metrics/test_named_clusters.py``.
"""

import numpy as np
import pytest
from support.worlds.clustered_worlds import EVEN, UNEVEN, crossed, in_topics, truth

from auditor.metrics.estimate import estimate
from auditor.metrics.rates import METRICS

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]

AUDITS = 2000


@pytest.mark.parametrize("sizes", [EVEN, UNEVEN], ids=["even", "uneven"])
@pytest.mark.parametrize(("spread", "responses"), [(0.4, 4), (0.8, 1), (0.8, 4), (1.2, 4)])
def test_200_statements_in_16_topics_are_covered(sizes, spread, responses):
    true = truth(spread)
    hits, by_statement = dict.fromkeys(true, 0), 0
    for seed in range(AUDITS):
        statements, topics = in_topics(np.random.default_rng([31, seed]), sizes, spread, responses)
        for name, value in true.items():
            found = estimate(METRICS[name], topics)
            hits[name] += found.low <= value <= found.high
        found = estimate(METRICS["ber_union"], statements)
        by_statement += found.low <= true["ber_union"] <= found.high
    covered = {name: round(count / AUDITS, 3) for name, count in hits.items()}
    print(f"topics' SD {spread}, {responses} responses: {covered}; union by statement {by_statement / AUDITS:.3f}")
    assert min(covered.values()) >= 0.93
    # DNI, and IR of single responses, keep the standard error of independent responses at least.
    assert max(covered["ber_sel"], covered["ber_union"]) <= 0.97


@pytest.mark.parametrize("spread", [0.4, 0.8])
def test_statements_crossed_with_users_are_covered(spread):
    true = truth(spread)["ber_sel"]
    hits = 0
    for seed in range(AUDITS // 3):
        found = estimate(METRICS["ber_sel"], crossed(np.random.default_rng([32, seed]), 60, 30, spread))
        hits += found.low <= true <= found.high
    print(f"users' SD {spread}: {hits / (AUDITS // 3):.3f}")
    assert 0.93 <= hits / (AUDITS // 3) <= 0.975
