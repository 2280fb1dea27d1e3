"""The promise of the detectors, at full size: 2,000 deployments that never change, watched daily for 90 days.

Shocks and anchor: see tests/support/worlds/drift_worlds.py.
"""

from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
import pytest
from support.worlds.drift_worlds import NEVER, WORLDS, World, watched

DEPLOYMENTS = 2000

pytestmark = [pytest.mark.bench, pytest.mark.timeout(3600)]


def first_pages(world: World, *, anchored: bool) -> np.ndarray:
    with ProcessPoolExecutor() as pool:
        return np.array(list(pool.map(partial(watched, world, anchored=anchored), range(DEPLOYMENTS), chunksize=25)))


@pytest.mark.parametrize("anchored", [False, True])
@pytest.mark.parametrize("name", list(WORLDS))
def test_at_most_one_in_twenty_is_ever_paged(name, anchored):
    share = float((first_pages(WORLDS[name], anchored=anchored) < NEVER).mean())
    print(f"\nworld {name}, {'with' if anchored else 'without'} an anchor: {share:.4f} of {DEPLOYMENTS} ever paged")
    assert share <= 0.05


@pytest.mark.parametrize(("shift", "anchored", "most"), [(0.05, True, 7), (0.10, True, 3), (0.05, False, 10)])
def test_a_change_is_told_within_days(shift, anchored, most):
    world = World(kept=0.5, shift=shift)
    pages = first_pages(world, anchored=anchored)
    found = pages[pages >= world.shift_on] - world.shift_on + 1
    middle, late = np.median(found), np.quantile(found, 0.9)
    beside = "with" if anchored else "without"
    print(f"\n+{100 * shift:.0f} points, {beside} an anchor: {middle:.0f} days, 90 %: {late:.0f}")
    assert middle <= most
