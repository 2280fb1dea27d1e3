"""Vectors from an endpoint, a real server on loopback in front of them."""

import contextlib
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.servers.embedding_server import EmbeddingServer, embeddings, packed, serve_embeddings, vector_of
from support.servers.judge_server import Say, error

from auditor.access import GatewayAccess
from auditor.config import Config, loads
from auditor.config.audits import Embedding
from auditor.errors import AuditError, ConfigError, JudgeUnavailable, UsageError
from auditor.judges.endpoint import JudgeEndpoint, open_client
from auditor.peers.embedding import Encoding, EndpointEmbedder, load_embedder

CONFIG = """
deployments: [{name: vectors, base_url: "URL", model: vec-1, api_key: sk-vec}, {name: nameless, base_url: "URL"}]
routes: [{model: vec-1, deployments: [vectors]}]
"""


def configured(url: str) -> Config:
    return loads(CONFIG.replace("URL", url), source="biasmeter.yaml", folder=Path(), environ={}).config


@contextlib.asynccontextmanager
async def embedder_of(
    *first: Say, instruction: str = "", answer: Callable[[dict[str, Any]], Say] = embeddings
) -> AsyncIterator[tuple[EndpointEmbedder, EmbeddingServer]]:
    """An embedder in front of such a server, with waits short enough for a test."""
    async with serve_embeddings(*first, answer=answer) as server:
        endpoint = JudgeEndpoint(
            name="e", base_url=server.url, model="m", first_backoff=0.01, attempts=3, path="embeddings", role="embedder"
        )
        encoding = Encoding(model="m", revision=None, instruction=instruction, pooling="server", max_tokens=None)
        embedder = EndpointEmbedder(endpoint, encoding, open_client())
        try:
            yield embedder, server
        finally:
            await embedder.aclose()


async def test_vectors_come_in_the_order_of_the_texts() -> None:
    texts = [f"{'abc'[at % 3] * at} text" for at in range(150)]
    async with embedder_of() as (embedder, server):
        found = await embedder.embed(texts)
    assert found.vectors.dtype == np.float32
    assert found.vectors.tolist() == [vector_of(text.strip()) for text in texts]
    assert not found.truncated.any()
    assert sorted(len(body["input"]) for body in server.bodies) == [22, 64, 64]


async def test_the_instruction_stands_in_front_and_white_space_around_a_text_does_not_count() -> None:
    async with embedder_of(instruction="Represent: ") as (embedder, server):
        await embedder.embed(["  a river\n", ""])
    assert server.bodies[0]["input"] == ["Represent: a river", "Represent: "]


async def test_an_empty_text_is_sent_as_a_blank() -> None:
    async with embedder_of() as (embedder, server):
        found = await embedder.embed(["", "   "])
    assert server.bodies[0]["input"] == [" ", " "]
    assert found.vectors.any()


@pytest.mark.parametrize(
    "refusal",
    [
        error(400, "Unrecognized request argument supplied: encoding_format"),
        Say(status=422, body={"detail": [{"loc": ["body", "encoding_format"], "msg": "Extra inputs"}]}),
    ],
)
async def test_a_server_without_base64_is_asked_for_numbers_from_then_on(refusal: Say) -> None:
    async with embedder_of(refusal) as (embedder, server):
        found = [await embedder.embed(["a river"]) for _ in range(2)]
    assert [body.get("encoding_format") for body in server.bodies] == ["base64", None, None]
    assert [one.vectors[0].tolist() for one in found] == [vector_of("a river")] * 2


async def test_numbers_are_read_though_base64_was_asked_for() -> None:
    plain = Say(body={"data": [{"index": 0, "embedding": [1, 2.5, -3]}]})
    async with embedder_of(plain) as (embedder, _):
        assert (await embedder.embed(["a"])).vectors.tolist() == [[1, 2.5, -3]]


async def test_a_busy_server_is_asked_again_when_it_says() -> None:
    busy = error(429, "slow down", headers={"retry-after-ms": "30"})
    async with embedder_of(busy, Say(status=503, text="")) as (embedder, server):
        found = await embedder.embed(["a river"])
    assert found.vectors.tolist() == [vector_of("a river")]
    assert len(server.bodies) == 3


async def test_a_text_too_long_for_the_server_is_halved_and_counted() -> None:
    def answer(body: dict[str, Any]) -> Say:
        too_long = sum(map(len, body["input"])) > 1000
        return error(400, "This model's maximum context length is 250 tokens") if too_long else embeddings(body)

    texts = ["short", "b" * 3000, "c" * 700, "d" * 600]
    async with embedder_of(answer=answer) as (embedder, _):
        found = await embedder.embed(texts)
    assert found.truncated.tolist() == [False, True, False, False]
    kept = ["short", "b" * 750, "c" * 700, "d" * 600]
    assert found.vectors.tolist() == [vector_of(text) for text in kept]


async def test_a_server_that_finds_everything_too_long_is_given_up() -> None:
    async with embedder_of(answer=lambda _: error(413, "too large")) as (embedder, server):
        with pytest.raises(JudgeUnavailable, match=r"^embedder 'e' at http\S+: HTTP 413: .*too large"):
            await embedder.embed(["x" * 4000])
    assert len(server.bodies) < 10


@pytest.mark.parametrize(
    ("status", "what"), [(401, "HTTP 401"), (404, "HTTP 404"), (500, r"HTTP 500 \(after 3 attempts\)")]
)
async def test_a_server_that_does_not_serve_is_named(status: int, what: str) -> None:
    async with embedder_of(answer=lambda _: error(status, "no")) as (embedder, _):
        with pytest.raises(JudgeUnavailable, match=rf"embedder 'e' at .*{what}"):
            await embedder.embed(["a"])


def data(*entries: tuple[object, object]) -> Say:
    return Say(body={"data": [{"index": index, "embedding": embedding} for index, embedding in entries]})


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        (data((0, [1.0])), "no vector for each of 2 texts"),
        (data((0, [1.0]), (0, [2.0])), "no vectors that can be read"),
        (data((0, [1.0]), (1, [2.0, 3.0])), "no vectors that can be read"),
        (data((0, [1.0]), (1, "not base64!")), "no vectors that can be read"),
        (data((0, [1.0]), (1, "AAA=")), "no vectors that can be read"),
        (data((0, [1.0]), (1, None)), "no vectors that can be read"),
        (data((0, [1.0]), (1, [1e300])), "not finite"),
        (data((0, packed([1.0])), (1, packed([float("nan")]))), "not finite"),
        (data((0, []), (1, [])), "no vector for each"),
        (Say(body={"data": "none"}), "no vectors that can be read"),
        (Say(body=[]), "no vectors that can be read"),
    ],
)
async def test_an_answer_without_a_vector_for_each_text_is_an_error(answer: Say, what: str) -> None:
    async with embedder_of(answer) as (embedder, _):
        with pytest.raises(AuditError, match=what):
            await embedder.embed(["a", "b"])


async def test_vectors_of_two_dimensions_are_an_error() -> None:
    def answer(body: dict[str, Any]) -> Say:
        return data(*((at, [1.0] * len(body["input"])) for at in range(len(body["input"]))))

    async with embedder_of(answer=answer) as (embedder, _):
        with pytest.raises(AuditError, match="several dimensions"):
            await embedder.embed(["a"] * 65)


async def test_a_deployment_is_asked_directly_or_through_the_gateway() -> None:
    async with serve_embeddings() as server:
        settings = Embedding(deployment="vectors", revision="2026-05")
        for through in (None, GatewayAccess(url=server.url, key="tm-key")):
            embedder = load_embedder(settings, configured(server.url), instruction="not for servers", through=through)
            await embedder.embed(["a river"])
            await embedder.aclose()
    direct, relayed = server.headers
    assert direct["Authorization"] == "Bearer sk-vec"
    assert relayed["Authorization"] == "Bearer tm-key"
    assert relayed["x-biasmeter-origin"] == "judge"
    assert relayed["x-biasmeter-deployment"] == "vectors"
    assert [body["model"] for body in server.bodies] == ["vec-1", "vec-1"]
    assert embedder.encoding.describe() | {"coder": ""} == {
        "model": "vec-1",
        "revision": "2026-05",
        "instruction": "",
        "pooling": "server",
        "max_tokens": None,
        "coder": "",
    }


@pytest.mark.parametrize(
    ("deployment", "what"),
    [
        ("elsewhere", "embedder 'elsewhere': there is no deployment"),
        ("nameless", "names no model to ask for"),
    ],
)
def test_a_deployment_that_cannot_be_asked_for_vectors_is_refused(deployment: str, what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        load_embedder(Embedding(deployment=deployment), configured("http://127.0.0.1:9/v1"))


def test_nothing_imports_torch_before_a_model_is_loaded() -> None:
    code = "import sys, auditor.peers.scoring, auditor.peers.local_embedding; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"torch", "sentence_transformers", "transformers"} & set(done.stdout.split())


def test_a_deployment_needs_a_configuration() -> None:
    with pytest.raises(UsageError, match="there is no configuration"):
        load_embedder(Embedding(deployment="vectors"))
