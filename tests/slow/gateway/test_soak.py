"""A minute of the soak that `tests/bench/test_soak.py` runs for ten."""

import random
from pathlib import Path

import pytest
from support.servers.process_memory import growth
from support.servers.soak import Plan, soak


async def test_a_minute_of_bad_weather_leaves_nothing_behind(tmp_path: Path, migrated_url: str) -> None:
    # That is some two thousand requests a worker: a leak of 5 KiB in each of them shows, a smaller one may not.
    soaked = await soak(tmp_path, migrated_url, Plan(warm_up=30, measured=40, growth=10))
    assert soaked.faults() == [], soaked.report()


@pytest.mark.parametrize("leak", [0.0, 5.0, 15.0])
def test_a_leak_shows_under_what_batches_take_and_give_back(leak: float) -> None:
    for seed in range(50):
        chance = random.Random(seed)
        held = [58 + leak * at / 40 + chance.choice([0, 0, 2, 4, 9]) for at in range(41)]
        gained = growth([(float(at), size) for at, size in enumerate(held)]).gained
        assert gained == pytest.approx(leak, abs=4)
