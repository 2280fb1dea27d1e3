"""Make vectors at an OpenAI-compatible ``/v1/embeddings``, with the waits and retries of a judge's endpoint.

Some servers reject ``encoding_format``, some a batch with one long text, some an empty text. The embedder adapts to
each error, so that every text gets a vector.
"""

import base64
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import httpx2
import numpy as np

from auditor.access import GatewayAccess
from auditor.config import Config
from auditor.config.audits import Embedding
from auditor.errors import AuditError, JudgeUnavailable
from auditor.judges.endpoint import EndpointClient, JudgeEndpoint, open_client
from auditor.judges.loading import reach_deployment
from auditor.peers.embedding import Embedded, Encoding, Matrix, check_vectors
from auditor.peers.together import run_together

#: Texts, and their characters, that go into one request.
_MOST_TEXTS: Final = 64
_MOST_CHARACTERS: Final = 200_000
#: A batch of this many characters is not split further.
_SHORTEST: Final = 64
#: Sent in place of an empty text, because servers reject "".
_BLANK: Final = " "


class EndpointEmbedder:
    """A model at an endpoint, asked in batches."""

    def __init__(self, endpoint: JudgeEndpoint, encoding: Encoding, client: httpx2.AsyncClient) -> None:
        self.encoding = encoding
        self._server = EndpointClient(endpoint, client)
        self._format: str | None = "base64"

    async def aclose(self) -> None:
        """Close the connection pool."""
        await self._server.aclose()

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """Make vectors of at least one text, the instruction in front of each.

        Raises
        ------
        JudgeUnavailable
            When the server does not answer, or rejects every form of the request.
        AuditError
            When what it gave is no vector for each text.
        """
        inputs = [(self.encoding.instruction + text.strip()).encode("utf-8", "replace").decode() for text in texts]
        done = await run_together(self._ask([text or _BLANK for text in batch]) for batch in _batches(inputs))
        if len({part.vectors.shape[1] for part in done}) > 1:
            raise AuditError(f"{self._server.endpoint}: gave vectors of several dimensions")
        return _join(done)

    async def _ask(self, texts: list[str]) -> Embedded:
        """Send one batch; split it if the server says that it is too long."""
        endpoint = self._server.endpoint
        body = {"model": endpoint.model, "input": texts, **endpoint.extra}
        tried = self._format
        answer = await self._server.post(body if tried is None else {**body, "encoding_format": tried})
        if answer.status == 200:
            vectors = check_vectors(_read(answer.body, str(endpoint)), len(texts), str(endpoint))
            return Embedded(vectors=vectors, truncated=np.zeros(len(texts), dtype=np.bool_))
        if answer.is_too_long and (len(texts) > 1 or len(texts[0]) > _SHORTEST):
            return await self._ask_for_less(texts)
        if "encoding_format" in answer.complaint and tried is not None:
            self._format = None
            return await self._ask(texts)
        raise JudgeUnavailable(f"{endpoint}: HTTP {answer.status}: {answer.complaint[:200]}")

    async def _ask_for_less(self, texts: list[str]) -> Embedded:
        half = len(texts) // 2
        if half:
            return _join([await self._ask(texts[:half]), await self._ask(texts[half:])])
        shorter = await self._ask([texts[0][: len(texts[0]) // 2]])
        return replace(shorter, truncated=np.ones(1, dtype=np.bool_))


def make_endpoint_embedder(
    settings: Embedding, config: Config, client: httpx2.AsyncClient | None = None, through: GatewayAccess | None = None
) -> EndpointEmbedder:
    """Make the embedder for a deployment.

    Raises
    ------
    ConfigError
        When the deployment, or its model, is not there.
    """
    name = str(settings.deployment)
    endpoint = replace(reach_deployment(config, name, through, name=name, role="embedder"), path="embeddings")
    encoding = Encoding(
        model=endpoint.model,
        revision=settings.revision,
        instruction=settings.instruction,
        pooling="server",
        max_tokens=None,
    )
    return EndpointEmbedder(endpoint, encoding, client or open_client(endpoint.concurrency))


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """Split texts into batches of bounded size; a very long text is a batch of its own."""
    batch: list[str] = []
    held = 0
    for text in texts:
        if batch and (len(batch) == _MOST_TEXTS or held + len(text) > _MOST_CHARACTERS):
            yield batch
            batch, held = [], 0
        batch.append(text)
        held += len(text)
    if batch:
        yield batch


def _join(parts: Sequence[Embedded]) -> Embedded:
    return Embedded(
        vectors=np.concatenate([part.vectors for part in parts]),
        truncated=np.concatenate([part.truncated for part in parts]),
    )


def _read(body: Any, source: str) -> Matrix:
    """Read the vectors of an answer in the order of their ``index``; as numbers, or as base64 of single precision."""
    try:
        placed = {entry["index"]: _numbers(entry["embedding"]) for entry in body["data"]}
        with np.errstate(over="ignore"):  # what does not fit is infinite, and found to be
            return np.array([placed[at] for at in range(len(body["data"]))], dtype=np.float32)
    except (LookupError, TypeError, ValueError, OverflowError) as error:
        raise AuditError(f"{source}: its answer holds no vectors that can be read ({type(error).__name__})") from error


def _numbers(embedding: str | list[float]) -> Any:
    """Return numbers as they are, or decoded (what is not base64 is a ValueError)."""
    if isinstance(embedding, list):
        return embedding
    return np.frombuffer(base64.b64decode(embedding, validate=True), dtype="<f4")
