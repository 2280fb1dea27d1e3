"""Fixtures of tests with real processes: an installation on a migrated store, in front of a scripted upstream."""

import copy
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from support.servers.ports import held_port
from support.servers.product import Product, installation, settings
from support.stores.databases import Databases
from support.stores.postgres import execute, fetch
from support.upstreams import upstream_answers
from support.upstreams.scripted_upstream import ScriptedUpstream, scripted_upstream, upstream_process
from support.waiting import wait_until

#: The certificate of an authority whose key nobody has.
AUTHORITY = Path(__file__).with_name("nobody.pem")


def pytest_configure() -> None:
    """Trust that authority alone, here and in what is started: to load the system's takes longer than most requests."""
    os.environ.setdefault("SSL_CERT_FILE", str(AUTHORITY))


@pytest.fixture
async def upstream() -> AsyncIterator[ScriptedUpstream]:
    async with scripted_upstream(upstream_answers.by_model) as up:
        yield up


@pytest.fixture(scope="session")
def answering_url() -> Iterator[str]:
    """An upstream process that answers as a request's model is named, for whoever needs nothing else of it."""
    with upstream_process() as (url, _):
        yield url


@pytest.fixture
def product(upstream: ScriptedUpstream, tmp_path: Path, migrated_url: str) -> Iterator[Product]:
    with installation(tmp_path, settings(upstream.url), migrated_url) as made:
        yield made


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory, databases: Databases, answering_url: str) -> Iterator[Product]:
    """A gateway and an auditor that run for a whole module, in front of an upstream process."""
    with (
        databases.fresh() as url,
        installation(tmp_path_factory.mktemp("serving"), settings(answering_url, workers=1), url) as product,
        product.running("gateway"),
        product.running("auditor", until=r"listening on"),
    ):
        yield product


@pytest.fixture(scope="session")
def shared_gateway(tmp_path_factory: pytest.TempPathFactory, databases: Databases) -> Iterator[Product]:
    """A gateway that runs until the session ends. Each test starts its `shared_upstream` on the same port.

    Beside the usual two deployments it has two more, `left` and `right`, on a route and among the peers of `gpt`.
    """
    with held_port() as port, databases.fresh() as url:
        upstream_url = f"http://127.0.0.1:{port}/v1"
        made = settings(upstream_url, workers=1)
        made["deployments"] += [
            {"name": name, "base_url": upstream_url, "model": f"model-{name}"} for name in ("left", "right")
        ]
        made["routes"][0]["peers"] = ["left", "right"]
        made["routes"].insert(1, {"model": "pair", "deployments": ["left", "right"], "capture": "full"})
        with (
            installation(tmp_path_factory.mktemp("shared"), made, url) as product,
            product.running("gateway"),
        ):
            yield product


@pytest.fixture
async def shared_upstream(shared_gateway: Product) -> AsyncIterator[ScriptedUpstream]:
    """The upstream of the shared gateway, for one test."""
    port = urlsplit(shared_gateway.settings["deployments"][0]["base_url"]).port
    assert port is not None
    async with scripted_upstream(upstream_answers.by_model, port=port) as up:
        yield up


@pytest.fixture
def beside_gateway(shared_gateway: Product, shared_upstream: ScriptedUpstream, tmp_path: Path) -> Iterator[Product]:
    """An installation of the test's own on the shared gateway and its store, which is empty again after the test.

    What a test writes into its configuration is read by the auditor's commands alone: the gateway has its own.
    """
    assert shared_gateway.database_url is not None
    own = copy.deepcopy(shared_gateway.settings)
    (tmp_path / "data").symlink_to(shared_gateway.data_dir)
    with installation(tmp_path, own, shared_gateway.database_url) as product:
        yield product
    wait_until(lambda: shared_gateway.spooled() == 0)
    empty_store(shared_gateway.database_url)


def empty_store(url: str) -> None:
    """Remove what audits have stored: plans, exchanges and all that refers to them."""
    names = [row["tablename"] for row in fetch(url, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")]
    kept = ("chain", "alembic", "procrastinate", "biasmeter_jobs", "client_keys", "key_")
    execute(url, f"TRUNCATE {', '.join(name for name in names if not name.startswith(kept))} CASCADE")
