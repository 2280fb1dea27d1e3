"""Which event loops a test runs on: asyncio's, or those that ``pytest.mark.asyncio(loop_factories=...)`` names."""

import asyncio
from collections.abc import Callable, Mapping

import pytest
import uvloop

_LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}


def pytest_asyncio_loop_factories(
    config: pytest.Config,
    item: pytest.Item,
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Give asyncio's alone to a test that asks for no others."""
    marker = item.get_closest_marker("asyncio")
    wanted = marker.kwargs.get("loop_factories") if marker else None
    return _LOOPS if wanted else {"asyncio": _LOOPS["asyncio"]}
