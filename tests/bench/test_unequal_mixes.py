"""Two deployments that were asked the conditions unequally often: is one worse, by pooled rates and by pairs?

Prints the rows of "Before and after" in ``docs/validity.md``. Run by ``make measurements``, minutes on one core; a
scaled-down run is in ``tests/unit/metrics/test_paired.py``.
"""

import numpy as np
import pytest
from support.worlds.unequal_mixes import WORLDS, held_and_found, worse_by_overlap

from auditor.stats.contrasts import contrast

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]

AUDITS = 3000


@pytest.mark.parametrize("name", WORLDS)
def test_pairs_hold_their_level(name):
    world = WORLDS[name]
    truths = world.truths()
    difference = truths[1] - truths[0] if world.effect else 0.0
    audits = (world.audit(np.random.default_rng([5, seed])) for seed in range(AUDITS))
    weights = np.full(len(world.rates), 1 / len(world.rates))
    hits = []
    for first, second in audits:
        rate = contrast(second.events, second.trials, weights).interval()
        pooled = second.pooled - first.pooled
        standardised = rate.low <= truths[1] <= rate.high
        hits.append((worse_by_overlap(first, second), pooled, *held_and_found(first, second, difference), standardised))
    apart, pooled, held, found, standardised = np.mean(hits, axis=0)
    shares = (f"{share:.1%}" for share in (apart, found, held, standardised))
    print(f"\n| {name} | {100 * difference:+.1f} | {100 * pooled:+.1f} | {' | '.join(shares)} |")
    assert 0.935 <= held <= 0.995
    assert 0.93 <= standardised <= 0.98
    if not world.effect:
        assert found <= 0.065
