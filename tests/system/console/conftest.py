"""A running console on a real store, and a browser. Tests here are synchronous: see ``browsers.chromium``.

``site`` is open, as on a loopback address, and seeded once for all tests of a module, which must not change what others
read. ``open_site`` is the same on an empty store of the test's own. ``guarded`` is on one too, and asks for a key, as
beyond this machine.
"""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page
from support.clients.browsers import CHROMIUM, chromium, opened
from support.servers.console import Console, console, later, seed
from support.stores.audited_store import configuration
from support.stores.databases import Databases
from support.stores.postgres import copied_database


@pytest.fixture(scope="session")
def seeded_database(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of a database with answers and estimates of two deployments, to be copied."""
    with databases.fresh() as url:
        seed(url, configuration(tmp_path_factory.mktemp("seeded")))
        yield urlsplit(url).path.removeprefix("/")


@pytest.fixture(scope="module")
def site(postgres_server: str, seeded_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    """The console on a loopback address, with answers and estimates of two deployments."""
    config = configuration(tmp_path_factory.mktemp("site"))
    with copied_database(postgres_server, seeded_database) as url, console(url, config, later) as served:
        yield served


@pytest.fixture
def guarded(migrated_url: str, tmp_path: Path) -> Iterator[Console]:
    """The console as beyond this machine, on an empty store."""
    with console(migrated_url, configuration(tmp_path), later, loopback=False) as served:
        yield served


@pytest.fixture
def open_site(migrated_url: str, tmp_path: Path) -> Iterator[Console]:
    """The console on a loopback address, on an empty store of the test's own."""
    with console(migrated_url, configuration(tmp_path), later) as served:
        yield served


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no chromium here")
    with chromium() as started:
        yield started


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page of 1440 px in light colours; ``browsers.opened`` makes others."""
    with opened(browser) as made:
        yield made
