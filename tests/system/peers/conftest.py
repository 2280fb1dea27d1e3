"""Peers are asked through a gateway that tests share, whose upstream each test scripts."""

import pytest
from support.servers.product import Product
from support.upstreams.scripted_upstream import ScriptedUpstream


@pytest.fixture
def upstream(shared_upstream: ScriptedUpstream) -> ScriptedUpstream:
    """The upstream of the shared gateway."""
    return shared_upstream


@pytest.fixture
def product(beside_gateway: Product) -> Product:
    """The auditor's configuration, on a gateway that runs."""
    return beside_gateway
