"""Sequential verdicts on peers at full size: 2,000 packs of 400 questions, looked at after every one.

Run by ``make measurements``. A scaled-down run is in ``tests/unit/peers/test_sequential.py``.
"""

from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
import pytest
from support.worlds.peer_worlds import BOUNDARY, CHINA, UNEVEN, US, World, peeked, shares

PACKS = 2000

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]


def outcomes(world: World) -> list:
    with ProcessPoolExecutor() as pool:
        return list(pool.map(partial(peeked, world), range(PACKS), chunksize=50))


def found_in(name: str, world: World) -> dict:
    found = shares(outcomes(world))
    for reading, share in found.items():
        print(f"{name}, {reading}: equivalent {share.equivalent:.2%}, different {share.different:.2%}")
    return found


@pytest.mark.parametrize("name", BOUNDARY)
def test_at_the_boundary_either_verdict_is_rare(name):
    found = found_in(name, BOUNDARY[name])
    for reading in ("bets", "sequence"):
        assert found[reading].equivalent <= 0.05
        assert found[reading].different <= 0.05
    assert found["naive"].equivalent + found["naive"].different > 0.1


@pytest.mark.parametrize("name", UNEVEN)
def test_bets_promise_the_same_of_uneven_values(name):
    found = found_in(name, UNEVEN[name])
    assert max(found["bets"].equivalent, found["bets"].different) <= 0.05
    # What asymptotics rest on is not there: the confidence sequence errs more often than it says.
    assert max(found["sequence"].equivalent, found["sequence"].different) > 0.05


@pytest.mark.parametrize(
    ("name", "world", "verdict", "most"), [("China", CHINA, "different", 20), ("US", US, "equivalent", 140)]
)
def test_time_to_verdict(name, world, verdict, most):
    found = outcomes(world)
    assert {one.bets[0] for one in found} == {verdict}
    for reading in ("bets", "sequence"):
        after = [getattr(one, reading)[1] for one in found]
        print(f"{name}, {reading}: {np.median(after):.0f} questions, 90 %: {np.quantile(after, 0.9):.0f}")
    print(f"{name}, naive: {np.median([one.naive_after for one in found]):.0f} questions")
    assert np.median([one.bets[1] for one in found]) <= most
