"""A thousand audits of known shares of variance: how often the intervals hold them.

Run by ``make measurements``. A scaled-down run is in ``tests/unit/metrics/test_shares.py``.
"""

import pytest
from support.worlds.share_worlds import WORLDS, coverage

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]


@pytest.mark.parametrize("name", WORLDS)
def test_share_intervals_hold_the_truth(name):
    found = coverage(WORLDS[name], audits=1000, n_boot=1000)
    for effect, (share, held) in found.items():
        print(f"{name}: {effect} {share:.4f} held in {held:.1%}")
    assert all(held >= 0.93 for _, held in found.values())
