"""Settings of the whole test suite. Shared fixtures are in the plugin modules beside this file."""

import gc
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from support.paths import TESTS

# As the commands do it, and before anything imports numpy.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Some environments forbid it: then each of the hundreds of processes would compile the whole product again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Hundreds of databases and installations are made and thrown away: in memory, where there is room for them.
MEMORY, ROOM = Path("/dev/shm"), 4 << 30
HAS_MEMORY = MEMORY.is_dir() and not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC
if "TMPDIR" not in os.environ and HAS_MEMORY and shutil.disk_usage(MEMORY).free > ROOM:
    os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)

# What is collected stays: looking for cycles in it takes a quarter of the collection.
gc.disable()

pytest_plugins = [
    "support.costs",
    "support.stores.postgres",
    "support.stores.databases",
    "support.servers.llamacpp",
    "support.servers.product_fixtures",
    "support.gateway_fixtures",
]

#: The lanes in the order in which they run: what waits for processes begins, so that no slow file is left for the end.
LANES = ("slow", "system", "integration", "unit", "bench")

#: Examples of one property in the quick profile; a test that asks for fewer keeps its own number.
QUICK = 15

# quick: the same few examples in every run. full (CI): all, the same in every run. random: new ones, as
# docs/development.md says.
# A loaded machine is slow at random moments, which says nothing about the product: no deadline, no check of speed.
_PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", _PATIENT, derandomize=True, database=None, max_examples=QUICK)
settings.register_profile("full", _PATIENT, derandomize=True, database=None)
settings.register_profile("random", _PATIENT, print_blob=True)
settings.load_profile("quick")


@pytest.fixture(scope="session")
def thorough(request: pytest.FixtureRequest) -> bool:
    """Whether all examples are wanted (`make test-all`), for tests that draw their own."""
    return request.config.getoption("--hypothesis-profile") == "full"


def pytest_collection_finish() -> None:
    """Keep what was collected out of every later collection of cycles: ten thousand tests, and all they import."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_unconfigure() -> None:
    """Give what was kept out back, so that libraries find nothing of theirs left at the end."""
    gc.unfreeze()


def lane_of(item: pytest.Item) -> str:
    """Return the folder of `tests` that a test lies in."""
    return item.path.relative_to(TESTS).parts[0]


@pytest.hookimpl(tryfirst=True)  # before tests are selected by their marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with the lanes that wait; reduce the examples of tests that ask for more than the quick profile has."""
    items.sort(key=lambda item: LANES.index(lane_of(item)))
    for item in items:
        if lane_of(item) == "slow":
            item.add_marker("slow")
    if config.getoption("--hypothesis-profile") not in {None, "quick"}:
        return
    for item in items:
        test = getattr(getattr(item, "obj", None), "__func__", getattr(item, "obj", None))
        chosen = getattr(test, "_hypothesis_internal_use_settings", None)
        if chosen is not None and chosen.max_examples > QUICK and item.get_closest_marker("bench") is None:
            test._hypothesis_internal_use_settings = settings(chosen, max_examples=QUICK)
