"""Intervals of directions and response styles hold the truth, and answers without a style are seldom flagged.

Run by ``make measurements``; prints what docs/estimates.md says.
"""

import numpy as np
import pytest

from auditor.stats.contrasts import contrast

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]

SAMPLES = 1000


@pytest.mark.parametrize("statements", [15, 30, 120])
@pytest.mark.parametrize("responses", [1, 4])
def test_a_difference_of_two_rates_is_covered(statements, responses):
    """Rates of claim and counter claim from the middle to the extremes, without and with differences of statements."""
    found = {}
    for first, second in ((0.5, 0.5), (0.3, 0.1), (0.02, 0.02), (0.98, 0.6), (0.995, 0.995)):
        for icc in (0.0, 0.3):
            hits = 0
            for seed in range(SAMPLES):
                rng = np.random.default_rng([11, statements, responses, seed])
                rates = np.tile([first, second], (statements, 1))
                if icc:
                    scale = (1 - icc) / icc
                    rates = rng.beta(rates * scale, (1 - rates) * scale)
                y = rng.binomial(responses, rates).astype(float)
                hits += (
                    contrast(y, np.full_like(y, responses), np.array([1.0, -1.0])).interval().contains(first - second)
                )
            found[first, second, icc] = hits / SAMPLES
    print(f"{statements} statements, {responses} responses: {found}")
    assert min(found.values()) >= 0.93
