"""A small disk, both ways of redaction, and event loops: asyncio's, or those that ``pytest.mark.asyncio`` names."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
import uvloop
from support.c_extensions import compiled
from support.stores.small_disks import mounted

from gateway.recording.redaction import search

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


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 64 KiB."""
    with mounted(tmp_path / "disk", "size=64k") as disk:
        yield disk


@pytest.fixture(scope="module", params=["python", "c"])
def both_searches(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Redaction by Python alone, and then with its optional C, compiled here."""
    module = compiled("_prefilter", tmp_path_factory.mktemp("compiled")) if request.param == "c" else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "may_hold", module and module.may_hold)
        yield
