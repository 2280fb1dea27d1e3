"""Probes are sent through one gateway, whose upstream each test scripts."""

import pytest
from support.upstreams.scripted_upstream import ScriptedUpstream


@pytest.fixture
def upstream(shared_upstream: ScriptedUpstream) -> ScriptedUpstream:
    """The upstream of the shared gateway, and of a gateway that a test starts itself."""
    return shared_upstream
