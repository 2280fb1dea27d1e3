"""What is said when a deployment cannot be asked, and that nothing then holds on to the request."""

import gc
import sys
from collections.abc import Iterator

import pytest
from support.servers.ports import free_port
from support.upstreams.scripted_upstream import scripted_upstream
from support.upstreams.upstream_answers import ANSWERS
from support.upstreams.upstream_requests import IMPLEMENTATIONS, UpstreamRequest

from gateway.errors import UpstreamFailed

pytestmark = pytest.mark.asyncio(loop_factories=["asyncio", "uvloop"])


@pytest.fixture
def uncollected() -> Iterator[None]:
    """Cycles stay until they are looked for, as they do for long in a worker."""
    gc.disable()
    yield
    gc.enable()


async def refusal(implementation: str, url: str, body: bytes) -> str:
    """Ask what cannot be asked; give the error's code."""
    upstream = IMPLEMENTATIONS[implementation]()
    try:
        ask = UpstreamRequest(url=f"{url}/chat/completions", headers={}, body=body, connect_timeout=5)
        answer = await upstream.send(ask)
        while await answer.read():
            pass
    except UpstreamFailed as error:
        return error.code
    finally:
        await upstream.close()
    raise AssertionError("it was answered")


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize(
    ("way", "code"),
    [
        ("refused", "upstream_connect"),
        ("unknown-host", "upstream_dns"),
        ("close-at-once", "upstream_reset"),
        ("reset-at-once", "upstream_reset"),
        ("not-http", "upstream_protocol"),
        ("cut-unary", "upstream_cut"),
    ],
)
async def test_a_request_that_failed_is_let_go_at_once(
    uncollected: None, implementation: str, way: str, code: str
) -> None:
    body = b'{"model": "%s"}' % way.encode()
    held = sys.getrefcount(body)
    async with scripted_upstream(ANSWERS.get(way, ANSWERS["ordinary"])) as up:
        elsewhere = {"refused": f"http://127.0.0.1:{free_port()}", "unknown-host": "http://unknown.invalid"}
        assert await refusal(implementation, elsewhere.get(way, up.url), body) == code
    assert sys.getrefcount(body) == held
