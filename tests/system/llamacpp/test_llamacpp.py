"""llama.cpp's own server answers the unmodified OpenAI SDK, the same every time."""

import hashlib
import os
import signal
from pathlib import Path

import openai
import pytest
from support.clients.sdk_exercise import (
    TOKENS,
    async_sdk_client,
    chat_text,
    exercise_streaming,
    exercise_streaming_async,
    exercise_unary,
    exercise_unary_async,
    refused_path,
    refused_request,
    sdk_client,
    usages,
)
from support.models.tiny_gguf import CONTEXT, NAME, write_tiny_gguf
from support.servers.llamacpp import LlamaCpp, llamacpp_server
from support.servers.recording_proxy import recording_shim


@pytest.fixture
def client(llamacpp_url: str):
    with sdk_client(llamacpp_url) as running:
        yield running


def test_model_file_is_small_and_always_the_same(tmp_path: Path) -> None:
    paths = [tmp_path / "a.gguf", tmp_path / "b.gguf"]
    for path in paths:
        write_tiny_gguf(path)
    first, second = (hashlib.sha256(path.read_bytes()).digest() for path in paths)
    assert first == second
    assert paths[0].stat().st_size < 1_000_000


def test_unary(client: openai.OpenAI) -> None:
    got = exercise_unary(client, NAME)
    assert got.models == [NAME]
    assert got.text.strip()
    assert got.text.isprintable()
    assert got.chat["model"] == NAME
    assert got.chat["choices"][0]["finish_reason"] in {"stop", "length"}
    counts = got.chat["usage"]
    assert 0 < counts["completion_tokens"] <= TOKENS
    assert counts["total_tokens"] == counts["prompt_tokens"] + counts["completion_tokens"]
    assert got.completion["choices"][0]["text"].strip()
    assert [len(row["embedding"]) for row in got.embeddings["data"]] == [64, 64]
    assert got.response["output"][0]["content"][0]["text"].strip()
    assert exercise_unary(client, NAME) == got


def test_streaming_says_the_same_and_counts_it_where_asked(client: openai.OpenAI) -> None:
    got = exercise_streaming(client, NAME)
    whole = exercise_unary(client, NAME)
    assert chat_text(got.chat) == chat_text(got.chat_with_usage) == whole.text
    assert usages(got.chat) == []
    assert usages(got.chat_with_usage) == [whole.chat["usage"]]
    # In completions llama.cpp counts unasked, and in a chunk that has choices.
    assert usages(got.completion) == usages(got.completion_with_usage) == [whole.completion["usage"]]
    assert got.completion[-1]["choices"]
    assert got.chat_with_usage[-1]["choices"] == []
    assert [event["type"] for event in got.response][-1] == "response.completed"
    assert exercise_streaming(client, NAME) == got


async def test_asynchronous_client_receives_the_same(llamacpp_url: str) -> None:
    with sdk_client(llamacpp_url) as client:
        unary, streaming = exercise_unary(client, NAME), exercise_streaming(client, NAME)
    async with async_sdk_client(llamacpp_url) as client:
        assert await exercise_unary_async(client, NAME) == unary
        assert await exercise_streaming_async(client, NAME) == streaming


def test_answers_end_by_themselves_and_at_a_stop_word(client: openai.OpenAI) -> None:
    ask = [{"role": "user", "content": "Is it level?"}]
    whole = client.chat.completions.create(model=NAME, messages=ask, max_tokens=64).choices[0]
    assert whole.finish_reason == "stop"
    assert whole.message.content
    words = whole.message.content.split()
    cut = client.chat.completions.create(model=NAME, messages=ask, stop=[f" {words[3]}"]).choices[0]
    assert cut.message.content
    assert cut.message.content.split() == words[: words.index(words[3])]


def test_context_holds_a_long_prompt_and_refuses_a_longer_one(client: openai.OpenAI) -> None:
    # A character is a token here.
    fits = client.completions.create(model=NAME, prompt="x" * (CONTEXT - 100), max_tokens=4)
    assert fits.usage
    assert fits.usage.prompt_tokens > CONTEXT - 100
    with pytest.raises(openai.BadRequestError) as refused:
        client.completions.create(model=NAME, prompt="x" * (CONTEXT + 1), max_tokens=4)
    assert refused.value.type == "exceed_context_size_error"


def test_refusals_carry_the_servers_words(client: openai.OpenAI) -> None:
    bad, missing = refused_request(client, NAME), refused_path(client)
    assert (bad.kind, bad.status, bad.body["type"]) == ("BadRequestError", 400, "invalid_request_error")
    assert "messages" in bad.body["message"]
    assert (missing.kind, missing.status, missing.body["type"]) == ("NotFoundError", 404, "not_found_error")


async def test_passes_the_shim_cut_into_single_bytes(llamacpp: LlamaCpp) -> None:
    async with async_sdk_client(llamacpp.url) as client:
        direct = await exercise_streaming_async(client, NAME)
    async with recording_shim("127.0.0.1", llamacpp.port, segments=[1, 5, 2, 7]) as shim:
        async with async_sdk_client(shim.url) as client:
            assert await exercise_streaming_async(client, NAME) == direct
        answers = shim.responses
    assert [answer.complete for answer in answers] == [True] * 5
    assert [answer.body.endswith(b"data: [DONE]\n\n") for answer in answers] == [False, True, True, True, True]


def test_another_server_can_be_killed(tmp_path: Path) -> None:
    with llamacpp_server(tmp_path) as server, sdk_client(server.url) as client:
        assert [model.id for model in client.models.list()] == [NAME]
        os.kill(server.child.pid, signal.SIGKILL)
        assert server.child.process.wait(5) == -signal.SIGKILL
        with pytest.raises(openai.APIConnectionError):
            client.models.list()


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    (tmp_path / f"{NAME}.gguf").write_bytes(b"GGUF but not really")
    with pytest.raises(RuntimeError, match="before it was ready"), llamacpp_server(tmp_path):
        pass
