"""An error of the gateway itself, at any call of an exchange: it ends that exchange, leaks nothing and costs no other.

The error is raised at the n-th call into the gateway's exchanges, for each n until all calls pass. The clients and the
deployment are real sockets.
"""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import aiohttp
import pytest
from support.servers.gateway_app import Served, served
from support.upstreams.scripted_upstream import scripted_upstream

import gateway.exchange
from auditor.domain.ids import new_id_text
from auditor.domain.keys import Key, hash_secret
from gateway.exchange.forwarder import Forwarder

SECRET = "sk-bias-one"
FOLDER = str(Path(gateway.exchange.__file__).parent)
#: What the event loop calls itself, and what ends an exchange after an error: an error there is a second one.
OUTERMOST = {
    "_check", "_flush", "_flush_later", "_run", "answered", "began", "broken", "end_broken", "ended", "failed",
    "forget", "guard", "log_failure", "on_due", "received", "take",
}  # fmt: skip


class InjectedFault(Exception):  # noqa: N818 -- it stands for any
    """The error."""


@contextmanager
def fault_at(number: int) -> Iterator[list[str]]:
    """Raise at a call of a function of `FOLDER`; the list then has its name."""
    left = number
    at: list[str] = []

    def count(frame: FrameType, event: str, _: Any) -> None:
        nonlocal left
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(FOLDER) or code.co_name in OUTERMOST or at:
            return
        left -= 1
        if left == 0:
            at.append(code.co_qualname)
            raise InjectedFault(code.co_qualname)

    sys.setprofile(count)
    try:
        yield at
    finally:
        sys.setprofile(None)


async def ask(served_: Served, model: str, *, stream: bool) -> int:
    """Return the status of an answer; 0: the connection has ended before or in it."""
    with suppress(aiohttp.ClientError):
        headers = {"authorization": f"Bearer {SECRET}", "x-request-id": new_id_text(1)}
        answer = await served_.chat(model, headers=headers, stream=stream)
        assert answer.headers["x-request-id"] == headers["x-request-id"]
        return answer.status
    return 0


def held(served_: Served) -> dict[str, Any]:
    """What exchanges hold."""
    forwarder = served_.server.cache
    assert isinstance(forwarder, Forwarder)
    return {
        "in flight": served_.counted("biasmeter_in_flight"),
        "slots": served_.gateway.slots.pending("a"),
        "deadlines": list(forwarder._parts.deadlines._due),
        "connections": [one for one in served_.gateway.pool._open if one._follower is not None],
        "clients": served_.server.is_busy,
    }


FREE = {"in flight": {}, "slots": 0, "deadlines": [], "connections": [], "clients": False}


@pytest.mark.parametrize(
    "stream", [pytest.param(False, id="whole"), pytest.param(True, id="stream", marks=pytest.mark.slow)]
)
async def test_an_error_at_any_call_leaks_nothing_and_costs_no_other(stream: bool, tmp_path: Path) -> None:
    key = Key(id="key_1", name="k", hash=hash_secret(SECRET), rpm=1_000_000, tpm=1_000_000, budget=1e6)
    faults: dict[str, str] = {}
    async with scripted_upstream(keep=False) as up:
        settings = {
            "gateway": {"retries": 0},
            "deployments": [{"name": "a", "base_url": up.url, "concurrency": 10}],
            "routes": [{"model": "*", "deployments": ["a"], "capture": "full"}],
        }
        async with served(settings, tmp_path, keys=[key]) as gateway_:
            for _ in range(4):  # the head is known then
                assert await ask(gateway_, "m", stream=stream) == 200
            for number in range(1, 1000):
                with fault_at(number) as at:
                    try:
                        async with asyncio.timeout(5):
                            statuses = await asyncio.gather(*(ask(gateway_, "m", stream=stream) for _ in range(3)))
                    except TimeoutError:
                        statuses = []
                if not at:
                    break
                await asyncio.sleep(0)
                try:
                    async with asyncio.timeout(5):
                        while held(gateway_) != FREE:  # noqa: ASYNC110 -- counters are no event
                            await asyncio.sleep(0.001)
                except TimeoutError:
                    faults[at[0]] = str({k: v for k, v in held(gateway_).items() if v != FREE[k]})
                    break
                if sum(status == 200 for status in statuses) < 2:
                    faults[at[0]] = str(statuses)
            else:
                raise AssertionError("there is no end of calls")
    assert faults == {}
