"""A thousand replays of declared truth: how often a chosen score's interval holds it, and what is found in nothing.

Run by ``make measurements``. A scaled-down run is in ``tests/unit/replay/test_replay_exposure.py``.
"""

from itertools import combinations

import pytest
from support.worlds.replay_groups import WORLDS, coverage

from replay.comparison.pairs import COMPARED, adjusted_p_values

pytestmark = [pytest.mark.bench, pytest.mark.timeout(1800)]

REPLAYS = 1000


@pytest.mark.parametrize("name", WORLDS)
def test_intervals_hold_the_declared_lowest_highest_and_range(name):
    held = coverage(WORLDS[name], draws=REPLAYS, n_boot=1000)
    print(f"{name}: " + ", ".join(f"{what} {share:.1%}" for what, share in held.items()))
    assert min(held.values()) >= 0.93


@pytest.mark.parametrize("name", ["equal", "equal, own", "equal, few"])
def test_nothing_is_found_in_equal_truths(name):
    """All pairs of sides and all scores at once: something in seven of a hundred replays at the most."""
    wrong = 0
    for seed in range(REPLAYS):
        arms = WORLDS[name].draw(seed)
        pairs = combinations(range(len(arms.names)), 2)
        compared = [(*pair, score) for pair in pairs for score in COMPARED]
        wrong += min(adjusted_p_values(arms, compared, n_boot=500, seed=seed).values()) <= 0.05
    print(f"{name}: something differs in {wrong / REPLAYS:.1%}")
    assert wrong / REPLAYS <= 0.07
