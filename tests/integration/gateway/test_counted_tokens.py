"""What counts against a key's tokens and budget, whatever a client says of usage and whenever it leaves."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.servers.gateway_app import Served, served
from support.upstreams.scripted_upstream import scripted_upstream
from support.upstreams.upstream_answers import events_of, json_answer, sse
from support.upstreams.upstream_wire import Act, Request, Step
from support.waiting import eventually

from auditor.domain.exchange import Outcome
from auditor.domain.keys import Key, hash_secret
from gateway.limits import key_limits
from gateway.shared import SharedTable

HEADERS = {"authorization": "Bearer secret"}
#: USD per million tokens: a token costs a hundredth.
PRICE = {"input": 1e4, "output": 1e4}
TEXT = "x" * 400


def settings(url: str, **deployment: Any) -> dict[str, Any]:
    row = {"name": "a", "base_url": url, "price": PRICE, **deployment}
    return {"gateway": {"retries": 0}, "deployments": [row], "routes": [{"model": "*", "deployments": ["a"]}]}


def written_slowly(request: Request) -> list[Step]:
    """Stream 400 bytes of text and wait, so that usage, which would follow, never comes."""
    role, text, *_ = events_of(request, [TEXT])
    return sse([role, text, Act.HANG])


async def leave_early(gateway: Served, **fields: Any) -> int:
    """Ask for a stream, read its text, and disconnect. Return the status."""
    payload = {"model": "m", "messages": [{"role": "user", "content": "hello"}], "stream": True, **fields}
    async with gateway.client.post(f"{gateway.url}/v1/chat/completions", json=payload, headers=HEADERS) as answer:
        received = b""
        while answer.status == 200 and TEXT.encode() not in received:
            received += await answer.content.readany()
        answer.close()
    await eventually(lambda: not gateway.counted("biasmeter_in_flight"))
    return answer.status


def used_tokens(gateway: Served) -> int:
    """Tokens of the key that count in this minute."""
    gateway.gateway.limits.return_leases()
    with closing(SharedTable(gateway.folders.limits, key_limits.WIDTH)) as table:
        return sum(table.row("key_1")[key_limits.TOKENS.start + 1 : key_limits.TOKENS.stop])


async def test_a_client_that_leaves_before_usage_pays_for_what_it_got(tmp_path: Path) -> None:
    key = Key(id="key_1", name="k", hash=hash_secret("secret"), budget=3.0)
    async with scripted_upstream(written_slowly) as up, served(settings(up.url), tmp_path, keys=[key]) as gateway:
        statuses = [await leave_early(gateway, stream_options={"include_usage": False}) for _ in range(5)]
        # Each answer has 400 bytes of text and more around it: 100 tokens and more, a USD and more.
        assert statuses[0] == 200
        assert statuses[3:] == [429, 429]
        kept = [exchange for exchange in gateway.exchanges() if exchange.status != 429]
        assert {exchange.outcome for exchange in kept} == {Outcome.CLIENT_GONE}
        paid = sum(exchange.request_bytes // 4 + exchange.response_bytes // 4 for exchange in kept) / 100
        last = (kept[-1].request_bytes // 4 + kept[-1].response_bytes // 4) / 100
        assert paid - last < 3.0 <= paid  # beyond the budget by less than the last answer


async def test_tokens_a_minute_end_for_a_client_that_leaves(tmp_path: Path) -> None:
    key = Key(id="key_1", name="k", hash=hash_secret("secret"), tpm=300)
    async with scripted_upstream(written_slowly) as up, served(settings(up.url), tmp_path, keys=[key]) as gateway:
        statuses = [await leave_early(gateway) for _ in range(4)]
        assert (statuses[0], statuses[-1]) == (200, 429)


@pytest.mark.parametrize(
    "options",
    [None, {}, {"include_usage": False}, {"include_usage": None}, {"include_usage": 0}, {"include_usage": "false"}],
)
@pytest.mark.parametrize("limit", [{"tpm": 100_000}, {"budget": 1e6}], ids=["tpm", "budget"])
async def test_a_key_with_such_a_limit_has_usage_asked_for_and_gets_none(
    tmp_path: Path, limit: dict[str, Any], options: Any
) -> None:
    key = Key(id="key_1", name="k", hash=hash_secret("secret"), **limit)
    async with scripted_upstream() as up, served(settings(up.url), tmp_path, keys=[key]) as gateway:
        answer = await gateway.chat("m", headers=HEADERS, stream=True, stream_options=options)
        assert answer.status == 200
        assert up.requests[0].include_usage
        assert b'"usage"' not in answer.body
        wanted = await gateway.chat("m", headers=HEADERS, stream=True, stream_options={"include_usage": True})
        assert b'"total_tokens"' in wanted.body
        first, second = gateway.exchanges()
        assert (first.prompt_tokens, first.completion_tokens) == (second.prompt_tokens, second.completion_tokens)
        assert first.completion_tokens


async def test_a_key_with_other_limits_is_obeyed(tmp_path: Path) -> None:
    key = Key(id="key_1", name="k", hash=hash_secret("secret"), rpm=100)
    async with scripted_upstream() as up, served(settings(up.url), tmp_path, keys=[key]) as gateway:
        await gateway.chat("m", headers=HEADERS, stream=True, stream_options={"include_usage": False})
        assert not up.requests[0].include_usage


def whole(_: Request) -> list[Step]:
    return json_answer({"choices": [{"message": {"content": TEXT}, "finish_reason": "stop"}]})


def streamed(request: Request) -> list[Step]:
    return sse(events_of(request, [TEXT]))


def with_an_error(request: Request) -> list[Step]:
    role, text, *_ = events_of(request, [TEXT])
    return sse([role, text, b'data: {"error":{"message":"broken"}}\n\n'])


@pytest.mark.parametrize("script", [whole, streamed, with_an_error])
@pytest.mark.parametrize("limit", [1, 10_000], ids=["little", "much"])
async def test_an_answer_without_usage_counts_by_its_bytes_or_by_what_was_reserved(
    tmp_path: Path, script: Callable[[Request], list[Step]], limit: int
) -> None:
    key = Key(id="key_1", name="k", hash=hash_secret("secret"), tpm=100_000)
    async with (
        scripted_upstream(script) as up,
        served(settings(up.url, stream_usage=False), tmp_path, keys=[key]) as gateway,
    ):
        await gateway.chat("m", headers=HEADERS, stream=script is not whole, max_tokens=limit)
        (kept,) = gateway.exchanges()
        assert kept.completion_tokens is None
        assert used_tokens(gateway) == kept.request_bytes // 4 + max(limit, kept.response_bytes // 4)


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("embeddings", {"data": [{"embedding": [0.5] * 500}]}),
        ("images/generations", {"data": [{"b64_json": "A" * 10_000}]}),
    ],
)
async def test_an_answer_that_is_no_text_counts_only_as_reported(tmp_path: Path, path: str, answer: Any) -> None:
    key = Key(id="key_1", name="k", hash=hash_secret("secret"), tpm=100_000)
    async with (
        scripted_upstream(lambda _: json_answer(answer)) as up,
        served(settings(up.url), tmp_path, keys=[key]) as gateway,
    ):
        body = b'{"model":"m","input":"hello","prompt":"a cat"}'
        headers = {**HEADERS, "content-type": "application/json"}
        async with gateway.client.post(f"{gateway.url}/v1/{path}", data=body, headers=headers) as response:
            assert response.status == 200
        assert used_tokens(gateway) == len(body) // 4
