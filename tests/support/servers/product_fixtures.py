"""Fixtures of tests with real processes: an installation on a migrated store, in front of a scripted upstream."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from support.servers.product import Product, installation, settings
from support.stores.databases import Databases
from support.upstreams import upstream_answers
from support.upstreams.scripted_upstream import ScriptedUpstream, scripted_upstream, upstream_process


@pytest.fixture
async def upstream() -> AsyncIterator[ScriptedUpstream]:
    async with scripted_upstream(upstream_answers.by_model) as up:
        yield up


@pytest.fixture
def product(upstream: ScriptedUpstream, tmp_path: Path, migrated_url: str) -> Iterator[Product]:
    with installation(tmp_path, settings(upstream.url), migrated_url) as made:
        yield made


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory, databases: Databases) -> Iterator[Product]:
    """A gateway and an auditor that run for a whole module, in front of an upstream process."""
    with (
        databases.fresh() as url,
        upstream_process() as (upstream_url, _),
        installation(tmp_path_factory.mktemp("serving"), settings(upstream_url), url) as product,
        product.running("gateway"),
        product.running("auditor", until=r"listening on"),
    ):
        yield product
