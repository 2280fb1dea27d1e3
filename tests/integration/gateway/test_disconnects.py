"""A client that disconnects affects no other request, whenever it does so. Sockets and event loops are real.

The deployment is faultless, and everything runs in one event loop. The moment of a disconnect is therefore a number of
turns of that loop, which reaches the turn in which an answer ends: there a connection passes from one request to
another.
"""

import asyncio
import json
import tempfile
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import uvloop
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from support.servers.gateway_app import Served, served
from support.upstreams.scripted_upstream import scripted_upstream
from support.upstreams.upstream_answers import DONE, event, head, http_chunk, json_answer
from support.upstreams.upstream_requests import Asking, asking
from support.upstreams.upstream_wire import Request, Sleep, Step
from support.waiting import eventually

from auditor.domain.exchange import Outcome
from auditor.domain.keys import Key, hash_secret
from gateway.limits import key_limits
from gateway.routing import breaker
from gateway.routing.breaker import BreakerState
from gateway.shared import SharedTable

RUN: dict[str, Callable[[Coroutine[Any, Any, None]], None]] = {"asyncio": asyncio.run, "uvloop": uvloop.run}
LOOPS = [pytest.param("asyncio", marks=pytest.mark.slow), "uvloop"]
SECRET = "sk-limited"
CONCURRENCY = 3
#: The kernel decides what arrives in which turn, so that a smaller example may pass by chance: nothing is shrunk.
PHASES = [Phase.explicit, Phase.reuse, Phase.generate]


@dataclass(frozen=True)
class Plan:
    """One request of a client."""

    pause: int  #: turns of the loop before it is sent
    stream: bool
    pieces: int  #: in which the deployment sends the answer
    gap: int  #: turns between two pieces
    leaves_after: int | None  #: turns after it was sent; None: the client waits for the whole answer


plans = st.builds(
    Plan,
    pause=st.integers(0, 3),
    stream=st.booleans(),
    pieces=st.sampled_from([1, 1, 1, 2, 3]),  # a connection is passed on within one turn only where there is one
    gap=st.integers(0, 2),
    leaves_after=st.none() | st.integers(2, 8) | st.integers(0, 16),
)
traffic = st.lists(st.lists(plans, min_size=5, max_size=12), min_size=4, max_size=10)


def ask_for(plan: Plan, token: str) -> bytes:
    """Write a request that tells the deployment how to answer, and what to repeat."""
    message = {"role": "user", "content": token}
    how = {"stream": plan.stream, "pieces": plan.pieces, "gap": plan.gap}
    return json.dumps({"model": "m", "messages": [message], **how}).encode()


def repeat(request: Request) -> list[Step]:
    """Answer with what the request asks to have repeated, in the pieces that it asks for."""
    asked = request.payload
    token = asked["messages"][0]["content"]
    if asked["stream"]:
        events = [event({"choices": [{"delta": {"content": token}}]}), event({"choices": [{"finish_reason": "stop"}]})]
        framing = head(200, [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")])
        answer = framing + b"".join(map(http_chunk, (*events, DONE))) + b"0\r\n\r\n"
    else:
        (answer,) = json_answer({"choices": [{"message": {"content": token}}]})
    size = -(-len(answer) // asked["pieces"])
    steps: list[Step] = []
    for at in range(0, len(answer), size):
        steps += [answer[at : at + size], *[Sleep(0)] * asked["gap"]]
    return steps if asked["pieces"] > 1 else [answer]


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


# -- the upstream client ---------------------------------------------------------------------------------------------


async def send_directly(client: Asking, plan: Plan, token: str) -> str | None:
    """Send one request; return what went wrong with one whose client has stayed."""
    await turns(plan.pause)
    asked = asyncio.create_task(client.ask(client.request(body=ask_for(plan, token))))
    if plan.leaves_after is not None:
        await turns(plan.leaves_after)
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        return None
    told = await asked
    if told.failure is None and told.status == 200 and f'"{token}"'.encode() in told.body:
        return None
    return f"{token}: {told}"


async def ask_directly(clients: Sequence[Sequence[Plan]]) -> None:
    async def send_all(client: Asking, number: int) -> list[str | None]:
        return [await send_directly(client, plan, f"{number}-{nth}") for nth, plan in enumerate(clients[number])]

    async with scripted_upstream(repeat, keep=False) as up:
        async with asking("own", up.url) as client:
            faults = await asyncio.gather(*(send_all(client, number) for number in range(len(clients))))
            assert [fault for each in faults for fault in each if fault] == []
            # What is not given back is not given to the next request either.
            told = await client.ask(client.request(body=ask_for(Plan(0, False, 1, 0, None), "last")))
            assert (told.status, told.failure) == (200, None)
            await up.until(lambda up: len(up.connections) <= len(clients))
        await up.until(lambda up: not up.connections)


@pytest.mark.parametrize("loop", LOOPS)
@settings(max_examples=100, deadline=None, phases=PHASES)
@given(clients=traffic)
def test_a_request_that_is_given_up_affects_no_other(loop: str, clients: list[list[Plan]]) -> None:
    RUN[loop](ask_directly(clients))


# -- the gateway -----------------------------------------------------------------------------------------------------


async def send_through(gateway: Served, plan: Plan, token: str) -> str | None:
    """Send one request on a connection of its own; return what went wrong with one whose client has stayed."""
    await turns(plan.pause)
    host, _, port = gateway.url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    body = ask_for(plan, token)
    fields = f"host: h\r\nauthorization: Bearer {SECRET}\r\ncontent-length: {len(body)}\r\nconnection: close"
    writer.write(f"POST /v1/chat/completions HTTP/1.1\r\n{fields}\r\n\r\n".encode() + body)
    if plan.leaves_after is not None:
        await turns(plan.leaves_after)
        writer.transport.abort()
        return None
    heard = await reader.read()
    writer.close()
    if heard.startswith(b"HTTP/1.1 200 ") and f'"{token}"'.encode() in heard:
        return None
    return f"{token}: {heard!r}"


async def ask_through_gateway(clients: Sequence[Sequence[Plan]], folder: Path) -> None:
    key = Key(id="key_1", name="k", hash=hash_secret(SECRET), rpm=1_000_000, tpm=1_000_000, budget=1e6)
    staying = sum(plan.leaves_after is None for plans_of_one in clients for plan in plans_of_one)

    async def send_all(gateway: Served, number: int) -> list[str | None]:
        return [await send_through(gateway, plan, f"{number}-{nth}") for nth, plan in enumerate(clients[number])]

    async with scripted_upstream(repeat, keep=False) as up:
        deployment = {"name": "a", "base_url": up.url, "concurrency": CONCURRENCY, "price": {"input": 1, "output": 1}}
        routes = [{"model": "*", "deployments": ["a"]}]
        own = {"gateway": {"retries": 0}, "deployments": [deployment], "routes": routes}
        async with served(own, folder, keys=[key]) as gateway:
            faults = await asyncio.gather(*(send_all(gateway, number) for number in range(len(clients))))
            assert [fault for each in faults for fault in each if fault] == []
            await eventually(lambda: not gateway.counted("biasmeter_in_flight"))
            check_nothing_is_held(gateway, staying)
        await up.until(lambda up: not up.connections)


def check_nothing_is_held(gateway: Served, staying: int) -> None:
    exchanges = gateway.exchanges()
    assert {one.outcome for one in exchanges} <= {Outcome.COMPLETE, Outcome.CLIENT_GONE}
    assert sum(one.outcome is Outcome.COMPLETE for one in exchanges) >= staying
    assert gateway.counted("biasmeter_upstream_errors") == {}
    assert dict(gateway.gateway.slots.states()).get("a", BreakerState.CLOSED) is BreakerState.CLOSED
    assert gateway.gateway.slots.pending("a") == 0
    workers = gateway.gateway.config.gateway.workers
    table = SharedTable(gateway.folders.slots, breaker.WIDTH + workers)
    row = table.row("a")
    # Neither a slot nor a waiting request, and no failure among the outcomes that the breaker remembers.
    assert list(row[breaker.WIDTH :]) == [0] * workers
    assert row[1].bit_count() <= 1
    table.close()
    gateway.gateway.limits.return_leases()
    used = SharedTable(gateway.folders.limits, key_limits.WIDTH)
    reserved = sum(used.row("key_1")[key_limits.TOKENS.start + 1 : key_limits.TOKENS.stop])
    used.close()
    # What was reserved for a request has become what it has used; nothing else is left of it.
    # The deployment reports no usage.
    assert reserved == sum(one.request_bytes // 4 + one.response_bytes // 4 for one in exchanges)


@pytest.mark.parametrize("loop", LOOPS)
@settings(max_examples=30, deadline=None, phases=PHASES, suppress_health_check=[HealthCheck.too_slow])
@given(clients=traffic)
def test_a_client_that_disconnects_affects_no_other(loop: str, clients: list[list[Plan]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        RUN[loop](ask_through_gateway(clients, Path(folder)))
