"""Two thousand simulated captures of traffic: do weighted intervals contain the truth as often as they say?

Run by ``make measurements``; prints the figures of ``docs/design/2026-11-23-interval-coverage.md``. A scaled-down run
is in ``tests/unit/metrics/test_weights.py``.
"""

from dataclasses import replace

import numpy as np
import pytest
from support.worlds.traffic_worlds import Traffic

from auditor.domain.estimate import Estimate
from auditor.metrics.estimate import estimate
from auditor.metrics.rates import METRICS

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]

CAPTURES = 2000
COVERED = ("ber_sel", "ber_union", "ir", "dni")
WORLDS = {
    "one request a user": Traffic(users=800, requests=1),
    "users of one route": Traffic(),
    "users of both routes": Traffic(mixed=True),
    "30 requests a user": Traffic(users=100, requests=30, mixed=True),
    "a third of the traffic": Traffic(users=2000, biased=1 / 3),
    "sample .02": Traffic(users=1500, samples=(1.0, 0.02)),
}


@pytest.mark.parametrize("name", WORLDS)
def test_weighted_intervals_cover_93_to_97(name):
    world = WORLDS[name]
    truth, hits, unweighted, known, worth = world.truth(), dict.fromkeys(COVERED, 0), 0, 0, []
    for seed in range(CAPTURES):
        table = world.capture(np.random.default_rng([14, seed]))
        found = {metric: estimate(METRICS[metric], table) for metric in COVERED}
        if not all(isinstance(each, Estimate) for each in found.values()):
            continue
        known += 1
        worth.append(found["ber_sel"].n_effective)
        for metric, each in found.items():
            hits[metric] += each.low <= truth[metric] <= each.high
        plain = estimate(METRICS["ber_sel"], replace(table, weight=None))
        unweighted += plain.low <= truth["ber_sel"] <= plain.high
    covered = {metric: round(count / known, 3) for metric, count in hits.items()}
    print(
        f"{name}: {known} estimates, n_effective {np.mean(worth):.0f}, {covered}, unweighted {unweighted / known:.3f}"
    )
    assert min(covered.values()) >= 0.93
    assert max(covered.values()) <= 0.975
