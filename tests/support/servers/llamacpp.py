"""A real OpenAI-compatible server that nobody here wrote: llama.cpp with a tiny random model.

A pytest plugin: the fixture `llamacpp_url` is its base URL, for the whole test session. `llamacpp_server` starts
another one where a test wants to kill it.
"""

import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.models.tiny_gguf import NAME, write_tiny_gguf
from support.servers.child_processes import Child, child_process

#: measured: a few hundredths of a second; a loaded machine may take long
READY_WITHIN_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaCpp:
    """A running server."""

    url: str
    child: Child
    log: Path
    model: str = NAME

    @property
    def port(self) -> int:
        """Its port on 127.0.0.1."""
        return int(self.url.split(":")[2].split("/")[0])


@contextmanager
def llamacpp_server(folder: Path) -> Iterator[LlamaCpp]:
    """Make the model in `folder` unless it is there, and serve it until the block ends."""
    model, log = folder / f"{NAME}.gguf", folder / "llamacpp.log"
    if not model.exists():
        write_tiny_gguf(model)
    with child_process(["-m", "support.servers.llamacpp_process", str(model), str(log)], log=log) as child:
        root = child.hello["url"]
        _wait_until_healthy(root)
        yield LlamaCpp(url=f"{root}/v1", child=child, log=log)


def _wait_until_healthy(root: str) -> None:
    until = time.monotonic() + READY_WITHIN_S
    while True:
        try:
            with urllib.request.urlopen(f"{root}/health", timeout=5) as answer:
                assert answer.status == 200
                return
        except (urllib.error.URLError, ConnectionError):
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


@pytest.fixture(scope="session")
def llamacpp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaCpp]:
    """Serve the tiny model for the whole session."""
    with llamacpp_server(tmp_path_factory.mktemp("llamacpp")) as server:
        yield server


@pytest.fixture(scope="session")
def llamacpp_url(llamacpp: LlamaCpp) -> str:
    """Give the base URL of llama.cpp's server; the model is `tiny_gguf.NAME`."""
    return llamacpp.url
