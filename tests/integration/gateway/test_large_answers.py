"""Answers made to cost time: each ends, and while one is worked on the others are answered."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.servers.gateway_app import Served, served
from support.upstreams.scripted_upstream import ScriptedUpstream, scripted_upstream
from support.upstreams.upstream_answers import DONE, event, json_answer, ordinary, sse
from support.upstreams.upstream_wire import CLOSE, Request, Steps
from support.upstreams.upstream_wire import Outcome as Sent
from support.waiting import eventually

from auditor.domain.exchange import Outcome

#: Costs redaction the most for each of its bytes.
COSTLY = "password=1a2b3c4d "
MIB = 1 << 20


def costly(request: Request) -> Steps:
    """An answer that takes redaction long; ordinary ones for other models."""
    if request.model != "costly":
        return ordinary(request)
    text = COSTLY * (MIB // len(COSTLY))
    choices = [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]
    return json_answer({"choices": choices, "usage": {"prompt_tokens": 1, "completion_tokens": 2}})


def many_terminators(_: Request) -> Steps:
    """One event of many lines that each look like the terminator."""
    return sse([b"data: [DONE]\n" * (MIB // 20) + b"\n" + event({"choices": [{"finish_reason": "stop"}]}) + DONE])


def long_last_event(_: Request) -> Steps:
    """The last event of a response repeats an answer of some MiB."""
    response = {"status": "completed", "output": "lorem ipsum\n" * (7 * MIB // 13), "usage": {"input_tokens": 3}}
    completed = json.dumps({"response": response, "type": "response.completed"}).encode()
    return sse([b"event: response.completed\ndata: " + completed + b"\n\n"])


def endless_list(request: Request) -> Steps:
    if not request.path.endswith("/models"):
        yield from ordinary(request)
        return
    yield b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n" + b'{"data": ['
    for _ in range(64):
        yield b'{"id": "a"},' * (MIB // 12)
    yield CLOSE


@pytest.fixture
async def upstream() -> AsyncIterator[ScriptedUpstream]:
    async with scripted_upstream() as up:
        yield up


@pytest.fixture
async def gateway(upstream: ScriptedUpstream, tmp_path: Path) -> AsyncIterator[Served]:
    settings = {
        "deployments": [{"name": "a", "base_url": upstream.url}],
        "routes": [{"model": "*", "deployments": ["a"], "capture": "full"}],
    }
    async with served(settings, tmp_path) as made:
        yield made


async def test_many_terminators_in_one_event_take_linear_time(gateway: Served, upstream: ScriptedUpstream) -> None:
    upstream.script = many_terminators
    answer = await gateway.chat("m", stream=True)
    assert answer.body.endswith(DONE)
    assert answer.body.count(b"[DONE]") == MIB // 20 + 1
    assert [exchange.outcome for exchange in gateway.exchanges()] == [Outcome.COMPLETE]


def uses_thread() -> bool:
    return any(thread.name.startswith("large copies") for thread in threading.enumerate())


async def test_a_large_copy_is_redacted_apart_and_stored_before_its_answer_ends(
    gateway: Served, upstream: ScriptedUpstream
) -> None:
    upstream.script = costly
    assert (await gateway.chat("small")).status == 200
    assert not uses_thread()
    assert (await gateway.chat("costly")).status == 200
    assert uses_thread()
    small, large = gateway.exchanges()
    assert (small.model, large.model) == ("small", "costly")
    assert large.redacted
    assert large.response is not None
    assert b"1a2b3c4d" not in large.response
    assert gateway.counted("biasmeter_capture")["stored",] == 2


async def test_a_client_that_leaves_costs_no_record_of_a_large_copy(
    gateway: Served, upstream: ScriptedUpstream
) -> None:
    upstream.script = costly
    asking = [asyncio.create_task(gateway.chat("costly")) for _ in range(5)]
    await upstream.until(lambda up: all(one.outcome is Sent.SENT for one in up.requests) and len(up.requests) == 5, 60)
    for one in asking:
        one.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    await eventually(lambda: not gateway.gateway.recorder.counters.get(("biasmeter_in_flight", "client")))
    await gateway.gateway.recorder.finish()
    assert [exchange.model for exchange in gateway.exchanges()] == ["costly"] * 5


async def test_a_long_last_event_is_read_apart(gateway: Served, upstream: ScriptedUpstream) -> None:
    upstream.script = long_last_event
    payload = {"model": "m", "input": "hello", "stream": True}
    async with gateway.client.post(f"{gateway.url}/v1/responses", json=payload) as answer:
        body = await answer.read()
    assert len(body) > 7 * MIB
    assert uses_thread()
    kept = gateway.exchanges()
    assert [(one.outcome, one.finish_reason, one.prompt_tokens) for one in kept] == [(Outcome.COMPLETE, "completed", 3)]


async def test_a_list_of_models_without_end_is_not_read_to_its_end(gateway: Served, upstream: ScriptedUpstream) -> None:
    upstream.script = endless_list
    async with gateway.client.get(f"{gateway.url}/v1/models") as answer:
        assert answer.status == 502
        error = (await answer.json())["error"]
    assert error["code"] == "upstream_protocol"
    assert "larger than 4194304 bytes" in error["message"]
    assert (await gateway.chat("m")).status == 200
